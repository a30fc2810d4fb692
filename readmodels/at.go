package readmodels

import (
	"sync"
	"time"

	"bahi/domain/event"
	"bahi/domain/fault"
)

// At says what the reads of a request must have seen, and collects what they saw. A nil At needs what the log has on a read's arrival, and
// collects nothing.
type At struct {
	Min  event.Position // the least that an answer must have seen; 0: what the log has on arrival
	Wait time.Duration  // how long a read may wait for it; 0: as [Reader.Wait] says

	of    *At            // collects what the reads saw; nil: this one
	least event.Position // that an answer must have seen beside Min
	past  bool           // nothing later is waited for
	once  bool           // the reads need what the log had when the first of them began, not when each of them did

	mu       sync.Mutex
	position event.Position
	read     bool
	stale    bool
	first    event.Position // the log's head at the first read; 0: not known
}

// ErrPositionTimeout is the error of a read whose least position was not reached in time.
var ErrPositionTimeout = fault.New(fault.Unavailable, "The answer is not that fresh yet, try again")

// ErrBeyondHead is the error of a read that asks for what the log does not have.
var ErrBeyondHead = fault.New(fault.Invalid, "The log does not reach that position yet")

// derived returns an At that asks for the same and reports to a.
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

// After returns an At whose reads have also seen a position, or fail. It is for reading back what was just written.
func (a *At) After(position event.Position) *At {
	d := a.derived()
	d.least = max(d.least, position)
	return d
}

// Past returns an At for a past state, as known at a position. Its reads wait for that and, unless the request asks for more, for nothing
// later.
func (a *At) Past(position event.Position) *At {
	d := a.After(position)
	d.past = true
	return d
}

// Position returns up to where every answer of the request is complete; false when nothing was read.
func (a *At) Position() (event.Position, bool) {
	if a == nil {
		return 0, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.position, a.read
}

// Stale reports whether an answer lacks events that were in the log when the request arrived.
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

// MarkIncomplete notes that the answer lacks what somebody else has, such as a provider who could not be asked.
func (a *At) MarkIncomplete() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stale = true
}

// ReadLog notes that the log itself was read, up to a position. It returns [ErrBeyondHead] when the request asks for more.
func (a *At) ReadLog(upTo event.Position) error {
	if a != nil && a.Min > upTo {
		return ErrBeyondHead
	}
	a.note(upTo, false)
	return nil
}

// begin returns what a read that begins now waits for.
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

// arrived takes the log's head as of the arrival of a read.
func (a *At) arrived(head event.Position) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.once && a.first == 0 {
		a.first = head
	}
}

// Complete is for reads on which a command is decided: read misses nothing that the log had when it began. It returns [ErrPositionTimeout]
// where another read would return something stale.
func Complete[T any](read func(*At) (T, error)) (T, error) {
	found, _, err := CompleteAsOf(read)
	return found, err
}

// CompleteAsOf is [Complete] for callers that need the position up to which the answer misses nothing.
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

// completeWait is how long a command waits for the projections that it is decided on.
const completeWait = 5 * time.Second
