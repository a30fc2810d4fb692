package readmodels

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

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
	needed  event.Position // the read fails before this position
	least   event.Position // and its answer is stale before this one
	toHead  bool           // least is the log's head as of the read's arrival
	told    func(head event.Position)
	arrived bool // that head is known
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
			w.told(head)
		}
	}
	return nil
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
func (r *Reader) behind(s *statement, w *wait) bool {
	if w.toHead && r.looks.lately() {
		return true
	}
	for i, name := range s.names {
		if at, _, folds := r.follow(name, s.generations[i], 0); folds && at < max(w.needed, w.least) {
			return true
		}
	}
	return false
}

// await waits until the view's projections have what the read asks for, or stop, or the time is up.
func (r *Reader) await(ctx context.Context, s *statement, w *wait) error {
	if !w.arrived {
		l, err := r.look(ctx)
		if err == nil {
			err = w.arrive(l.head)
		}
		if err != nil {
			return err
		}
	}
	for i, name := range s.names {
		for !w.over() {
			at, moved, folds := r.follow(name, s.generations[i], w.least)
			every := time.Duration(0)
			if !folds {
				if every = pollInterval; moved != nil {
					every = r.Poll
				}
				l, err := r.look(ctx)
				if err != nil {
					return err
				}
				p, live := l.tables[generation{name, s.generations[i]}]
				if at = p.at; !live || p.stands != goesOn && at >= w.needed {
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

// generation names the tables of a projection.
type generation struct {
	name string
	nth  int
}

// look is how far the log and the live projections are.
type look struct {
	head   event.Position
	tables map[generation]struct {
		at     event.Position
		stands standing
	}
	err  error
	done chan struct{}
}

// looks lets reads that wait share a look. A look that began before a read arrived is not for that read:
// it may not see what was appended in between.
type looks struct {
	mu      sync.Mutex
	running bool
	next    *look // not begun

	asked atomic.Int64 // when a view was last asked too early, in nanoseconds
}

// late notes that a view was asked too early.
func (l *looks) late() { l.asked.Store(time.Now().UnixNano()) }

// lately reports whether that was a moment ago.
func (l *looks) lately() bool { return time.Now().UnixNano()-l.asked.Load() < int64(stayLate) }

// look returns a look that began after the call.
func (r *Reader) look(ctx context.Context) (*look, error) {
	l := &r.looks
	l.mu.Lock()
	if l.next == nil {
		l.next = &look{done: make(chan struct{})}
	}
	mine := l.next
	if !l.running {
		l.running = true
		go r.lookAsLongAsAsked(context.WithoutCancel(ctx))
	}
	l.mu.Unlock()
	select {
	case <-mine.done:
		return mine, mine.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (r *Reader) lookAsLongAsAsked(ctx context.Context) {
	l := &r.looks
	for {
		l.mu.Lock()
		now := l.next
		l.next, l.running = nil, now != nil
		l.mu.Unlock()
		if now == nil {
			return
		}
		now.err = r.lookOnce(ctx, now)
		close(now.done)
	}
}

func (r *Reader) lookOnce(ctx context.Context, into *look) error {
	ctx, cancel := context.WithTimeout(ctx, lookupPatience)
	defer cancel()
	into.tables = map[generation]struct {
		at     event.Position
		stands standing
	}{}
	rows, _ := r.pool.Query(ctx, `select `+headSQL+`, g.name, g.generation, g.position, `+standsSQL+
		` from (select) one left join projection.generation g on g.live`)
	var (
		head   int64
		name   *string
		nth    *int
		at     *int64
		stands standing
	)
	_, err := pgx.ForEachRow(rows, []any{&head, &name, &nth, &at, &stands}, func() error {
		into.head = event.Position(head)
		if name != nil {
			p := into.tables[generation{*name, *nth}]
			p.at, p.stands = event.Position(*at), stands
			into.tables[generation{*name, *nth}] = p
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("look how far the projections are: %w", err)
	}
	return nil
}
