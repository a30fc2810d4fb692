package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"bahi/eventstore"
)

const (
	// maxWaiting is how many appends may wait; more callers are held back until there is room.
	maxWaiting = 4096

	// maxGroupEvents and maxGroupBytes bound one transaction, and so how long a small append waits
	// behind others.
	maxGroupEvents = 512
	maxGroupBytes  = 4 << 20

	// maxTries is how often an append is begun that did not take place for no fault of its own: its
	// connection was lost, or its stream changed between the refusal and the look for its reason.
	maxTries = 3

	retryEvery = 50 * time.Millisecond
)

// patience is how long a store waits for what ought to be quick.
type patience struct {
	lock    time.Duration // for the log's lock, which another node may hold
	answer  time.Duration // for the answer to a group, the lock included
	ask     time.Duration // for a connection, and for the answer to a question
	resolve time.Duration // for news of a group whose connection was lost, over all tries
	look    time.Duration // for a notice, before it looks by itself
}

var usualPatience = patience{lock: 10 * time.Second, answer: 20 * time.Second, ask: 3 * time.Second, resolve: 10 * time.Second, look: pollEvery}

// pending is an append that waits for its group.
type pending struct {
	eventstore.Request

	ctx     context.Context //nolint:containedctx // of the caller, who may go while it waits
	bytes   int
	tries   int
	claimed atomic.Bool            // by its group, or by its caller who gave up waiting
	reply   chan eventstore.Result // takes one, never blocks
}

// newPending copies the events: they stay in the tail when their caller has long used its memory for
// something else.
func newPending(ctx context.Context, r eventstore.Request) (*pending, error) {
	if err := check(r); err != nil {
		return nil, err
	}
	p := &pending{Request: r, ctx: ctx, reply: make(chan eventstore.Result, 1)}
	for _, e := range r.Events {
		p.bytes += len(e.Data) + len(e.Meta)
	}
	own := make([]byte, 0, p.bytes)
	keep := func(text []byte) []byte {
		own = append(own, text...)
		return own[len(own)-len(text) : len(own) : len(own)]
	}
	p.Events = slices.Clone(r.Events)
	for i := range p.Events {
		e := &p.Events[i]
		e.Data, e.Meta = keep(e.Data), keep(e.Meta)
	}
	return p, nil
}

// claim returns true to the first who asks.
func (p *pending) claim() bool { return p.claimed.CompareAndSwap(false, true) }

func (p *pending) fail(err error) { p.reply <- eventstore.Result{Err: err} }

func (p *pending) unavailable(why error) {
	p.fail(fmt.Errorf("%w: %w", eventstore.ErrUnavailable, why))
}

// appender is the group-commit appender: one writer takes what is pending into one transaction and
// one round trip. Each append in it is checked on its own, so a conflict fails nobody else.
type appender struct {
	queue    chan *pending
	life     context.Context //nolint:containedctx // of the store: when it ends, only what is under way is finished
	turn     chan struct{}   // held by who writes a group
	done     chan struct{}   // closed at the end
	config   *pgx.ConnConfig
	patience patience
	tail     *tail
	log      *slog.Logger

	conn    *pgx.Conn  // nil: connect again
	session session    // of conn, or of the last one
	carried []*pending // for the next group: their stream was in this one already

	newest      placed // the last event that this process appended
	undisturbed int    // how many groups in a row found it the newest of all
}

// session names one of the server's processes for ever.
type session struct {
	pid     uint32
	started time.Time
}

func newAppender(life context.Context, config *pgx.ConnConfig, p patience, t *tail, log *slog.Logger) *appender {
	a := &appender{
		life: life, queue: make(chan *pending, maxWaiting), turn: make(chan struct{}, 1), done: make(chan struct{}),
		config: config, patience: p, tail: t, log: log,
	}
	maps.Copy(config.RuntimeParams, map[string]string{
		// The statements are few and their arrays vary in length only: planning again for each length costs
		// more than it finds.
		"plan_cache_mode": "force_generic_plan",
		// What follows the lock has to see what was committed before it, whatever the database's default is.
		"default_transaction_isolation": "read committed",
		"lock_timeout":                  strconv.FormatInt(p.lock.Milliseconds(), 10),
		"statement_timeout":             "0",
		"idle_session_timeout":          "0",
		// A node that lost its power in the middle of a group must not hold the log's lock for two hours.
		"tcp_keepalives_idle":     "10",
		"tcp_keepalives_interval": "5",
		"tcp_keepalives_count":    "3",
	})
	return a
}

