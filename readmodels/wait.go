package readmodels

import (
	"context"
	"time"

	"bahi/domain/event"
)

const (
	// pollInterval is the interval between queries of a projection's position if no process sends notices of the position.
	pollInterval = 5 * time.Millisecond

	// askedPoll is that interval if a process sends notices, which may get lost.
	askedPoll = 20 * time.Millisecond

	// stayLate is the time for which reads first wait for the projections after a read was too early.
	stayLate = 100 * time.Millisecond
)

// wait is the freshness that a read waits for.
type wait struct {
	at      *At            // records the head of the log
	needed  event.Position // if the tables have not reached this position, the read fails
	least   event.Position // if the tables have not reached this position, the result is stale
	toHead  bool           // least is the head of the log when the read began
	arrived bool           // head is known
	most    time.Duration
	timer   <-chan time.Time // nil: the wait has not begun
	ended   bool
}

// arrive records the head of the log at or after the beginning of the read. It returns [ErrBeyondHead] if the read requires a later
// position.
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

// settle reports whether a result of this state is stale. It returns errEarly or another error if there is no result yet.
func (w *wait) settle(s state, projections int) (stale bool, err error) {
	if s.live != projections {
		return false, errMoved
	}
	if err := w.arrive(s.head); err != nil {
		return false, err
	}
	switch {
	case s.position > s.head: // the projection is of another log, or the log has lost its last events
		return true, nil
	case s.position >= w.least, s.worst != isRunning && w.needed <= s.position:
		return s.position < w.least || s.worst == isForeign, nil
	case w.over() && s.position < w.needed:
		return false, ErrPositionTimeout
	case w.over():
		return true, nil
	}
	return false, errEarly
}

// over reports whether the waiting time has passed. The first call starts it.
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

// pause waits until a projection moves, the poll interval passes (0: never), or the waiting time ends.
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

// behind reports whether the projections probably have too few events yet.
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

// await waits until the projections have reached the position that the read requires, stop, or the waiting time ends.
func (r *Reader) await(ctx context.Context, names []string, generations []int, w *wait) error {
	if !w.arrived {
		head, err := r.head(ctx)
		if err == nil {
			err = w.arrive(head)
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
				if at = s.position; s.live == 0 || s.worst != isRunning && at >= w.needed {
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
