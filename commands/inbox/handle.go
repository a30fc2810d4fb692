package inbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/commands/lease"
	"bahi/domain/fault"
	"bahi/eventstore"
	"bahi/eventstore/signal"
)

const (
	// maxHandled is the maximum number of calls that are handled together. Their appends share the log's fsyncs, and one statement stores
	// their results.
	maxHandled = 32

	// slow is the time after which another group starts in parallel, because some calls wait for a language model.
	slow = 100 * time.Millisecond

	// maxGroups limits the concurrent groups.
	maxGroups = 16

	// lookInterval is the interval at which Run searches for calls without a notification: failed calls, and calls of other processes.
	lookInterval = time.Second

	// maxAttempts is the maximum number of attempts at a call. The call is parked after the last one. The delay after the first attempt is
	// firstDelay, and triples each time. The attempts end after about three days.
	maxAttempts = 12
	firstDelay  = 3 * time.Second

	// sweepInterval is the interval at which Run removes old bodies.
	sweepInterval = time.Minute

	// handleTimeout is the timeout of handling a call, which may call a language model.
	handleTimeout = 2 * time.Minute
)

// wake notifies Run that calls wait.
func (b *Inbox) wake() {
	select {
	case b.came <- struct{}{}:
	default:
	}
}

// Run handles the waiting calls of all processes, and removes old bodies, until ctx ends. A call that is being handled then waits again.
func (b *Inbox) Run(ctx context.Context) {
	var groups sync.WaitGroup
	defer groups.Wait()
	groups.Go(func() { b.sweepUntil(ctx) })
	free := make(chan struct{}, maxGroups)
	for {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			return
		}
		full := make(chan bool, 1)
		groups.Go(func() {
			defer func() { <-free }()
			full <- b.group(ctx)
		})
		var more bool
		select {
		case more = <-full:
		case <-time.After(slow):
			more = true
		}
		if !more {
			select {
			case <-b.came:
			case <-time.After(lookInterval):
			case <-ctx.Done():
				return
			}
		}
	}
}

// sweepUntil removes old bodies regularly.
func (b *Inbox) sweepUntil(ctx context.Context) {
	for {
		if _, err := b.Sweep(ctx); err != nil && ctx.Err() == nil {
			b.Log.Warn("removing old webhook bodies failed; retrying", "error", err)
		}
		if signal.Sleep(ctx, sweepInterval) != nil {
			return
		}
	}
}

// group handles a group of due calls, and reports whether there may be more. It leases the calls, and holds no transaction meanwhile. If
// ctx ends, it releases the calls.
func (b *Inbox) group(ctx context.Context) (more bool) {
	asked, claim := time.Now(), uuid.New()
	all, err := b.claim(ctx, claim)
	if err != nil {
		if ctx.Err() == nil {
			b.Log.Error("claiming webhook calls failed; retrying", "error", err)
		}
		return false
	}
	if len(all) == 0 {
		return false
	}
	_ = lease.While(ctx, asked, b.renewing(claim, all), func(ctx context.Context) error {
		var handling sync.WaitGroup
		for _, h := range all {
			handling.Go(func() { b.handle(ctx, h) })
		}
		handling.Wait()
		return nil
	})
	if ctx.Err() != nil { // an interrupted attempt does not count
		b.giveBack(context.WithoutCancel(ctx), claim, all)
		return false
	}
	for _, h := range all {
		b.judge(h)
	}
	if err := b.settle(ctx, claim, all); err != nil {
		b.Log.Error("settling a group of webhook calls failed; settling each alone", "error", err)
		for _, h := range all {
			if err := b.settle(ctx, claim, []*handled{h}); err != nil {
				h.err = err
				h.verdict = waiting
				b.Log.Error("settling a webhook call failed; handling it again", "call", h.ID,
					"error", errors.Join(err, b.settle(ctx, claim, []*handled{h})))
			}
		}
	}
	return len(all) == maxHandled
}

// storable returns a text without the characters that Postgres cannot store.
func storable(text string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "")
}

// Results of a handled call.
const (
	waiting = "waiting"
	done    = "handled"
	ignored = "ignored" // the call had no effect
	parked  = "parked"
)

// handled is a call with its result.
type handled struct {
	Call
	Outcome

	attempt int32
	err     error
	verdict string
}

// claim leases due calls and opens their bodies. If a crash loses the claim, another process claims the calls.
func (b *Inbox) claim(ctx context.Context, claim uuid.UUID) (all []*handled, err error) {
	err = b.unsafe(ctx, func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, `
			update inbox.call c set due_at = now() + $2::interval, claim = $3, attempts = attempts + 1, error = null
			from (
				select id from inbox.call where verdict = 'waiting' and due_at <= now() order by received_at limit $1 for update skip locked
			) due
			where c.id = due.id returning c.id, c.endpoint, c.received_at, c.content_type, c.body, c.attempts`, maxHandled, lease.Duration, claim)
		all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (*handled, error) {
			h := &handled{}
			return h, row.Scan(&h.ID, &h.Endpoint, &h.ReceivedAt, &h.ContentType, &h.Body, &h.attempt)
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("claim calls: %w", err)
	}
	for _, h := range all {
		h.Endpoint, h.ResourceID, _ = strings.Cut(h.Endpoint, "/")
		if h.Body != nil {
			h.Body, h.err = b.Vault.OpenBytes(ctx, bodies, h.ID.String(), h.Body)
		}
	}
	return all, nil
}

