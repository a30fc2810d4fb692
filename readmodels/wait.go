package readmodels

import (
	"context"
	"time"

	"bahi/domain/event"
)

const (
	// pollInterval is the time between two looks at a projection of which no process tells this one.
	pollInterval = 5 * time.Millisecond

	// askedPoll is the same where the process that folds it tells: a notice may be lost.
	askedPoll = 20 * time.Millisecond

	// stayLate is how long reads look before they ask, after one of them has asked too early.
	stayLate = 100 * time.Millisecond
)

// wait is what a read waits for.
type wait struct {
	at      *At            // takes the log's head
	needed  event.Position // the read fails before this position
	least   event.Position // and its answer is stale before this one
	toHead  bool           // least is the log's head as of the read's arrival
	arrived bool           // that head is known
	most    time.Duration
	timer   <-chan time.Time // nil: nothing has been waited for
	ended   bool
}

// arrive takes the log's head, as of the read's arrival or later. It returns [ErrBeyondHead] when the read needs more.
func (w *wait) arrive(head event.Position) error {
	if w.needed > head {
		return ErrBeyondHead
	}
	if !w.arrived {
		w.arrived, w.least = true, w.needed
		if w.toHead {
			w.least = max(w.needed, head)
			w.at.arrived(head)
		}
	}
	return nil
}

// settle reports whether an answer of this state is stale, or why there is none.
func (w *wait) settle(s state, projections int) (stale bool, err error) {
	if s.live != projections {
		return false, errMoved
	}
	if err := w.arrive(s.head); err != nil {
		return false, err
	}
	switch {
	case s.position > s.head: // the projection is of another log, or of one that lost its tail
		return true, nil
	case s.position >= w.least, s.stands != goesOn && w.needed <= s.position:
		return s.position < w.least || s.stands == standsLost, nil
	case w.over() && s.position < w.needed:
		return false, ErrPositionTimeout
	case w.over():
		return true, nil
	}
	return false, errEarly
}

// over reports whether the time is up. It starts the time at its first call.
func (w *wait) over() bool {
	if w.timer == nil {
		w.timer = time.After(w.most)
	}
	select {
	case <-w.timer:
		w.ended = true
	default:
	}
	return w.ended
}

// pause waits for a move, for one poll unless poll is 0, or until the time is up.
func (w *wait) pause(ctx context.Context, moved <-chan struct{}, every time.Duration) error {
	var poll <-chan time.Time
	if every > 0 {
		poll = time.After(every)
	}
	select {
	case <-moved:
	case <-poll:
	case <-w.timer:
		w.ended = true
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// behind reports whether the view would most likely be asked too early.
func (r *Reader) behind(names []string, generations []int, w *wait) bool {
	if w.toHead && time.Now().UnixNano()-r.late.Load() < int64(stayLate) {
		return true
	}
	for i, name := range names {
		if at, _, folds := r.follow(name, generations[i], 0); folds && at < max(w.needed, w.least) {
			return true
		}
	}
	return false
}

// await waits until the view's projections have what the read asks for, or stop, or the time is up.
func (r *Reader) await(ctx context.Context, names []string, generations []int, w *wait) error {
	if !w.arrived {
		s, err := r.state(ctx, nil, nil)
		if err == nil {
			err = w.arrive(s.head)
		}
		if err != nil {
			return err
		}
	}
	for i, name := range names {
		for !w.over() {
			at, moved, folds := r.follow(name, generations[i], w.least)
			every := time.Duration(0)
			if !folds {
				if every = pollInterval; moved != nil {
					every = r.Poll
				}
				s, err := r.state(ctx, names[i:i+1], generations[i:i+1])
				if err != nil {
					return err
				}
				if at = s.position; s.live == 0 || s.stands != goesOn && at >= w.needed {
					break
				}
			}
			if at >= w.least {
				break
			}
			if err := w.pause(ctx, moved, every); err != nil {
				return err
			}
		}
	}
	return nil
}
