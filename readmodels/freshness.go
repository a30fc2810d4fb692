package readmodels

import (
	"context"
	"sync"
	"time"

	"bahi/domain/event"
	"bahi/domain/fault"
)

// Freshness is what a request asks of its reads, and what it got. One request may read several times.
type Freshness struct {
	Min  event.Position // the least that an answer must have seen; 0: what the log has on arrival
	Wait time.Duration  // how long a read may wait for it; 0: as [Reader.Wait] says
	Once bool           // the reads need what the log had when the first of them began, not when each of them did

	mu       sync.Mutex
	position event.Position
	read     bool
	stale    bool
	first    event.Position // the log's head at the first read; 0: not known

	generation int // of the tables that were read, or mixed
}

// mixed is no generation.
const mixed = -1

// ErrPositionTimeout is the error of a read whose least position was not reached in time.
var ErrPositionTimeout = fault.New(fault.Unavailable, "The answer is not that fresh yet, try again")

// ErrBeyondHead is the error of a read that asks for what the log does not have.
var ErrBeyondHead = fault.New(fault.Invalid, "The log does not reach that position yet")

// Position is up to where every answer of the request is complete; false when nothing was read.
func (f *Freshness) Position() (event.Position, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.position, f.read
}

// Stale says whether an answer lacks events that were in the log when the request arrived.
func (f *Freshness) Stale() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stale
}

func (f *Freshness) note(position event.Position, generation int, stale bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.read && f.generation != generation {
		generation = mixed
	}
	f.generation = generation
	if !f.read || position < f.position {
		f.position = position
	}
	f.read, f.stale = true, f.stale || stale
}

// again returns what a part of the request asks for, which has read nothing.
func (f *Freshness) again() *Freshness {
	first, _ := f.firstHead()
	return &Freshness{Min: f.Min, Wait: f.Wait, Once: f.Once, first: first}
}

// take notes what such a part got.
func (f *Freshness) take(part *Freshness) {
	if at, read := part.Position(); read {
		f.note(at, part.generation, part.Stale())
	} else if part.Stale() {
		f.MarkIncomplete()
	}
	if first, known := part.firstHead(); known {
		f.noteHead(first)
	}
}

// noteHead takes the log's head as of the arrival of a read.
func (f *Freshness) noteHead(head event.Position) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Once && f.first == 0 {
		f.first = head
	}
}

// firstHead returns the log's head as of the first read, if the others need no more.
func (f *Freshness) firstHead() (head event.Position, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.first, f.first != 0
}

// MarkIncomplete says that the answer lacks what somebody else has, such as a provider who could not be asked.
func (f *Freshness) MarkIncomplete() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stale = true
}

// ReadLog says that the log itself was read, up to a position. It answers [ErrBeyondHead] when the request asks for more.
func (f *Freshness) ReadLog(upTo event.Position) error {
	if f.Min > upTo {
		return ErrBeyondHead
	}
	f.note(upTo, 0, false)
	return nil
}

type freshnessKey struct{}

// WithFreshness returns a context whose reads obey f and report to it.
func WithFreshness(ctx context.Context, f *Freshness) context.Context {
	return context.WithValue(ctx, freshnessKey{}, f)
}

// WithMinPosition returns a context whose reads have seen the position, beside what the request asks for, or
// fail. It is for reading back what was just written.
func WithMinPosition(ctx context.Context, position event.Position) context.Context {
	return context.WithValue(ctx, minKey{}, position)
}

// AsKnownAt returns a context whose reads are of a past state, as known at the position. They wait for that
// and, unless the request asks for more, for nothing later.
func AsKnownAt(ctx context.Context, position event.Position) context.Context {
	return context.WithValue(ctx, pastKey{}, position)
}

type (
	minKey  struct{}
	pastKey struct{}
)

// Complete is for reads on which a command is decided: read misses nothing that the log had when it
// began. It answers [ErrPositionTimeout] where another read would answer something stale.
func Complete[T any](ctx context.Context, read func(context.Context) (T, error)) (T, error) {
	found, _, err := CompleteAsOf(ctx, read)
	return found, err
}

// CompleteAsOf is [Complete] for who has to know the position up to which the answer misses nothing.
func CompleteAsOf[T any](ctx context.Context, read func(context.Context) (T, error)) (found T, at event.Position, err error) {
	f := &Freshness{Wait: completeWait, Once: true}
	ctx = context.WithValue(ctx, pastKey{}, nil) // of a past state nothing is decided
	found, err = read(WithFreshness(ctx, f))
	at, _ = f.Position()
	if f.Stale() {
		var none T
		return none, at, ErrPositionTimeout
	}
	return found, at, err
}

// completeWait is how long a command waits for the projections that it is decided on.
const completeWait = 5 * time.Second

// FreshnessOf returns what the context asks of reads, and where they report to.
func FreshnessOf(ctx context.Context) *Freshness {
	if f, ok := ctx.Value(freshnessKey{}).(*Freshness); ok {
		return f
	}
	return &Freshness{}
}
