package feedtest

import (
	"fmt"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
)

// Message returns a message about an event of a stream.
func Message(t testing.TB, stream, payload string) *message.Message {
	t.Helper()
	m := message.NewMessage(uuid.NewString(), []byte(payload))
	m.Metadata = message.Metadata{
		"specversion": "1.0", "id": m.UUID, "source": "urn:uuid:0195e8a0-7c1e-7000-8000-0000000000aa", "type": "BankRowAdded", "subject": stream,
		"time": "2026-11-21T21:00:00.000001Z", "datacontenttype": "application/json", "sequence": "00000000000000000007",
	}
	m.SetContext(t.Context())
	return m
}

// Messages returns messages of three streams.
func Messages(t testing.TB, n int) []*message.Message {
	t.Helper()
	all := make([]*message.Message, n)
	for i := range all {
		all[i] = Message(t, fmt.Sprintf("bank-%d", i%3), fmt.Sprintf(`{"n":%d}`, i))
	}
	return all
}
