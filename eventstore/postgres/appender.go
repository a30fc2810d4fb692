package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/eventstore"
)

const (
	// maxWaiting is how many appends may wait; more callers are held back until there is room.
	maxWaiting = 4096

	// maxGroupEvents and maxGroupBytes bound one transaction, and so how long a small append waits
	// behind others.
	maxGroupEvents = 512
	maxGroupBytes  = 4 << 20

	// resolveFor is how long the outcome of an append is looked for after its connection was lost.
	resolveFor = 5 * time.Second

	retryEvery = 50 * time.Millisecond
)

// pending is an append that waits for its group.
type pending struct {
	eventstore.Request

	ctx   context.Context //nolint:containedctx // of the caller, who may go while it waits
	bytes int
	reply chan eventstore.Result // takes one, never blocks
}

func newPending(ctx context.Context, r eventstore.Request) (*pending, error) {
	if err := check(r); err != nil {
		return nil, err
	}
	p := &pending{Request: r, ctx: ctx, reply: make(chan eventstore.Result, 1)}
	for _, e := range r.Events {
		p.bytes += len(e.Data) + len(e.Meta)
	}
	return p, nil
}

func (p *pending) fail(err error) { p.reply <- eventstore.Result{Err: err} }

// appender is the group-commit appender: one writer takes what is pending into one transaction and
// one round trip. Each append in it is checked on its own, so a conflict fails nobody else.
type appender struct {
	queue  chan *pending
	done   chan struct{}
	config *pgx.ConnConfig
	tail   *tail
	log    *slog.Logger

	conn    *pgx.Conn  // nil: connect anew
	session session    // of conn, or of the last one
	carried []*pending // for the next group: their stream was in this one already
}

// session names one of the server's processes for ever.
type session struct {
	pid     uint32
	started time.Time
}

func newAppender(config *pgx.ConnConfig, t *tail, log *slog.Logger) *appender {
	// The statements are few and their arrays vary in length only: planning anew for each length costs
	// more than it finds.
	config.RuntimeParams["plan_cache_mode"] = "force_generic_plan"
	return &appender{
		queue: make(chan *pending, maxWaiting), done: make(chan struct{}),
		config: config, tail: t, log: log,
	}
}

// enqueue waits for room.
func (a *appender) enqueue(p *pending) error {
	select {
	case a.queue <- p:
		return nil
	case <-a.done:
		return fmt.Errorf("%w: %w", eventstore.ErrUnavailable, errClosed)
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
}

// result waits for what became of an append that was put into the queue.
func (a *appender) result(p *pending) eventstore.Result {
	select {
	case r := <-p.reply:
		return r
	case <-a.done:
	}
	select { // the last group is answered before done is closed
	case r := <-p.reply:
		return r
	default:
		return eventstore.Result{Err: fmt.Errorf("%w: %w", eventstore.ErrUnavailable, errClosed)}
	}
}

// run writes groups until ctx ends. A group under way is finished first.
func (a *appender) run(ctx context.Context) {
	defer close(a.done)
	for {
		group := a.next(ctx)
		if group == nil {
			if a.conn != nil {
				a.conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing is left to lose
			}
			return
		}
		a.write(context.WithoutCancel(ctx), group)
	}
}

func (a *appender) refuseWaiting(why error) {
	for _, p := range a.carried {
		p.fail(fmt.Errorf("%w: %w", eventstore.ErrUnavailable, why))
	}
	a.carried = nil
	for {
		select {
		case p := <-a.queue:
			p.fail(fmt.Errorf("%w: %w", eventstore.ErrUnavailable, why))
		default:
			return
		}
	}
}

// next takes what is pending, waiting for the first. It answers nil when ctx has ended. Two appends
// to one stream go into two groups, in order, since the second depends on what became of the first.
func (a *appender) next(ctx context.Context) []*pending {
	var (
		group   []*pending
		carried = a.carried
		streams = map[string]bool{}
		events  int
		bytes   int
	)
	a.carried = nil
	take := func(p *pending) {
		switch {
		case p.ctx.Err() != nil:
			p.fail(p.ctx.Err())
		case streams[p.Stream] || events >= maxGroupEvents || bytes >= maxGroupBytes:
			a.carried = append(a.carried, p)
			streams[p.Stream] = true // those behind it stay behind it
		default:
			group = append(group, p)
			streams[p.Stream] = true
			events += len(p.Events)
			bytes += p.bytes
		}
	}
	for _, p := range carried {
		take(p)
	}
	for {
		if len(group) == 0 && len(a.carried) == 0 {
			select {
			case p := <-a.queue:
				take(p)
				continue
			case <-ctx.Done():
				return nil
			}
		}
		if events >= maxGroupEvents || bytes >= maxGroupBytes || len(a.carried) >= maxWaiting {
			return group
		}
		select {
		case p := <-a.queue:
			take(p)
		default:
			if len(group) > 0 {
				return group
			}
		}
	}
}

// write appends a group and answers its callers.
func (a *appender) write(ctx context.Context, group []*pending) {
	if a.conn == nil {
		if err := a.connect(ctx); err != nil {
			for _, p := range group {
				p.fail(fmt.Errorf("%w: %w", eventstore.ErrUnavailable, err))
			}
			a.refuseWaiting(err)
			return
		}
	}
	results, err := a.attempt(ctx, group)
	switch {
	case err == nil:
		for i, p := range group {
			p.reply <- results[i]
		}
	case a.conn == nil: // the connection was lost in the middle
		a.log.Warn("the append connection was lost, looking for what became of its events", "appends", len(group), "error", err)
		a.resolve(ctx, group, err)
	case len(group) > 1 && concernsData(err): // one of them is at fault, and must not fail the others
		for _, p := range group {
			a.write(ctx, []*pending{p})
		}
	case concernsData(err):
		group[0].fail(fmt.Errorf("%w: %w", eventstore.ErrBadEvent, err))
	default:
		a.log.Error("append failed", "appends", len(group), "error", err)
		for _, p := range group {
			p.fail(fmt.Errorf("%w: %w", eventstore.ErrUnavailable, err))
		}
	}
}

func (a *appender) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, resolveFor)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, a.config)
	if err != nil {
		return err
	}
	err = conn.QueryRow(ctx, `select pg_backend_pid(), backend_start from pg_stat_activity where pid = pg_backend_pid()`).
		Scan(&a.session.pid, &a.session.started)
	if err != nil {
		conn.Close(ctx) //nolint:errcheck // the first error tells more
		return err
	}
	a.conn = conn
	return nil
}

