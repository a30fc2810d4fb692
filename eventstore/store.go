// Package eventstore says what an append-only log of events is. Every write of the system is an
// append here, and everything a client reads is folded from it. The implementations pass one suite,
// eventstore/storetest.
//
// An atomic append across streams is left out on purpose: EventStoreDB has none, and what needs it is
// written as one decisive event plus follow-ups that can be resumed.
package eventstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/google/uuid"

	"bahi/domain/event"
)

// Store is the log. All methods may be called by many goroutines, and by many processes on one log.
type Store interface {
	// ID names this log for ever. Two logs never share one, and a copy keeps it only when it is to
	// take the original's place.
	ID() uuid.UUID

	// Append adds events to the end of one stream, all or none, if the stream is as expected.
	//
	// It returns what was appended; a [WrongRevision] when the stream is not as expected; ErrUnavailable
	// when nothing was appended because the log cannot be reached; ErrInDoubt when the log went away
	// in the middle and could not be asked in time. When it answers nil the events are on disk.
	//
	// The same events (by id) appended again under the same expectation are answered as the first
	// time and appended once, however much later.
	Append(ctx context.Context, stream string, expected Expected, events ...event.New) (Appended, error)

	// AppendEach does several appends to different streams, each of which succeeds or fails on its
	// own, in as few round trips as the log allows. Results are in the order of the appends.
	AppendEach(ctx context.Context, appends []Request) []Result

	// ReadStream yields a stream's events from a revision on, oldest first, or newest first when
	// backwards. A stream that is not there yields nothing. A yielded error is the last thing yielded.
	ReadStream(ctx context.Context, stream string, from int64, direction Direction) iter.Seq2[event.Stored, error]

	// ReadAll yields the log's events after a position, oldest first, or before it, newest first
	// when backwards. It ends at the log's end as it was found on the way.
	ReadAll(ctx context.Context, from event.Position, direction Direction) iter.Seq2[event.Stored, error]

	// Subscribe yields batches of the log's events after a position, in order, none skipped and none
	// twice, and goes on with what is appended later. It ends when ctx does, or with an error;
	// whoever wants to go on then subscribes after the last position that it has dealt with.
	//
	// It ends with ErrTailLost when the log ends before the position, or has another event there than
	// the one that it gave. A new subscription knows no more than the position: whoever subscribes again
	// MUST look by itself whether the event there is the one that it knows.
	Subscribe(ctx context.Context, after event.Position) iter.Seq2[Batch, error]

	// Head is the position of the newest event. Everything appended before the call is at or before it.
	Head(ctx context.Context) (event.Position, error)

	// PositionAt is the greatest position recorded at or before a moment, 0 when there is none.
	PositionAt(ctx context.Context, at time.Time) (event.Position, error)
}

// Batch is a piece of the log. An empty one tells that the log was read up to UpTo and holds nothing
// that the reader was not given (a store may pass over events of its own).
type Batch struct {
	Events []event.Stored
	UpTo   event.Position // all up to here was yielded
}

// Direction of a read.
type Direction bool

// The directions.
const (
	Forwards  Direction = false
	Backwards Direction = true
)

// End is where a read backwards begins to see everything.
const End = event.Position(1<<63 - 1)

// LastRevision is where a read of a stream backwards begins to see everything.
const LastRevision = int64(1<<63 - 1)

// Expected is what a stream must be like for an append: the revision of its last event, or one of
// the words below.
type Expected int64

// Expectations other than an exact revision.
const (
	Any          Expected = -2
	NoStream     Expected = -1
	StreamExists Expected = -4
)

func (e Expected) String() string {
	switch e {
	case Any:
		return "any"
	case NoStream:
		return "no stream"
	case StreamExists:
		return "an existing stream"
	default:
		return fmt.Sprintf("revision %d", int64(e))
	}
}

// Request is one append of several.
type Request struct {
	Stream   string
	Expected Expected
	Events   []event.New
}

// Result is what became of it.
type Result struct {
	Appended
	Err error
}

// Appended tells where the events stand.
type Appended struct {
	First    event.Position // of the first of them; 0: the log does not tell without being read
	Position event.Position // of the last of them
	Revision int64          // of the last of them
	At       time.Time
	Replayed bool // they were there already
}

// WrongRevision tells that a stream is not as an append expected it.
type WrongRevision struct {
	Stream   string
	Expected Expected
	Actual   int64 // of its last event; -1: there is no such stream
}

func (e *WrongRevision) Error() string {
	if e.Actual < 0 {
		return fmt.Sprintf("stream %s: expected %s, but there is none", e.Stream, e.Expected)
	}
	return fmt.Sprintf("stream %s: expected %s, but it is at revision %d", e.Stream, e.Expected, e.Actual)
}

// The ways in which a log cannot answer.
var (
	ErrUnavailable = errors.New("the event log cannot be reached; nothing was appended")
	ErrInDoubt     = errors.New("the event log went away before it answered; whether the append took place is not known")
	ErrBadEvent    = errors.New("the event log does not take this event")
	ErrClosed      = errors.New("the event log is closed for writing")

	// ErrTailLost ends a subscription to a log that no longer has its newest events, as after a failover to a
	// server that was behind: their positions are given again, to other events. What was made of those that are
	// gone MUST be made again.
	ErrTailLost = errors.New("the event log lost its newest events: what was read of them is no longer in it")
)