// enqueue waits for room, and makes some when nobody else does.
func (a *appender) enqueue(p *pending) error {
	for {
		if err := p.ctx.Err(); err != nil {
			return err
		}
		select {
		case a.queue <- p:
			return nil
		default:
		}
		select {
		case a.queue <- p:
			return nil
		case a.turn <- struct{}{}:
			a.lead()
		case <-a.done:
			return fmt.Errorf("%w: %w", eventstore.ErrUnavailable, errClosed)
		case <-p.ctx.Done():
		}
	}
}

// result waits for what became of an append that was put into the queue, or takes the turn to write
// its group. A caller who goes takes it out of the queue; what its group has begun is waited for, since
// only then there is a truth to tell.
func (a *appender) result(p *pending) eventstore.Result {
	gone := p.ctx.Done()
	for {
		select {
		case r := <-p.reply:
			return r
		default:
		}
		select {
		case r := <-p.reply:
			return r
		case a.turn <- struct{}{}:
			a.lead()
		case <-a.done:
			select { // the last group is answered before done is closed
			case r := <-p.reply:
				return r
			default:
				return eventstore.Result{Err: fmt.Errorf("%w: %w", eventstore.ErrUnavailable, errClosed)}
			}
		case <-gone:
			if p.claim() {
				return eventstore.Result{Err: p.ctx.Err()}
			}
			gone = nil
		}
	}
}

// lead writes one group and gives the turn back. Whoever waits for an answer takes turns at this: a
// goroutine that does nothing else would cost a lone caller two changes of goroutine for each append,
// a fifth of its time.
func (a *appender) lead() {
	if a.life.Err() != nil {
		<-a.turn
		<-a.done // the turn is wanted for the end
		return
	}
	if group := a.next(); len(group) > 0 {
		a.write(context.Background(), group)
	}
	<-a.turn
}

// run waits for the end of the store's life, and then for the group that is under way.
func (a *appender) run() {
	<-a.life.Done()
	a.turn <- struct{}{} // for good
	close(a.done)
	a.disconnect()
}

func (a *appender) refuseWaiting(why error) {
	for _, p := range a.carried {
		p.unavailable(why)
	}
	a.carried = nil
	for {
		select {
		case p := <-a.queue:
			p.unavailable(why)
		default:
			return
		}
	}
}