// resolve finds out what became of a group whose connection was lost, by reading, never by guessing.
// The lost session is ended first, so that it cannot commit behind our back. Meanwhile new appends
// are refused: none of them was sent.
func (a *appender) resolve(ctx context.Context, group []*pending, why error) {
	ctx, cancel := context.WithTimeout(ctx, resolveFor)
	defer cancel()
	lost := a.session
	for ctx.Err() == nil {
		a.refuseWaiting(why)
		err := a.connect(ctx)
		var results []eventstore.Result
		if err == nil {
			results, err = a.lookUp(ctx, lost, group, why)
		}
		if err == nil {
			for i, p := range group {
				p.reply <- results[i]
			}
			return
		}
		if a.conn != nil {
			a.conn.Close(ctx) //nolint:errcheck // it is given up
			a.conn = nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryEvery):
		}
	}
	for _, p := range group {
		p.fail(fmt.Errorf("%w: %w", eventstore.ErrInDoubt, why))
	}
}

// lookUp reads which appends of a group took place in a lost session.
func (a *appender) lookUp(ctx context.Context, lost session, group []*pending, why error) ([]eventstore.Result, error) {
	const alive = `from pg_stat_activity where pid = $1 and backend_start = $2`
	for {
		var running int
		err := a.conn.QueryRow(ctx, `select count(pg_terminate_backend(pid)) `+alive, lost.pid, lost.started).Scan(&running)
		if err != nil {
			return nil, err
		}
		if running == 0 {
			break
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(retryEvery):
		}
	}
	results := make([]eventstore.Result, len(group))
	var found []event.Stored
	for i, p := range group {
		last := p.Events[len(p.Events)-1]
		var position int64
		err := a.conn.QueryRow(ctx, `select position, revision, recorded_at from log.event where stream = $1 and id = $2`, p.Stream, last.ID).
			Scan(&position, &results[i].Revision, &results[i].At)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			results[i].Err = fmt.Errorf("%w: %w", eventstore.ErrUnavailable, why)
		case err != nil:
			return nil, err
		default:
			results[i].Position = event.Position(position)
			found = append(found, event.Stored{Position: event.Position(position)})
		}
	}
	if len(found) > 0 {
		a.tail.heard(0) // followers fetch them from the database
	}
	return results, nil
}
