package readmodels

import (
	"sync"
	"time"

	"bahi/domain/event"
	"bahi/domain/fault"
)

// At has the freshness that a request requires of its reads, and the freshness of their results. With a nil At, a read requires all events
// that are in the log when it begins.
type At struct {
	Min  event.Position // minimum position of a response; 0: the head of the log when the read begins
	Wait time.Duration  // maximum time that a read waits for the position; 0: [Reader.Wait]

	of    *At            // At that collects the freshness of the reads; nil: this one
	least event.Position // a second minimum position
	past  bool           // reads wait for no later position
	once  bool           // all reads require the head of the log at the start of the first read

	mu sync.Mutex
	freshness
	first event.Position // head of the log at the first read; 0: unknown
}

// freshness is the freshness of reads.
type freshness struct {
	position event.Position
	read     bool
	stale    bool
}

// ErrPositionTimeout reports that the projections did not reach a read's minimum position in time.
var ErrPositionTimeout = fault.New(fault.Unavailable, "The projections have not reached this position yet, try again")

// ErrBeyondHead reports that a read requires a position beyond the head of the log.
var ErrBeyondHead = fault.New(fault.Invalid, "The log does not reach that position yet")

// derived returns an At with a's requirements. The freshness of its reads is collected in a.
func (a *At) derived() *At {
	if a == nil {
		return &At{}
	}
	d := &At{Min: a.Min, Wait: a.Wait, of: a, least: a.least, past: a.past}
	if a.of != nil {
		d.of = a.of
	}
	return d
}

// After returns an At that also requires a position, such as a write's.
func (a *At) After(position event.Position) *At {
	d := a.derived()
	d.least = max(d.least, position)
	return d
}

// AsKnownAt returns an At for a past state, as known at a position. Its reads wait for that position. They wait for a later one only if the
// request requires it.
func (a *At) AsKnownAt(position event.Position) *At {
	d := a.After(position)
	d.past = true
	return d
}

// Position returns the position up to which all reads of the request are complete. It returns false if there were none.
func (a *At) Position() (event.Position, bool) {
	if a == nil {
		return 0, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.position, a.read
}

// Stale reports whether a read lacks events that it required.
func (a *At) Stale() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stale
}

func (a *At) note(position event.Position, stale bool) {
	if a == nil {
		return
	}
	a.of.note(position, stale)
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.read || position < a.position {
		a.position = position
	}
	a.read, a.stale = true, a.stale || stale
}

// Attempt calls read. If read reports that its result is not used, its reads do not count: a response is as fresh as the reads that it
// shows.
func (a *At) Attempt(read func() (used bool, err error)) (used bool, err error) {
	a.mu.Lock()
	before := a.freshness
	a.mu.Unlock()
	used, err = read()
	if !used {
		a.mu.Lock()
		a.freshness = before
		a.mu.Unlock()
	}
	return used, err
}

// MarkIncomplete records that the response lacks data of another system, such as a provider that was unreachable.
func (a *At) MarkIncomplete() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stale = true
}

// ReadLog records that the log itself was read up to a position. It returns [ErrBeyondHead] if the request requires a later position.
func (a *At) ReadLog(upTo event.Position) error {
	if a != nil && a.Min > upTo {
		return ErrBeyondHead
	}
	a.note(upTo, false)
	return nil
}

// begin returns the wait of a read that begins now.
func (a *At) begin(most time.Duration) *wait {
	if a == nil {
		a = &At{}
	}
	w := &wait{at: a, needed: max(a.Min, a.least), toHead: a.Min == 0 && !a.past, most: most}
	if a.Wait != 0 {
		w.most = a.Wait
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.first != 0 && w.toHead {
		w.toHead, w.arrived, w.least = false, true, max(w.needed, a.first)
	}
	return w
}

// arrived records the head of the log when a read began.
func (a *At) arrived(head event.Position) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.once && a.first == 0 {
		a.first = head
	}
}

// Complete returns the result of a read for a command's decision. The result has all events that were in the log when the read began.
// Complete returns [ErrPositionTimeout] instead of a stale result.
func Complete[T any](read func(*At) (T, error)) (T, error) {
	found, _, err := CompleteAsOf(read)
	return found, err
}

// CompleteAsOf is [Complete] for callers that need the position up to which the result is complete.
func CompleteAsOf[T any](read func(*At) (T, error)) (found T, upTo event.Position, err error) {
	a := &At{Wait: completeWait, once: true}
	found, err = read(a)
	upTo, _ = a.Position()
	if a.Stale() {
		var none T
		return none, upTo, ErrPositionTimeout
	}
	return found, upTo, err
}

// completeWait is the time that a command waits for the projections that it reads.
const completeWait = 5 * time.Second
