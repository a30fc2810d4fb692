package app

import (
	"context"
	"sync"
	"time"

	"bahi/domain/event"
	"bahi/eventstore"
)

const (
	// paceEvery is how often the pace is adjusted.
	paceEvery = 100 * time.Millisecond

	// leastAhead is how many appends may be ahead of the fold at any pace.
	leastAhead = 64

	// paceWait bounds how long an append waits: a fold that hangs holds up no write for longer.
	paceWait = time.Second
)

// pacedLog holds appends back while a projection is saturated: reads wait for the projection, so appends
// that run ahead of it gain nothing. It allows as many appends ahead of the fold as the fold takes in one
// and a half times [paceEvery]. An append whose projection another process folds, or nobody, waits for nothing.
type pacedLog struct {
	EventLog

	// folded returns how far this process has folded the log, and a channel that is closed at its next move;
	// false when it does not fold.
	folded func() (at event.Position, moved <-chan struct{}, folds bool)

	turn chan struct{} // who waits for the fold; the others wait for the turn, in order

	mu       sync.Mutex
	under    int            // appends under way
	newest   event.Position // of those that ended
	ahead    int            // how many may be ahead
	measured time.Time
	was      event.Position // the fold, when measured
}

func newPacedLog(log EventLog, folded func() (event.Position, <-chan struct{}, bool)) *pacedLog {
	return &pacedLog{EventLog: log, folded: folded, turn: make(chan struct{}, 1), ahead: leastAhead}
}

// Append implements [eventstore.Store].
func (p *pacedLog) Append(ctx context.Context, stream string, expected eventstore.Expected, events ...event.New) (eventstore.Appended, error) {
	if err := p.admit(ctx); err != nil {
		return eventstore.Appended{}, err
	}
	done, err := p.EventLog.Append(ctx, stream, expected, events...)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.under--
	p.newest = max(p.newest, done.Position)
	return done, err
}

// admit waits until an append may go ahead.
func (p *pacedLog) admit(ctx context.Context) error {
	late := time.NewTimer(paceWait)
	defer late.Stop()
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-late.C:
		p.enter(0, false)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		at, moved, folds := p.folded()
		if p.enter(at, folds) {
			return nil
		}
		select {
		case <-moved:
		case <-late.C:
			p.enter(at, false)
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// enter counts an append in, unless there are too many ahead of the fold.
func (p *pacedLog) enter(at event.Position, folds bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if folds {
		now := time.Now()
		if took := now.Sub(p.measured); took >= paceEvery {
			p.ahead = leastAhead
			if at > p.was && took < time.Minute {
				p.ahead = max(leastAhead, int(float64(at-p.was)*1.5*paceEvery.Seconds()/took.Seconds()))
			}
			p.measured, p.was = now, at
		}
		if p.newest > at && int(p.newest-at)+p.under >= p.ahead {
			return false
		}
	}
	p.under++
	return true
}
