package projections

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"golang.org/x/time/rate"

	"bahi/eventstore/signal"
)

// control passes an operator's requests to a running build: pause, slow down, accept differences, end. A nil control has no requests.
type control struct {
	paused   atomic.Bool
	accepted atomic.Bool
	over     atomic.Bool // a kept generation has expired
	limiter  atomic.Pointer[rate.Limiter]

	conn *pgx.Conn // used by the watching goroutine; nil until its first query, so that a short build opens no connection
	stop context.CancelFunc
	done sync.WaitGroup
}

// control starts to watch the session's row. If another process takes the build or the build is cancelled, the returned context ends with
// the cause [ErrFenced], even during a long statement.
func (b Build) control(ctx context.Context, s *session) (context.Context, *control) {
	watched, cancel := context.WithCancelCause(ctx)
	watching, stop := context.WithCancel(ctx)
	c := &control{stop: func() { stop(); cancel(nil) }}
	mine, owner := s.g, s.owner         // the session changes meanwhile
	builds := mine.Status != statusKept // such a row may become live, and lose its owner, between two queries
	c.obey(mine)
	c.done.Go(func() {
		for signal.Sleep(watching, progressInterval) == nil {
			if c.conn == nil || c.conn.IsClosed() {
				conn, err := connect(watching, b.Config, b.Projection)
				if err != nil {
					continue
				}
				c.conn = conn
			}
			g, found, err := oneGeneration(watching, c.conn, `name = $1 and generation = $2 and (owner = $3 or status = 'live' and $4)`,
				mine.Name, mine.Generation, owner, builds)
			switch {
			case err == nil && !found:
				cancel(ErrFenced)
				return
			case err == nil:
				c.obey(g)
			}
		}
	})
	return watched, c
}

// end stops the watching and ends the context.
func (c *control) end() {
	c.stop()
	c.done.Wait()
	if c.conn != nil {
		_ = c.conn.Close(context.Background()) // the connection is discarded
	}
}

func (c *control) obey(g generation) {
	c.paused.Store(g.Paused)
	c.accepted.Store(g.Accepted)
	c.over.Store(g.Over)
	limit := rate.Inf
	if g.Throttle != nil {
		limit = rate.Limit(*g.Throttle)
	}
	if l := c.limiter.Load(); l == nil || l.Limit() != limit { // a new limiter, because waiting callers must see its limit and burst together
		c.limiter.Store(rate.NewLimiter(limit, batchAt(limit)))
	}
}

// batchAt returns the number of events in a batch at a rate.
func batchAt(limit rate.Limit) int {
	if limit == rate.Inf {
		return fillBatch
	}
	return min(max(int(limit)/throttledBatches, 1), fillBatch)
}

// batch returns the number of events in the next batch.
func (c *control) batch() int {
	if c == nil {
		return fillBatch
	}
	return batchAt(c.limiter.Load().Limit())
}

// wait waits until the given number of events may be folded. A transaction may have more events than the limiter's burst.
func (c *control) wait(ctx context.Context, events int) error {
	if c == nil {
		return nil
	}
	for {
		for c.paused.Load() {
			if err := signal.Sleep(ctx, progressInterval); err != nil {
				return err
			}
		}
		limiter := c.limiter.Load()
		some := min(events, limiter.Burst())
		if err := limiter.WaitN(ctx, some); err != nil {
			return err
		}
		if events -= some; events == 0 {
			return nil
		}
	}
}
