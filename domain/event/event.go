// Package event defines events, commands and kinds of streams for all aggregates, and the stored form of an event.
//
// A stored event is a row of the log: the name of its type, the exact bytes of its payload, and metadata with the cause, the time and the
// reason. Names and payloads never change. So the aggregate's own file contains both literally (see [NewKind]), and they are never derived
// from Go names. docs/events.md specifies the bytes.
package event

import (
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Event is a decision about an aggregate with state S. Evolve returns the state after it. It MUST NOT change what s points to, and MUST
// accept every event that was ever stored, even with erased personal values.
type Event[S any] interface {
	Evolve(s S) S
}

// positioned is an Event with an effect that depends on its position in the log, because a rule between streams compares positions.
type positioned[S any] interface {
	Event[S]
	EvolveAt(s S, at Position) S
}

// Evolve returns the state after an event at a position of the log.
func Evolve[S any](s S, e Event[S], at Position) S {
	if placed, ok := e.(positioned[S]); ok {
		return placed.EvolveAt(s, at)
	}
	return e.Evolve(s)
}

// Command is a request to an aggregate with state S. Decide returns the resulting events, none if nothing changes, or an error for the
// caller (see package fault). It is pure: no clock, no ids, no I/O.
type Command[S any] interface {
	Decide(s S) ([]Event[S], error)
}

// Position is an event's number in the log. Positions increase in commit order. The positions of the Postgres store are dense (1, 2, 3 …).
// In other stores, a position has a meaning only compared with another position. Zero is the position before the first event.
type Position uint64

// Stored is an event in the log, with an encoded payload.
type Stored struct {
	Position Position
	Stream   string // <category>-<id>
	Revision int64  // from 0
	ID       uuid.UUID
	Type     string
	Data     []byte    // exactly as appended
	Meta     []byte    // exactly as appended
	At       time.Time // when the log stored the event, in microseconds; never before its predecessor
}

// Proposed is an event to append.
type Proposed struct {
	ID   uuid.UUID // chosen by the caller, so that an append can be retried
	Type string
	Data []byte // JSON
	Meta []byte // JSON
}

// Recorded is an event read from the log, with its payload decoded and converted to the current version.
type Recorded[E any] struct {
	Position Position
	Stream   string
	Revision int64
	ID       uuid.UUID
	At       time.Time
	Meta     Meta
	Data     E
}

// As returns an event with its payload as an E, the type that the registry has for its name.
func As[E any](r Recorded[any]) Recorded[E] {
	data, _ := r.Data.(E) // the zero value for another type
	return Recorded[E]{Position: r.Position, Stream: r.Stream, Revision: r.Revision, ID: r.ID, At: r.At, Meta: r.Meta, Data: data}
}

// StreamID returns the part of the stream's name after its category.
func (r Recorded[E]) StreamID() string {
	_, id := SplitStream(r.Stream)
	return id
}

// Number returns the number that is the id of a stream, 0 for another id.
func Number(id string) int64 {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// StreamName joins a category and an id. Only ids may contain dashes.
func StreamName(category, id string) string { return category + "-" + id }

// SplitStream returns the parts of a stream's name.
func SplitStream(stream string) (category, id string) {
	category, id, _ = strings.Cut(stream, "-")
	return category, id
}
