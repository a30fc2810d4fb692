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

// MaxAppend is the greatest size of an append in bytes: payloads, metadata, names and ids. It is below the 1,048,576 bytes that
// EventStoreDB takes unless its MaxAppendSize is changed, so that each log can be copied into each store (CONTRACT.md 6, L10).
const MaxAppend = 1_000_000

// TooLarge is the [ErrBadEvent] of an append with more bytes than are stored at once.
type TooLarge struct {
	Most int64 // [MaxAppend], or less where a server is set so
}

// Error implements error.
func (e *TooLarge) Error() string {
	return fmt.Sprintf("%v: an append has at most %d bytes", ErrBadEvent, e.Most)
}

// Unwrap returns [ErrBadEvent].
func (e *TooLarge) Unwrap() error { return ErrBadEvent }

// Check returns [ErrBadEvent] for an append that no log accepts. Each log sets mostEvents, the limit of one append.
func (r Request) Check(mostEvents int) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrBadEvent, fmt.Sprintf(format, args...))
	}
	switch {
	case len(r.Events) == 0 || len(r.Events) > mostEvents:
		return bad("an append has 1 to %d events, not %d", mostEvents, len(r.Events))
	case r.Expected < 0 && r.Expected != Any && r.Expected != NoStream && r.Expected != StreamExists:
		return bad("no such expected revision: %d", int64(r.Expected))
	case !ValidName(r.Stream):
		return bad("a stream's name has 1 to %d bytes of text", maxName)
	}
	ids, bytes := make(map[uuid.UUID]bool, len(r.Events)), len(r.Stream)
	for _, e := range r.Events {
		bytes += len(e.Data) + len(e.Meta) + len(e.Type) + len(e.ID)
		switch {
		case e.ID == uuid.Nil || ids[e.ID]:
			return bad("each event must have an id, and no two the same")
		case !ValidName(e.Type):
			return bad("a type's name has 1 to %d bytes of text", maxName)
		case bytes > MaxAppend:
			return &TooLarge{MaxAppend}
		case !ValidJSON(e.Data) || !ValidJSON(e.Meta):
			return bad("payload and metadata are JSON in UTF-8")
		}
		ids[e.ID] = true
	}
	return nil
}

// ValidName reports whether a stream or a type may have this name.
func ValidName(name string) bool {
	return name != "" && len(name) <= maxName && utf8.ValidString(name) && !strings.ContainsRune(name, 0)
}

// ValidJSON reports whether a payload or metadata is JSON in UTF-8.
func ValidJSON(text []byte) bool { return json.Valid(text) && utf8.Valid(text) }
