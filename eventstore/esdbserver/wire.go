package esdbserver

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"bahi/domain/event"
	"bahi/eventstore"
)

// The protocol's names of an event's properties, in separate metadata.
const (
	propertyType        = "type"
	propertyContentType = "content-type"
	propertyCreated     = "created"

	contentJSON = "application/json"
)

func textID(id uuid.UUID) *shared.UUID {
	return &shared.UUID{Value: &shared.UUID_String_{String_: id.String()}}
}

func structuredID(id uuid.UUID) *shared.UUID {
	return &shared.UUID{Value: &shared.UUID_Structured_{Structured: &shared.UUID_Structured{
		MostSignificantBits: int64(binary.BigEndian.Uint64(id[:8])), LeastSignificantBits: int64(binary.BigEndian.Uint64(id[8:])),
	}}}
}

func parseID(id *shared.UUID) (parsed uuid.UUID, err error) {
	if s := id.GetStructured(); s != nil {
		binary.BigEndian.PutUint64(parsed[:8], uint64(s.GetMostSignificantBits()))
		binary.BigEndian.PutUint64(parsed[8:], uint64(s.GetLeastSignificantBits()))
		return parsed, nil
	}
	if parsed, err = uuid.Parse(id.GetString_()); err != nil {
		return parsed, refuse(codes.InvalidArgument, "an event's id is a UUID, not %q", id.GetString_())
	}
	return parsed, nil
}

func identifier(stream string) *shared.StreamIdentifier {
	return &shared.StreamIdentifier{StreamName: []byte(stream)}
}

// eventResponse returns an event as a read sends it. The time is in ticks of 100 nanoseconds since 1970, as clients expect.
func eventResponse(e event.Stored, textIDs bool) *streams.ReadResp {
	id, position := structuredID, uint64(e.Position)
	if textIDs {
		id = textID
	}
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

// proposal is an event to append. Append and BatchAppend use different messages.
type proposal interface {
	GetId() *shared.UUID
	GetMetadata() map[string]string
	GetCustomMetadata() []byte
	GetData() []byte
}

// proposed returns the event of a proposal.
func proposed(p proposal) (e event.Proposed, err error) {
	properties := p.GetMetadata()
	for _, name := range []string{propertyType, propertyContentType} {
		if properties[name] == "" {
			r := refuse(codes.InvalidArgument, "the event lacks the property %s", name)
			r.trailers = metadata.Pairs("exception", "missing-required-metadata-property",
				"required-metadata-properties", propertyType+","+propertyContentType)
			return e, r
		}
	}
	if properties[propertyContentType] != contentJSON {
		return e, refuse(codes.InvalidArgument, "the log holds events in JSON, none in %s", properties[propertyContentType])
	}
	if strings.HasPrefix(properties[propertyType], "$") {
		return e, denied("event types that begin with $ are the server's own")
	}
	e = event.Proposed{Type: properties[propertyType], Data: p.GetData(), Meta: p.GetCustomMetadata()}
	if len(e.Meta) == 0 {
		e.Meta = []byte(`{}`) // clients may omit metadata, but every event of the log has some
	}
	e.ID, err = parseID(p.GetId())
	return e, err
}

// streamName returns the name of a stream to which a client may append.
func streamName(id *shared.StreamIdentifier) (string, error) {
	name := string(id.GetStreamName())
	if strings.HasPrefix(name, "$") {
		return "", denied("streams that begin with $ are the server's own")
	}
	return name, nil
}

// exactly returns the expectation of a revision.
func exactly(revision uint64) eventstore.Expected {
	return eventstore.Expected(min(revision, math.MaxInt64))
}
