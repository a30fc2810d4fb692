package projections

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/signal"
)

// ErrSaturated reports that a projection does not keep up with the writes.
var ErrSaturated = errors.New("the projection does not keep up with the writes")

const (
	measureInterval = 25 * time.Millisecond

	// pacedAbove is how long events may wait for a projection before writes wait a moment for it: it then has the processor for itself,
	// and reads see what was written within a quarter of a second. pacedFor is the longest such moment.
	pacedAbove = 150 * time.Millisecond
	pacedFor   = 250 * time.Millisecond

	// maxBacklog is how long events may wait for a projection before writes are refused. A read waits for a position no longer than
	// that (CONTRACT.md 0.3), so it could not read what was just written.
	maxBacklog = 5 * time.Second

	// heldUp is the longest delay of a write that is then refused.
	heldUp = 2 * time.Second

	// asksTimeout is how long the measuring goes on after a write: a process without writes asks nothing of the database.
	asksTimeout = maxBacklog

	// movesTimeout is how long a running projection may take for a batch before it counts as hanging: writes do not wait for it, and
	// another process takes over.
	movesTimeout = 2 * time.Second
)

// Backlog measures how long events wait for projections, and delays writes that projections cannot keep up with. A projection that
// is parked, paused, hanging or waiting for the database delays no writes: slower writes would not help it.
type Backlog struct {
	Store    eventstore.Store
	Statuses func() map[string]Status
	Now      func() time.Time
	Most     time.Duration // 0: 5 seconds

	mu      sync.Mutex
	asked   bool     // a write asked since the last measurement
	slow    []string // projections that writes wait a moment for
	late    []string // projections that do not keep up
	changed signal.Signal

	marks []mark // when the log's head was at which position
	moved map[string]mark
}

type mark struct {
	position event.Position
	at       time.Time
}

// Run measures until ctx ends, while writes ask or events wait.
func (b *Backlog) Run(ctx context.Context) error {
	var (
		until   time.Time // writes asked a short time before
		waiting bool
	)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(measureInterval):
		}
		now := b.Now()
		if b.wasAsked() {
			until = now.Add(asksTimeout)
		}
		if !waiting && !now.Before(until) {
			continue
		}
		if head, err := b.Store.Head(ctx); err == nil { // without a log, there are no writes
			waiting = b.measure(head, b.Now())
		}
	}
}

// wasAsked reports whether a write asked since the last call.
func (b *Backlog) wasAsked() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	asked := b.asked
	b.asked = false
	return asked
}

// measure records the log's head at a time, and reports whether events wait for a projection.
func (b *Backlog) measure(head event.Position, now time.Time) (waiting bool) {
	most := b.Most
	if most == 0 {
		most = maxBacklog
	}
	if n := len(b.marks); n == 0 || b.marks[n-1].position < head {
		b.marks = append(b.marks, mark{head, now})
	}
	for len(b.marks) > 1 && now.Sub(b.marks[1].at) > most {
		b.marks = b.marks[1:]
	}
	if b.moved == nil {
		b.moved = map[string]mark{}
	}
	var slow, late []string
	for name, s := range b.Statuses() {
		if m, known := b.moved[name]; !known || m.position != s.Position {
			b.moved[name] = mark{s.Position, now}
		}
		waits := slices.IndexFunc(b.marks, func(m mark) bool { return m.position > s.Position })
		if waits < 0 || !s.Ready || s.Paused || s.Error != "" || now.Sub(b.moved[name].at) > movesTimeout {
			continue
		}
		waiting = true
		lag := now.Sub(b.marks[waits].at)
		if lag > pacedAbove {
			slow = append(slow, name)
		}
		if lag > most {
			late = append(late, name)
		}
	}
	slices.Sort(slow)
	slices.Sort(late)
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Equal(slow, b.slow) || !slices.Equal(late, b.late) {
		b.slow, b.late = slow, late
		b.changed.Notify()
	}
	return waiting
}

// Admit waits a moment for a projection that is a little behind, and for one that is far behind until it keeps up. It returns
// [ErrSaturated] after two seconds.
func (b *Backlog) Admit(ctx context.Context, projection string) error {
	var (
		deadline, moment <-chan time.Time
		paced            bool // it has waited its moment
	)
	for {
		b.mu.Lock()
		b.asked = true
		if !slices.Contains(b.late, projection) && (paced || !slices.Contains(b.slow, projection)) {
			b.mu.Unlock()
			return nil
		}
		changed := b.changed.Wait()
		b.mu.Unlock()
		if deadline == nil {
			deadline, moment = time.After(heldUp), time.After(pacedFor)
		}
		select {
		case <-moment:
			paced = true
		case <-changed:
		case <-deadline:
			return ErrSaturated
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
