// Package event holds what all aggregates share: what an event, a command and a kind of stream
// are, and the stored form of an event.
//
// A stored event is a row of the log: its type's name, the exact bytes of its payload, and metadata
// that say who caused it, when and why. Names and payloads are for ever, so both are written out in
// the aggregate's own file (see [NewKind]) and never taken from Go's names. docs/events.md describes
// the bytes.
package event

import (
	"strings"
	"time"

	"github.com/google/uuid"
)

// Event is one decision that was taken about an aggregate with state S. Evolve answers the state
// after it; it MUST NOT change what s points to, and it MUST accept every event that was ever
// stored, also one whose personal values were erased.
type Event[S any] interface {
	Evolve(s S) S
}

// Placed is an Event whose effect depends on where in the log it stands, because a rule that spans
// streams compares positions.
type Placed[S any] interface {
	Event[S]
	EvolveAt(s S, at Position) S
}

// Evolve returns the state after an event at a position of the log.
func Evolve[S any](s S, e Event[S], at Position) S {
	if placed, ok := e.(Placed[S]); ok {
		return placed.EvolveAt(s, at)
	}
	return e.Evolve(s)
}

// Command is what somebody asks of an aggregate with state S. Decide answers the events that follow,
// none when nothing changes, or an error that the asker may read (see package fault). It is pure:
// no clock, no ids, no input or output.
type Command[S any] interface {
	Decide(s S) ([]Event[S], error)
}

// Position is a place in the log. Positions rise in commit order. The Postgres store's are dense
// (1, 2, 3 …); those of other stores are opaque, so only comparing them means something. Zero is
// the place before the first event.
type Position uint64

// Stored is an event as the log holds it, its payload still in bytes.
type Stored struct {
	Position Position
	Stream   string // <category>-<id>
	Revision int64  // place in its stream, from 0
	ID       uuid.UUID
	Type     string
	Data     []byte    // the exact bytes that were appended
	Meta     []byte    // the exact bytes that were appended
	At       time.Time // when the log took it: never before its predecessor, in microseconds
}

// New is an event that asks to be appended.
type New struct {
	ID   uuid.UUID // chosen by who appends, so that an append can be repeated
	Type string
	Data []byte // JSON
	Meta []byte // JSON
}

// Recorded is an event read back from the log, with its payload decoded and lifted to today's
// version.
type Recorded[E any] struct {
	Position Position
	Stream   string
	Revision int64
	ID       uuid.UUID
	At       time.Time
	Meta     Meta
	Data     E
}

// StreamID is the part of the stream's name after its category.
func (r Recorded[E]) StreamID() string {
	_, id := SplitStream(r.Stream)
	return id
}

// StreamName joins a category and an id. Categories have no dash, ids may have some.
func StreamName(category, id string) string { return category + "-" + id }

// SplitStream takes a stream's name apart.
func SplitStream(stream string) (category, id string) {
	category, id, _ = strings.Cut(stream, "-")
	return category, id
}
