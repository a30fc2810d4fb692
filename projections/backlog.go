package projections

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/signal"
)

// ErrSaturated reports that a projection is slower than the writes.
var ErrSaturated = errors.New("the projection does not keep up with the writes")

const (
	measureInterval = 25 * time.Millisecond

	// pacedAbove is the time that events may wait for a projection before writes briefly wait too. The projection then has the processor to
	// itself, and reads have new writes after at most a quarter of a second. pacedFor is the maximum wait of a write.
	pacedAbove = 150 * time.Millisecond
	pacedFor   = 250 * time.Millisecond

	// freshFor is the time for which the position that a process on standby read delays writes. It reads the next one much later, and the
	// working process delays its own writes meanwhile.
	freshFor = 2 * measureInterval

	// maxBacklog is the time that events may wait for a projection before writes are refused. It equals the maximum wait of a read for a
	// position (CONTRACT.md 0.3): after a longer time, no read would have the write.
	maxBacklog = 5 * time.Second

	// heldUp is the maximum delay of a write before it is refused.
	heldUp = 2 * time.Second

	// asksTimeout is the time for which measuring continues after a write. A process without writes makes no queries.
	asksTimeout = maxBacklog

	// movesTimeout is the maximum time of a batch. After it, the projection is considered hanging: writes do not wait for it, and another
	// process takes over.
	movesTimeout = 2 * time.Second
)

// Backlog measures how long events wait for projections, and delays writes if a projection is too slow. A projection that is parked,
// paused, hanging or waiting for the database delays no writes, because slower writes would not help it.
type Backlog struct {
	Store    eventstore.Store
	Statuses func() map[string]Status
	Now      func() time.Time
	MaxWait  time.Duration // 0: 5 seconds

	mu       sync.Mutex
	asked    bool // there was a write since the last measurement
	requests signal.Signal
	slow     []string // projections for which writes briefly wait
	late     []string // projections slower than the writes
	changed  signal.Signal

	marks []mark // times of the log's heads
	moved map[string]mark
}

type mark struct {
	position event.Position
	at       time.Time
}

// Run measures until ctx ends, while there are writes or waiting events.
func (b *Backlog) Run(ctx context.Context) error {
	var (
		until   time.Time // there was a write a short time before
		waiting bool
	)
	for {
		requests := b.requests.Wait()
		if b.wasAsked() {
			until = b.Now().Add(asksTimeout)
		}
		var again <-chan time.Time
		if waiting || b.Now().Before(until) {
			requests, again = nil, time.After(measureInterval)
			if head, err := b.Store.Head(ctx); err == nil { // without a log there are no writes
				waiting = b.measure(head, b.Now())
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-requests:
		case <-again:
		}
	}
}

// wasAsked reports whether there was a write since the last call.
func (b *Backlog) wasAsked() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	asked := b.asked
	b.asked = false
	return asked
}

// measure records the log's head with its time, and reports whether events wait for a projection.
func (b *Backlog) measure(head event.Position, now time.Time) (waiting bool) {
	most := b.MaxWait
	most = cmp.Or(most, maxBacklog)
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
		seen := now
		if !s.ReadAt.IsZero() { // another process works on it
			seen = s.ReadAt
		}
		lag := seen.Sub(b.marks[waits].at)
		if lag > pacedAbove && now.Sub(seen) <= freshFor {
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

// Admit delays a write. It waits briefly if the projection lags a little, and until the projection catches up if it lags far. It returns
// [ErrSaturated] after two seconds.
func (b *Backlog) Admit(ctx context.Context, projection string) error {
	var (
		deadline, moment <-chan time.Time
		paced            bool // the write has waited for pacedFor
	)
	for {
		b.mu.Lock()
		if !b.asked {
			b.asked = true
			b.requests.Notify()
		}
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
