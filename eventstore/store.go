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

// Store is an event log. Many goroutines and many processes may call its methods at once.
type Store interface {
	// ID returns the log's permanent, unique id. A copy has the same id only if it replaces the original.
	ID() uuid.UUID

	// Append writes all events of a transaction, adjacent and in order, if all of its expectations hold. Otherwise it writes none. When it
	// returns nil, the events are on disk. A transaction without writes only confirms that its checks hold at the returned position.
	//
	// It returns [WrongRevision] if an expectation does not hold; ErrBadEvent for a transaction that no log accepts; ErrUnavailable if the log
	// was unreachable and nothing was appended; ErrInDoubt if the connection was lost and the outcome is unknown.
	//
	// A retry with the same event ids and expectations, however late, returns the first outcome and appends nothing. Ids of version 7 are made
	// for one call, so Replayed may be false for a retry with them.
	Append(ctx context.Context, t Transaction) (Appended, error)

	// AppendEach appends transactions in as few round trips as the log allows. Each succeeds or fails independently. Results are in the order
	// of the transactions. If expectations are exact, the events in the log have the same order, except that a large transaction may follow
	// later ones to other streams. Replayed may be false for a retry.
	AppendEach(ctx context.Context, all []Transaction) []Result

	// ReadStream yields a stream's events from a revision on: oldest first, or newest first if backwards. It yields
	// nothing for a stream that does not exist. An error is the last value that it yields.
	ReadStream(ctx context.Context, stream string, from int64, direction Direction) iter.Seq2[event.Stored, error]

	// ReadAll yields the log's events: those after a position, oldest first, or those before it, newest first. It stops at the log's end at
	// the time of the call.
	ReadAll(ctx context.Context, from event.Position, direction Direction) iter.Seq2[event.Stored, error]

	// Subscribe yields batches of the events after a position, each event once and in order, and continues with
	// later appends. A batch never ends inside a transaction: its last event has no metadata "more". Subscribe ends when
	// ctx does, or with an error. The caller resumes by subscribing after the last position that it has processed.
	//
	// It ends with ErrTailLost if the log now ends before the last position that it yielded, or has another event
	// there. A new subscription knows only a position: the caller MUST check that the event there is still the one
	// that it processed.
	Subscribe(ctx context.Context, after event.Position) iter.Seq2[Batch, error]

	// Head returns the position of the newest event. An append that ended before the call is at or before it.
	Head(ctx context.Context) (event.Position, error)

	// PositionAt returns the last position that was recorded at or before a time; 0 if there is none.
	PositionAt(ctx context.Context, at time.Time) (event.Position, error)
}

// DelayedSubscriber is a store with subscriptions that deliver events later and several together.
type DelayedSubscriber interface {
	// SubscribeDelayed is Subscribe for a reader that should wake rarely. It yields events that may wait together with later ones. Events
	// that the store must read from disk are yielded at once.
	SubscribeDelayed(ctx context.Context, after event.Position, p DeliveryDelay) iter.Seq2[Batch, error]
}

// FilteredReader is a store that can leave out events which a reader does not need.
type FilteredReader interface {
	// ReadExcluding is ReadAll forwards, up to a position that is included. It may leave out events of the types in without. It always yields
	// the event at that position. It sometimes yields an excluded event, to report progress.
	ReadExcluding(ctx context.Context, after, upTo event.Position, without []string) iter.Seq2[event.Stored, error]
}

// DeliveryDelay decides how long events may wait before a subscriber wakes.
type DeliveryDelay struct {
	// For returns how long new events may wait; 0: not at all. The log's writer waits for this call.
	For func([]event.Stored) time.Duration
	// Over returns a channel that closes when no event may wait any longer.
	Over func() <-chan struct{}
}

// Batch is a section of the log that ends between transactions. An empty batch reports progress: up to UpTo the log has no further events
// for the reader.
type Batch struct {
	Events []event.Stored
	UpTo   event.Position // every event up to here was yielded
}

// Direction is the direction of a read.
type Direction bool

// The directions.
const (
	Forwards  Direction = false
	Backwards Direction = true
)

// End is the position from which a read backwards yields the whole log.
const End = event.Position(1<<63 - 1)

// LastRevision is the revision from which a read backwards yields the whole stream.
const LastRevision = int64(1<<63 - 1)

// Expected is the state that an append requires of its stream: the revision of its last event, or one of the
// constants below.
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

// Transaction has the writes of an append and the checks that must hold. With several writes, or with checks, all expectations are exact.
type Transaction struct {
	// AsOf is a position of the log that the caller knew before it read the expected revisions. If it is recent, the log checks
	// expectations in memory against the events after it. 0: the log looks each one up.
	AsOf event.Position
	// AsOfID is the id of the event at AsOf; zero: unknown. If the log has lost that event, the append fails with [ErrTailLost]: a stream
	// may be at an expected revision again, with other events.
	AsOfID uuid.UUID
	Writes []Write // in log order
	Checks []Check // checks of streams that are not written
}

// Write appends events to a stream. A transaction writes to a stream once.
type Write struct {
	Stream   string
	Expected Expected
	Events   []event.Proposed

	// Guess means that the caller has not read the stream and guesses that it does not exist. AsOf does not cover the stream.
	Guess bool
}

// Check requires that a stream is at a revision, [NoStream] or exact.
type Check struct {
	Stream   string
	Expected Expected
}

// To returns a transaction that writes to one stream.
func To(stream string, expected Expected, events ...event.Proposed) Transaction {
	return Transaction{Writes: []Write{{Stream: stream, Expected: expected, Events: events}}}
}

// Result is the outcome of one of several transactions.
type Result struct {
	Appended
	Err error
}

// Appended reports the positions of appended events.
type Appended struct {
	First    event.Position // position of the first event; 0 if there are none
	Position event.Position // position of the last event; without writes: position at which the checks hold
	Revision int64          // revision of the last event
	At       time.Time      // when the events were recorded
	Replayed bool           // an earlier call appended them
}

// WrongRevision reports that a stream does not match the expectation of an append.
type WrongRevision struct {
	Stream   string
	Expected Expected
	Actual   int64 // revision of its last event; -1 if the stream does not exist
}

func (e *WrongRevision) Error() string {
	if e.Actual < 0 {
		return fmt.Sprintf("stream %s: expected %s, but it does not exist", e.Stream, e.Expected)
	}
	return fmt.Sprintf("stream %s: expected %s, but it is at revision %d", e.Stream, e.Expected, e.Actual)
}

// The errors of a log.
var (
	ErrUnavailable = errors.New("the event log is unreachable; nothing was appended")
	ErrInDoubt     = errors.New("the connection to the event log was lost; the outcome of the append is unknown")
	ErrBadEvent    = errors.New("invalid event")
	ErrClosed      = errors.New("the event log is closed for writing")

	// ErrTailLost ends a subscription to a log that has lost its newest events, for example by a failover to a lagging server, and refuses a
	// transaction that was decided on them. Other events will get their positions. A reader MUST discard what it derived from the lost events.
	ErrTailLost = errors.New("the event log lost its newest events: it no longer has events that were read from it")
)
