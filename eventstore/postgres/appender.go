package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/journal"
)

const (
	// maxWaiting is the length of the queue. Callers block while it is full.
	maxWaiting = 4096

	// maxGroupEvents and maxGroupBytes limit one transaction. So they limit the wait of a small append.
	maxGroupEvents = 512
	maxGroupBytes  = 4 << 20

	// maxTries limits the tries of an append whose connection was lost, or whose stream changed between the refusal and the query for its
	// reason.
	maxTries = 3

	retryInterval = 50 * time.Millisecond
)

// timeouts has the timeouts of a store.
type timeouts struct {
	lock    time.Duration // time to acquire the log's lock, which another node may hold
	answer  time.Duration // time to append a group, including the lock
	ask     time.Duration // time to get a connection, and to run a query
	resolve time.Duration // time to learn the outcome of a group after its connection was lost, over all tries
	look    time.Duration // time to wait for a notice, before polling
}

var defaultTimeouts = timeouts{lock: 10 * time.Second, answer: 20 * time.Second, ask: 10 * time.Second, resolve: 10 * time.Second,
	look: pollInterval}

// pending is a transaction that waits for its group.
type pending struct {
	eventstore.Transaction

	ctx     context.Context //nolint:containedctx // context of the caller, who may give up waiting
	events  int
	bytes   int
	sent    int // bytes in an append to the journal
	tries   int
	claimed atomic.Bool            // set by its group, or by a caller that gave up waiting
	reply   chan eventstore.Result // has room for one result, so that a send never blocks
}

// newPending copies the events, because the tail keeps them after the caller may have reused the memory.
func newPending(ctx context.Context, t eventstore.Transaction) (*pending, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	p := &pending{Transaction: t, ctx: ctx, reply: make(chan eventstore.Result, 1)}
	for _, w := range t.Writes {
		p.events += len(w.Events)
		for _, e := range w.Events {
			p.bytes += len(e.Data) + len(e.Meta)
			p.sent += journal.Size(w.Stream, e)
		}
	}
	own := make([]byte, 0, p.bytes)
	keep := func(text []byte) []byte {
		own = append(own, text...)
		return own[len(own)-len(text) : len(own) : len(own)]
	}
	p.Writes = slices.Clone(t.Writes)
	for i := range p.Writes {
		events := slices.Clone(p.Writes[i].Events)
		for j := range events {
			events[j].Data, events[j].Meta = keep(events[j].Data), keep(events[j].Meta)
		}
		p.Writes[i].Events = events
	}
	return p, nil
}

// open reports whether the transaction has no exact expectation. Then only its event ids identify a retry.
func (p *pending) open() bool {
	return len(p.Writes) == 1 && p.Writes[0].Expected < eventstore.NoStream
}

// streams yields the streams that the transaction writes or checks. asOf is the position at which their expectations were true; 0 is a
// guess.
func (p *pending) streams(yield func(c eventstore.Check, asOf event.Position) bool) {
	for _, w := range p.Writes {
		asOf := p.AsOf
		if w.Guess {
			asOf = 0
		}
		if !yield(eventstore.Check{Stream: w.Stream, Expected: w.Expected}, asOf) {
			return
		}
	}
	for _, c := range p.Checks {
		if !yield(c, p.AsOf) {
			return
		}
	}
}

// claim returns true to the first caller.
func (p *pending) claim() bool { return p.claimed.CompareAndSwap(false, true) }

func (p *pending) fail(err error) { p.reply <- eventstore.Result{Err: err} }

func (p *pending) unavailable(why error) {
	p.fail(fmt.Errorf("%w: %w", eventstore.ErrUnavailable, why))
}

// appender appends in groups: one writer at a time takes all pending transactions into one transaction of Postgres. It validates
// each one separately, so that a conflict fails only that one.
type appender struct {
	queue    chan *pending
	life     context.Context //nolint:containedctx // the store's; when it ends, only the group in progress is finished
	turn     chan struct{}   // held by the goroutine that writes a group
	done     chan struct{}   // closed at the end
	config   *pgx.ConnConfig
	timeouts timeouts
	tail     *tail
	log      *slog.Logger
	journal  *journal.Journal // nil: none

	conn    *pgx.Conn  // nil: not connected
	session session    // session of conn, or of the last one
	leveled bool       // since conn was opened, or the journal ended unexpectedly
	locked  bool       // conn has a transaction with the log's lock, for the next group
	carried []*pending // for the next group

	window      window
	head        uuid.UUID     // id of the event at the window's head; nil after a new connection
	seen        atomic.Uint64 // the greatest position that this process has seen
	shared      bool          // another process has appended since conn was opened
	undisturbed int           // number of successive groups before which no other process appended
}

// session identifies a server process, even after its pid is reused.
type session struct {
	pid     uint32
	started time.Time
}

