package projections

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/time/rate"
)

// control is how a build under way learns what an operator wants of it: that it pauses for a while,
// goes slower, may differ, or ends. A nil control wants nothing.
type control struct {
	paused   atomic.Bool
	accepted atomic.Bool
	over     atomic.Bool // it was kept for long enough
	limiter  atomic.Pointer[rate.Limiter]

	conn *pgx.Conn // of the watching goroutine, while it runs
	stop context.CancelFunc
	done sync.WaitGroup
}

// control begins to watch the session's row. The context that it answers ends, with [ErrFenced] as its
// cause, when the build is somebody else's or is cancelled: also in the middle of a long statement.
func (b Build) control(ctx context.Context, s *session) (context.Context, *control, error) {
	conn, err := connect(ctx, b.Config, b.Projection)
	if err != nil {
		return nil, nil, err
	}
	watched, cancel := context.WithCancelCause(ctx)
	watching, stop := context.WithCancel(ctx)
	c := &control{conn: conn, stop: func() { stop(); cancel(nil) }}
	builds := s.g.KeepUntil == nil // and may see that it is read before it hears that it let it be
	c.obey(s.g)
	c.done.Go(func() {
		for {
			select {
			case <-watching.Done():
				return
			case <-time.After(tellEvery):
			}
			g, found, err := oneGeneration(watching, c.conn, `name = $1 and generation = $2 and (owner = $3 or live and $5) and scratch = $4`,
				s.g.Name, s.g.Generation, s.owner, s.g.Scratch, builds)
			switch {
			case err != nil && c.conn.IsClosed():
				if conn, err := connect(watching, b.Config, b.Projection); err == nil {
					c.conn = conn
				}
			case err == nil && !found:
				cancel(ErrFenced)
				return
			case err == nil:
				c.obey(g)
			}
		}
	})
	return watched, c, nil
}

// end ends the watching, and the context that is watched.
func (c *control) end() {
	c.stop()
	c.done.Wait()
	_ = c.conn.Close(context.Background()) // nothing is left to lose
}

func (c *control) obey(g generation) {
	c.paused.Store(g.Paused)
	c.accepted.Store(g.Accepted)
	c.over.Store(g.Over)
	limit := rate.Inf
	if g.Throttle != nil {
		limit = rate.Limit(*g.Throttle)
	}
	if l := c.limiter.Load(); l == nil || l.Limit() != limit { // a new one: who waits must find its limit and its burst together
		c.limiter.Store(rate.NewLimiter(limit, batchAt(limit)))
	}
}

// batchAt returns how many events a batch has when so many are folded a second.
func batchAt(limit rate.Limit) int {
	if limit == rate.Inf {
		return fillBatch
	}
	return min(max(int(limit)/throttledBatches, 1), fillBatch)
}

// batch returns how many events the next batch should have.
func (c *control) batch() int {
	if c == nil {
		return fillBatch
	}
	return batchAt(c.limiter.Load().Limit())
}

// wait waits until so many events may be folded.
func (c *control) wait(ctx context.Context, events int) error {
	if c == nil {
		return nil
	}
	for c.paused.Load() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(tellEvery):
		}
	}
	limiter := c.limiter.Load()
	return limiter.WaitN(ctx, min(events, limiter.Burst()))
}
