package feedreact_test

import (
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/reactors/feedreact"
)

var (
	log = uuid.MustParse("0195e8a0-7c1e-7000-8000-0000000000aa")
	id  = uuid.MustParse("0195e8a0-7c1e-7000-8000-0000000000bb")
)

func stored(meta string) event.Stored {
	return event.Stored{
		Position: 812, Stream: "user-0195e8a0", Revision: 3, ID: id, Type: "UserEmailChanged",
		Data: []byte(`{"email": {"sealed":1,"class":"personal","subject":"user-7","key":1,"box":"q83v"}, "n":1.50}`),
		Meta: []byte(meta), At: time.Date(2026, 11, 21, 23, 30, 0, 123456000, time.FixedZone("IST", 19800)),
	}
}

func TestMessageHasThePayloadAndTheAttributes(t *testing.T) {
	t.Parallel()
	e := stored(`{"schema":2,"workspace":"0195e8a0-7c1e-7000-8000-0000000000cc","actor":"user:7","occurred_at":"2026-11-21T17:59:59.9Z",
		"request_id":"r-1","correlation_id":"c-1","causation_id":"0195e8a0-7c1e-7000-8000-0000000000dd","reason":"as asked\nby phone","of":811}`)
	m := feedreact.Message(log, e)
	require.Equal(t, id.String()+"@812", m.UUID)
	require.Equal(t, e.Data, []byte(m.Payload))
	require.Equal(t, message.Metadata{
		"specversion": "1.0", "id": id.String(), "source": "urn:uuid:0195e8a0-7c1e-7000-8000-0000000000aa", "type": "UserEmailChanged",
		"subject": "user-0195e8a0", "time": "2026-11-21T18:00:00.123456Z", "datacontenttype": "application/json",
		"sequence": "00000000000000000812", "revision": "3",
		"schema": "2", "workspace": "0195e8a0-7c1e-7000-8000-0000000000cc", "actor": "user:7", "occurredat": "2026-11-21T17:59:59.9Z",
		"requestid": "r-1", "correlationid": "c-1", "causationid": "0195e8a0-7c1e-7000-8000-0000000000dd", "reason": "as asked by phone",
		"of": "811",
	}, m.Metadata)
}

func TestMetadataReplacesNoAttribute(t *testing.T) {
	t.Parallel()
	ours := feedreact.Message(log, stored(`{}`)).Metadata
	for _, meta := range []string{
		`null`, `7`, `"text"`, `[1, 2]`,
		`{"id":"x","type":"x","se_quence":"x","data":"x","data_base64":"x","dataschema":"x","subject":"x","$correlationId":"x","Upper":"x",` +
			`"":"x"}`,
		`{"nested":{"a":1},"list":[1],"none":null,"empty":"","averyveryverylongname1":"x"}`,
	} {
		require.Equal(t, ours, feedreact.Message(log, stored(meta)).Metadata, meta)
	}
	m := feedreact.Message(log, stored(`{"tenant":"é\u0000\u0085!","count":9007199254740993,"test":true}`)).Metadata
	require.Equal(t, "é  !", m["tenant"])
	require.Equal(t, "9007199254740993", m["count"])
	require.Equal(t, "true", m["test"])
}