func newAppender(life context.Context, config *pgx.ConnConfig, p timeouts, t *tail, log *slog.Logger) *appender {
	a := &appender{
		life: life, queue: make(chan *pending, maxWaiting), turn: make(chan struct{}, 1), done: make(chan struct{}),
		config: config, timeouts: p, tail: t, log: log,
	}
	maps.Copy(config.RuntimeParams, map[string]string{
		// Only the lengths of arrays differ between executions, so a custom plan for each costs more than it saves.
		"plan_cache_mode": "force_generic_plan",
		// Statements after the lock must see all commits before it, whatever the database's default isolation.
		"default_transaction_isolation": "read committed",
		"lock_timeout":                  strconv.FormatInt(p.lock.Milliseconds(), 10),
		"statement_timeout":             "0",
		"idle_session_timeout":          "0",
		// A paused node must not hold the log's lock for long.
		"idle_in_transaction_session_timeout": "20000",
		// A node that loses power must not hold the log's lock until TCP notices, after up to two hours.
		"tcp_keepalives_idle":     "10",
		"tcp_keepalives_interval": "5",
		"tcp_keepalives_count":    "3",
	})
	return a
}

// enqueue puts an append into the queue. While the queue is full, the caller writes a group if no other goroutine does.
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

// result waits for the outcome of a queued append, or writes its group. If ctx ends first, the append leaves the queue. Once a group has
// claimed it, result waits for the outcome.
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
			select { // the last group's results are sent before done is closed
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

// lead writes one group and releases the turn. The waiting callers write in turn: a separate goroutine would cost a lone caller two
// goroutine switches per append, a fifth of its time.
func (a *appender) lead() {
	if a.life.Err() != nil {
		<-a.turn
		<-a.done // run keeps the turn
		return
	}
	if a.conn != nil && a.shared && a.journal == nil && a.undisturbed < calm && len(a.queue)+len(a.carried) > 0 {
		a.lock(context.Background())
	}
	if group := a.next(); len(group) > 0 {
		a.write(context.Background(), group)
	} else if a.locked {
		a.unlock(context.Background())
	}
	<-a.turn
}

// run waits until the store closes, and then for the group in progress.
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

// next returns the next group. Transactions to one stream keep their order. Within a group, event ids are distinct, and a large
// transaction is alone.
func (a *appender) next() (group []*pending) {
	var (
		carried = a.carried
		blocked = map[string]bool{} // streams of transactions left for a later group
		ids     = map[uuid.UUID]bool{}
		events  int
		bytes   int
		sent    int
	)
	a.carried = nil
	fits := func(p *pending) bool {
		if events >= maxGroupEvents || bytes >= maxGroupBytes || len(group) > 0 && p.events > maxGroupEvents {
			return false
		}
		if a.journal != nil && len(group) > 0 && sent+p.sent > journal.MaxBytes {
			return false
		}
		for c := range p.streams {
			if blocked[c.Stream] {
				return false
			}
		}
		return !slices.ContainsFunc(p.Writes, func(w eventstore.Write) bool {
			return slices.ContainsFunc(w.Events, func(e event.Proposed) bool { return ids[e.ID] })
		})
	}
	take := func(p *pending) {
		switch {
		case p.ctx.Err() != nil:
			p.fail(p.ctx.Err())
		case !fits(p):
			a.carried = append(a.carried, p)
			for c := range p.streams {
				blocked[c.Stream] = true
			}
		case !p.claim(): // its caller gave up
		default:
			group = append(group, p)
			for _, w := range p.Writes {
				for _, e := range w.Events {
					ids[e.ID] = true
				}
			}
			events += p.events
			bytes += p.bytes
			sent += p.sent
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

// write appends a group and sends the results to its callers.
func (a *appender) write(ctx context.Context, group []*pending) {
	if a.conn == nil {
		if err := a.connect(ctx); err != nil {
			a.refuseWaiting(err) // before the results are sent: a later append is a new try
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
		a.log.Warn("append connection lost; determining the outcome of its appends", "appends", len(group), "error", err)
		again = a.resolve(ctx, group, err)
	case errors.Is(err, journal.ErrMoved):
		again = group
	case errors.Is(err, eventstore.ErrInDoubt):
		for _, p := range group {
			p.fail(err)
		}
	case !concernsData(err):
		a.log.Error("append failed", "appends", len(group), "error", err)
		for _, p := range group {
			p.unavailable(err)
		}
	case len(group) > 1: // isolate the append that fails
		a.write(ctx, group[:len(group)/2])
		a.write(ctx, group[len(group)/2:])
	case isDouble(err) && group[0].AsOf > 0: // its AsOf is newer than its reads
		group[0].AsOf, group[0].AsOfID = 0, uuid.Nil
		a.write(ctx, group)
	case errors.Is(err, eventstore.ErrBadEvent):
		group[0].fail(err)
	default:
		group[0].fail(fmt.Errorf("%w: %w", eventstore.ErrBadEvent, err))
	}
	if again = a.retryable(again, err); len(again) > 0 {
		a.write(ctx, again)
	}
}

// retryable returns the appends to retry.
func (a *appender) retryable(group []*pending, why error) (again []*pending) {
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