// unsafe runs do in a transaction whose commit does not wait for the disk.
func (b *Inbox) unsafe(ctx context.Context, do func(tx pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, b.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `set local synchronous_commit = off`); err != nil {
			return err
		}
		return do(tx)
	})
}

// renewing returns a function that renews a claim. It returns false if another process has claimed one of the calls.
func (b *Inbox) renewing(claim uuid.UUID, all []*handled) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		done, err := b.Pool.Exec(ctx, `update inbox.call set due_at = now() + $3::interval where id = any($2) and claim = $1`, claim, idsOf(all),
			lease.Duration)
		return int(done.RowsAffected()) == len(all), err
	}
}

// giveBack makes claimed calls due without counting the attempt. If that fails, the calls are due when their lease ends.
func (b *Inbox) giveBack(ctx context.Context, claim uuid.UUID, all []*handled) {
	_, err := b.Pool.Exec(ctx, `
		update inbox.call set due_at = now(), claim = null, attempts = attempts - 1 where id = any($2) and claim = $1`, claim, idsOf(all))
	if err != nil {
		b.Log.Warn("releasing interrupted webhook calls failed; they wait for the end of their lease", "error", err)
	}
}

func idsOf(all []*handled) []uuid.UUID {
	ids := make([]uuid.UUID, len(all))
	for i, h := range all {
		ids[i] = h.ID
	}
	return ids
}

// handle executes a call.
func (b *Inbox) handle(ctx context.Context, h *handled) {
	handler, known := b.Handlers[h.Endpoint]
	switch {
	case h.err != nil:
		return
	case !known:
		h.err = Unreadable(fmt.Errorf("nothing handles calls of %s", h.Endpoint))
		return
	case h.Body == nil:
		h.err = Unreadable(ErrRemoved)
		return
	}
	defer func() {
		if p := recover(); p != nil {
			h.err = fmt.Errorf("the handler of %s panicked: %v", h.Endpoint, p)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, handleTimeout)
	defer cancel()
	h.Outcome, h.err = handler(ctx, h.Call)
}

// OfRules reports whether an error is a refusal by the rules or by the log. A retry would be refused again.
func OfRules(err error) bool {
	f, ok := errors.AsType[*fault.Error](err)
	return ok && f.Kind != fault.Unavailable || errors.Is(err, eventstore.ErrBadEvent)
}

// judge returns the result of a call.
func (b *Inbox) judge(h *handled) {
	if h.err == nil && len(h.Unread) > 0 {
		h.err = Unreadable(h.parts())
	}
	_, permanent := errors.AsType[unreadable](h.err)
	permanent = permanent || errors.Is(h.err, eventstore.ErrBadEvent) // no log ever accepts it
	switch {
	case h.err == nil && h.Effect == "":
		h.verdict = ignored
	case h.err == nil:
		h.verdict = done
	case permanent || h.attempt >= maxAttempts:
		b.Log.Warn("webhook call parked", "endpoint", h.Endpoint, "call", h.ID, "error", h.err)
		h.verdict = parked
	default:
		h.verdict = waiting
	}
}

// maxParts limits the parts that an error lists.
const maxParts = 10

// parts returns the error of a call with parts that cannot be handled.
func (h *handled) parts() error {
	list := strings.Join(h.Unread[:min(len(h.Unread), maxParts)], "; ")
	if more := len(h.Unread) - maxParts; more > 0 {
		list += fmt.Sprintf("; and %d more", more)
	}
	return errors.New(list)
}

// settle stores the results of the calls, except of those that another process has claimed since. A failed call keeps its body and waits.
func (b *Inbox) settle(ctx context.Context, claim uuid.UUID, all []*handled) error {
	n := len(all)
	verdicts, effects, errs, forgets, subjects, held := make([]string, n), make([]string, n), make([]string, n), make([]bool, n),
		make([]string, n), make([]string, n)
	for i, h := range all {
		verdicts[i] = h.verdict
		if h.verdict != waiting {
			effects[i], subjects[i] = storable(h.Effect), strings.Join(h.Subjects, "\n")
			held[i] = strings.Trim(strings.Join(strings.Fields(fmt.Sprint(h.Held)), ","), "[]")
		}
		switch {
		case h.err != nil:
			errs[i] = storable(h.err.Error())
		case h.verdict == ignored:
			errs[i], forgets[i] = storable(h.Reason), h.Forget
		default:
			forgets[i] = h.Forget
		}
	}
	err := b.unsafe(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			update inbox.call c set verdict = s.verdict, effect = nullif(s.effect, ''), error = nullif(s.error, ''),
				settled_at = case when s.verdict <> 'waiting' then $7::timestamptz end, body = case when not s.forget then c.body end,
				subjects = string_to_array(s.subjects, E'\n'), held_for = string_to_array(s.held, ',')::bigint[],
				claim = null, due_at = case when s.verdict = 'waiting' then now() + $9::interval * 3 ^ (c.attempts - 1) end
			from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::boolean[], $6::text[], $8::text[])
				s (id, verdict, effect, error, forget, subjects, held)
			where c.id = s.id and c.claim = $10`,
			idsOf(all), verdicts, effects, errs, forgets, subjects, b.Now(), held, firstDelay, claim)
		return err
	})
	if err != nil {
		return fmt.Errorf("settle %d calls: %w", n, err)
	}
	return nil
}
