package eventstore

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
)

// maxName limits the name of a stream or a type, in bytes.
const maxName = 512

// Limits of a transaction. Bytes count payloads, metadata, names and ids. An event stays below 1,048,576 bytes, the default limit of
// brokers and of EventStoreDB.
const (
	MaxEvents     = 4096
	MaxAppend     = 4_000_000
	maxEventBytes = 1_000_000
)

// TooLarge is the [ErrBadEvent] of an append or an event that exceeds a limit in bytes.
type TooLarge struct {
	Max int64 // maximum size of an event or an append; a server's own limit may be lower
}

// Error implements error.
func (e *TooLarge) Error() string {
	return fmt.Sprintf("%v: at most %d bytes are stored at once", ErrBadEvent, e.Max)
}

// Unwrap returns [ErrBadEvent].
func (e *TooLarge) Unwrap() error { return ErrBadEvent }

// Check returns [ErrBadEvent] for a transaction that no log accepts.
func (t Transaction) Check() error {
	exact := len(t.Writes) > 1 || len(t.Checks) > 0
	streams, ids := make(map[string]bool, len(t.Writes)+len(t.Checks)), map[uuid.UUID]bool{}
	expect := func(stream string, e Expected, open bool) error {
		switch {
		case !ValidName(stream):
			return bad("a stream's name has 1 to %d bytes of text", maxName)
		case streams[stream]:
			return bad("stream %s occurs twice in a transaction", stream)
		case e < NoStream && (!open || e != Any && e != StreamExists):
			return bad("no such expected revision: %d", int64(e))
		}
		streams[stream] = true
		return nil
	}
	var bytes int
	for _, w := range t.Writes {
		if err := expect(w.Stream, w.Expected, !exact); err != nil {
			return err
		}
		if w.Guess && w.Expected != NoStream {
			return bad("a guess is that a stream does not exist")
		}
		if len(w.Events) == 0 {
			return bad("a write has at least one event")
		}
		bytes += len(w.Stream)
		for _, e := range w.Events {
			size := len(e.Data) + len(e.Meta) + len(e.Type) + len(e.ID)
			bytes += size
			switch {
			case e.ID == uuid.Nil || ids[e.ID]:
				return bad("each event must have an id, and no two the same")
			case !ValidName(e.Type):
				return bad("a type's name has 1 to %d bytes of text", maxName)
			case size+len(w.Stream) > maxEventBytes:
				return &TooLarge{maxEventBytes}
			case bytes > MaxAppend:
				return &TooLarge{MaxAppend}
			case !ValidJSON(e.Data) || !ValidJSON(e.Meta):
				return bad("payload and metadata are JSON in UTF-8")
			}
			ids[e.ID] = true
		}
	}
	for _, c := range t.Checks {
		if err := expect(c.Stream, c.Expected, false); err != nil {
			return err
		}
	}
	if len(streams) == 0 || len(ids) > MaxEvents || len(t.Checks) > MaxEvents {
		return bad("a transaction has writes or checks, and at most %d of each", MaxEvents)
	}
	return nil
}

func bad(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrBadEvent, fmt.Sprintf(format, args...))
}

// ValidName reports whether a stream or a type may have this name.
func ValidName(name string) bool {
	return name != "" && len(name) <= maxName && utf8.ValidString(name) && !strings.ContainsRune(name, 0)
}

// ValidJSON reports whether a payload or metadata is JSON in UTF-8.
func ValidJSON(text []byte) bool { return json.Valid(text) && utf8.Valid(text) }