// next takes what is pending. Two appends to one stream go into two groups, in order, since the second
// depends on what became of the first.
func (a *appender) next() (group []*pending) {
	var (
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
		case !p.claim(): // its caller has gone
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
	for events < maxGroupEvents && bytes < maxGroupBytes && len(a.carried) < maxWaiting {
		select {
		case p := <-a.queue:
			take(p)
		default:
			return group
		}
	}
	return group
}

// write appends a group and answers its callers.
func (a *appender) write(ctx context.Context, group []*pending) {
	if a.conn == nil {
		if err := a.connect(ctx); err != nil {
			a.refuseWaiting(err) // first: whoever asks after an answer is a new try
			for _, p := range group {
				p.unavailable(err)
			}
			return
		}
	}
	again, err := a.attempt(ctx, group)
	switch {
	case err == nil:
	case a.conn == nil:
		a.log.Warn("the append connection was lost, looking for what became of its events", "appends", len(group), "error", err)
		again = a.resolve(ctx, group, err)
	case !concernsData(err):
		a.log.Error("append failed", "appends", len(group), "error", err)
		for _, p := range group {
			p.unavailable(err)
		}
	case len(group) > 1: // one of them is at fault, and must not fail the others
		a.write(ctx, group[:len(group)/2])
		a.write(ctx, group[len(group)/2:])
	case isDouble(err):
		again = a.explain(ctx, group)
	default:
		group[0].fail(fmt.Errorf("%w: %w", eventstore.ErrBadEvent, err))
	}
	if again = a.worthAnother(again, err); len(again) > 0 {
		a.write(ctx, again)
	}
}

// worthAnother returns which appends to begin again.
func (a *appender) worthAnother(group []*pending, why error) (again []*pending) {
	for _, p := range group {
		p.tries++
		switch {
		case p.ctx.Err() != nil:
			p.fail(p.ctx.Err())
		case p.tries < maxTries:
			again = append(again, p)
		case why == nil:
			p.unavailable(errTooOften)
		default:
			p.unavailable(why)
		}
	}
	return again
}

func (a *appender) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, a.patience.ask)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, a.config)
	if err != nil {
		return err
	}
	// What is answered is on disk, also where a database's default would have it otherwise. Settings that
	// wait for more than that are left alone.
	const introduce = `
		select pid, backend_start, case when current_setting('synchronous_commit') = 'off' then set_config('synchronous_commit', 'on', false) end
		from pg_stat_activity where pid = pg_backend_pid()`
	a.conn = conn
	if err := conn.QueryRow(ctx, introduce).Scan(&a.session.pid, &a.session.started, nil); err != nil {
		a.disconnect()
		return err
	}
	a.undisturbed = 0 // the newest event that this process knows may not be there
	a.tail.forget()
	return nil
}

func (a *appender) disconnect() {
	if a.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), a.patience.ask)
	defer cancel()
	a.conn.Close(ctx) //nolint:errcheck // nothing is left to lose
	a.conn = nil
}

// resolve finds out what became of a group whose connection was lost, by reading, never by guessing.
// The lost session is ended first, so that it cannot commit behind our back. It answers which appends
// did not take place.
func (a *appender) resolve(ctx context.Context, group []*pending, why error) (undone []*pending) {
	ctx, cancel := context.WithTimeout(ctx, a.patience.resolve)
	defer cancel()
	lost := a.session
	for ctx.Err() == nil {
		err := a.connect(ctx)
		if err == nil {
			err = a.end(ctx, lost)
		}
		if err == nil {
			group, undone, err = a.lookUp(ctx, group, undone)
		}
		if err == nil {
			return undone
		}
		a.log.Debug("what became of appends is not known yet", "appends", len(group), "error", err)
		a.refuseWaiting(err) // they were not sent, and this may take long
		a.disconnect()
		select {
		case <-ctx.Done():
		case <-time.After(retryEvery):
		}
	}
	for _, p := range group {
		p.fail(fmt.Errorf("%w: %w", eventstore.ErrInDoubt, why))
	}
	return undone
}

// end terminates a lost session and waits until it is gone, with whatever it had begun.
func (a *appender) end(ctx context.Context, lost session) error {
	ctx, cancel := context.WithTimeout(ctx, a.patience.ask)
	defer cancel()
	const terminate = `select count(pg_terminate_backend(pid)) from pg_stat_activity where pid = $1 and backend_start = $2`
	for {
		var running int
		err := a.conn.QueryRow(ctx, terminate, lost.pid, lost.started).Scan(&running)
		if err != nil || running == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(retryEvery):
		}
	}
}

// lookUp responds to the callers of those appends of a group that are in the log. It returns the appends
// that it could not look up, and adds to undone those that are not there.
func (a *appender) lookUp(ctx context.Context, group, undone []*pending) (rest, _ []*pending, err error) {
	defer a.tail.heard(0) // followers fetch what is found from the database
	for i, p := range group {
		found, err := a.find(ctx, p)
		switch {
		case err != nil:
			return group[i:], undone, err
		case found.all:
			found.Replayed = false // as far as can be known
			p.reply <- eventstore.Result{Appended: found.Appended}
		default:
			undone = append(undone, p)
		}
	}
	return nil, undone, nil
}
