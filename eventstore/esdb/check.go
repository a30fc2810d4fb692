package esdb

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"bahi/eventstore"
)

const (
	maxName   = 512      // of a stream or a type, in bytes
	maxBytes  = 16 << 20 // payloads and metadata of one append; a server may be set to take less
	maxEvents = 512      // of one append
)

// check refuses what the server would take and the log does not hold: it knows nothing of JSON, for one.
func check(r eventstore.Request) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", eventstore.ErrBadEvent, fmt.Sprintf(format, args...))
	}
	switch {
	case len(r.Events) == 0 || len(r.Events) > maxEvents:
		return bad("an append has 1 to %d events, not %d", maxEvents, len(r.Events))
	case r.Expected < eventstore.NoStream && r.Expected != eventstore.Any && r.Expected != eventstore.StreamExists:
		return bad("no such expected revision: %d", int64(r.Expected))
	case !nameable(r.Stream):
		return bad("a stream's name has 1 to %d bytes of text", maxName)
	case strings.HasPrefix(r.Stream, "$") || r.Stream == IdentityStream:
		return bad("stream %s is not for events of the log", r.Stream)
	}
	ids, bytes := make(map[uuid.UUID]bool, len(r.Events)), 0
	for _, e := range r.Events {
		bytes += len(e.Data) + len(e.Meta)
		switch {
		case e.ID == uuid.Nil || ids[e.ID]:
			return bad("each event has an id of its own")
		case !nameable(e.Type) || strings.HasPrefix(e.Type, "$"):
			return bad("a type's name has 1 to %d bytes of text, and no $ before it", maxName)
		case bytes > maxBytes:
			return bad("payloads and metadata have more than %d bytes", maxBytes)
		case !storable(e.Data) || !storable(e.Meta):
			return bad("payload and metadata are JSON in UTF-8")
		}
		ids[e.ID] = true
	}
	return nil
}

func nameable(name string) bool {
	return name != "" && len(name) <= maxName && utf8.ValidString(name) && !strings.ContainsRune(name, 0)
}

func storable(text []byte) bool { return json.Valid(text) && utf8.Valid(text) }
