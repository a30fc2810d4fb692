package esdbserver

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"bahi/domain/event"
)

func structuredID(id uuid.UUID) *shared.UUID {
	return &shared.UUID{Value: &shared.UUID_Structured_{Structured: &shared.UUID_Structured{
		MostSignificantBits: int64(binary.BigEndian.Uint64(id[:8])), LeastSignificantBits: int64(binary.BigEndian.Uint64(id[8:])),
	}}}
}

// generated returns an event in the generated messages of the protocol.
func generated(e event.Stored, id func(uuid.UUID) *shared.UUID) *streams.ReadResp {
	position := uint64(e.Position)
	return &streams.ReadResp{Content: &streams.ReadResp_Event{Event: &streams.ReadResp_ReadEvent{
		Event: &streams.ReadResp_ReadEvent_RecordedEvent{
			Id: id(e.ID), StreamIdentifier: identifier(e.Stream), StreamRevision: uint64(e.Revision),
			PreparePosition: position, CommitPosition: position,
			Metadata: map[string]string{
				propertyType: e.Type, propertyContentType: contentJSON, propertyCreated: strconv.FormatInt(e.At.UnixMicro()*10, 10),
			},
			CustomMetadata: e.Meta, Data: e.Data,
		},
		Position: &streams.ReadResp_ReadEvent_CommitPosition{CommitPosition: position},
	}}}
}

func TestEncoderEqualsTheGeneratedMessages(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 1))
	number := func() uint64 { // of any length, often zero
		return random.Uint64() >> random.IntN(65)
	}
	text := func(most int) string { return strings.Repeat("₹", random.IntN(most)) }
	var numbers, texts encoder
	texts.textIDs = true
	all := []event.Stored{
		{},
		{Position: math.MaxUint64, Revision: math.MaxInt64, At: time.UnixMicro(math.MaxInt64)},
		{Position: math.MaxInt64, Revision: -1, At: time.Unix(0, 0).Add(-time.Hour)},
		{Stream: "\xff\x00-1", Data: []byte("\xff"), Meta: []byte{0}},
		{Stream: strings.Repeat("s", 127), Type: strings.Repeat("t", 128)},
		{Stream: strings.Repeat("s", 1<<14), Type: strings.Repeat("t", 1<<14-1), Data: make([]byte, maxAppend), ID: uuid.Max},
		{ID: uuid.UUID{8: 1}}, {ID: uuid.UUID{7: 1}},
	}
	for range 2000 {
		e := event.Stored{
			Position: event.Position(number()), Stream: text(60), Revision: int64(number() & math.MaxInt64), Type: text(60),
			Data: []byte(text(300)), Meta: []byte(text(80)), At: time.UnixMicro(random.Int64N(1 << 58)),
		}
		binary.BigEndian.PutUint64(e.ID[:8], number())
		binary.BigEndian.PutUint64(e.ID[8:], number())
		if random.IntN(200) == 0 {
			e.Data = []byte(text(chunkBytes)) // more than is taken at once
		}
		all = append(all, e)
	}
	for _, e := range all {
		for _, c := range []struct {
			encoder *encoder
			id      func(uuid.UUID) *shared.UUID
		}{{&numbers, structuredID}, {&texts, textID}} {
			want, err := proto.MarshalOptions{Deterministic: true}.Marshal(generated(e, c.id))
			require.NoError(t, err)
			message := c.encoder.event(e)
			require.True(t, bytes.Equal(want, message.ReadOnlyData()), "%s %s", e.Stream[:min(9, len(e.Stream))], e.ID)
			message.Free()
		}
	}
}

func TestEncodedEventIsNotOverwrittenBeforeItIsSent(t *testing.T) {
	t.Parallel()
	var c encoder
	e := event.Stored{Position: 1, Stream: "kept-1", Type: "Kept", Data: []byte(`{"a":1}`), Meta: []byte(`{}`)}
	first := c.event(e)
	want := string(first.ReadOnlyData())
	for i := range 2000 { // many chunks
		e.Position = event.Position(2 + i)
		c.event(e).Free()
	}
	c.free()
	require.Equal(t, want, string(first.ReadOnlyData()))
	first.Free()
}
