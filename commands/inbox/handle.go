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

	"bahi/domain/fault"
	"bahi/eventstore"
)

const (
	// maxHandled bounds the calls that are handled together: their appends share the log's fsyncs, and their verdicts one statement.
	maxHandled = 32

	// slow is how long a group is alone. Later another one begins beside it: some calls wait for a language model.
	slow = 100 * time.Millisecond

	// maxGroups bounds the groups that are under way.
	maxGroups = 16

	// lookInterval is how often Run looks for calls of which it was not told: of a process that died, or that handles none.
	lookInterval = time.Second

	// handleTimeout bounds the handling of a call, which may take a language model's time.
	handleTimeout = 2 * time.Minute

	// Where crowd calls are recorded at once, more may be coming than can be handled. What comes in goes first: for crowdedFor, groups rest
	// for rest times as long as they took.
	crowd      = 16
	crowdedFor = 100 * time.Millisecond
	rest       = 3
)

// wake tells Run that calls wait.
func (b *Inbox) wake() {
	select {
	case b.came <- struct{}{}:
	default:
	}
}

// Run handles the calls that wait, whichever process recorded them, until ctx ends. A call that is being handled then waits again.
func (b *Inbox) Run(ctx context.Context) {
	var groups sync.WaitGroup
	defer groups.Wait()
	free := make(chan struct{}, maxGroups)
	for {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			return
		}
		full := make(chan bool, 1)
		began := b.Now()
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
		took := min(b.Now().Sub(began), slow)
		if !more {
			select {
			case <-b.came:
			case <-time.After(lookInterval):
			case <-ctx.Done():
				return
			}
		}
		if b.Now().UnixNano()-b.crowded.Load() < int64(crowdedFor) {
			select {
			case <-time.After(rest * took):
			case <-ctx.Done():
				return
			}
		}
	}
}

// group handles a group of calls that wait, and reports whether more may wait. If the group fails, each call is handled alone, so that one
// cannot hold up the others.
func (b *Inbox) group(ctx context.Context) (more bool) {
	ids, _, err := b.process(ctx, false, true, `verdict = 'waiting' and error is null order by received_at limit $1`, maxHandled)
	if err != nil && ctx.Err() == nil {
		b.Log.Error("a group of webhooks' calls was not handled; each is handled alone", "error", err)
		for _, id := range ids {
			if _, _, err := b.process(ctx, false, true, alone, id); err != nil && ctx.Err() == nil {
				b.Log.Error("a webhook's call was not handled; it will be tried again", "call", id, "error", errors.Join(err, b.postpone(ctx, id, err)))
			}
		}
		return false
	}
	return len(ids) == maxHandled
}

// postpone leaves a call to a job, so that it is in no group any more.
func (b *Inbox) postpone(ctx context.Context, id uuid.UUID, why error) error {
	return pgx.BeginFunc(ctx, b.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `update inbox.call set error = $2 where id = $1 and verdict = 'waiting'`, id,
			storable(why.Error())); err != nil {
			return fmt.Errorf("postpone call %s: %w", id, err)
		}
		return b.Jobs.Add(ctx, tx, []uuid.UUID{id})
	})
}

// storable returns a text without what Postgres cannot store.
func storable(text string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "")
}

// alone is the condition of one call that waits.
const alone = `verdict = 'waiting' and id = $1`

// Process handles a call that waits. last: no further attempt follows an error, so the call is parked. It does nothing if the call had
// its effect, or another process is handling it.
func (b *Inbox) Process(ctx context.Context, id uuid.UUID, last bool) error {
	_, failed, err := b.process(ctx, last, false, alone, id)
	return errors.Join(failed, err)
}

// process handles the calls that match a condition and are not locked by another process. It returns their ids and the failures. A failed
// call is parked after its last attempt, and otherwise gets a job that retries it. The locks end with the transaction, even if the process
// dies.
func (b *Inbox) process(ctx context.Context, last, again bool, where string, args ...any) (ids []uuid.UUID, failed, err error) {
	err = pgx.BeginFunc(ctx, b.Pool, func(tx pgx.Tx) error {
		// A verdict that a crash loses is given again.
		if _, err := tx.Exec(ctx, `set local synchronous_commit = off`); err != nil {
			return err
		}
		all, err := b.claim(ctx, tx, where, args...)
		if err != nil || len(all) == 0 {
			return err
		}
		var handling sync.WaitGroup
		for _, h := range all {
			ids = append(ids, h.ID)
			handling.Go(func() { b.handle(ctx, h) })
		}
		handling.Wait()
		if ctx.Err() != nil { // the attempt was interrupted, which says nothing about the calls
			return ctx.Err()
		}
		var retried []uuid.UUID
		for _, h := range all {
			if b.judge(h, last); h.verdict == waiting {
				failed, retried = errors.Join(failed, h.err), append(retried, h.ID)
			}
		}
		if err := b.settle(ctx, tx, all); err != nil || !again || len(retried) == 0 {
			return err
		}
		return b.Jobs.Add(ctx, tx, retried)
	})
	return ids, failed, err
}

// The verdicts.
const (
	waiting = "waiting"
	done    = "handled"
	ignored = "ignored" // it had no effect
	parked  = "parked"
)

// handled is a call with what became of it.
type handled struct {
	Call
	Outcome

	err     error
	verdict string
}

// claim locks the calls that a condition names and nobody has locked, and opens them.
func (b *Inbox) claim(ctx context.Context, tx pgx.Tx, where string, args ...any) ([]*handled, error) {
	rows, _ := tx.Query(ctx, `select id, endpoint, received_at, content_type, body from inbox.call where `+where+` for update skip locked`,
		args...)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (*handled, error) {
		h := &handled{}
		if err := row.Scan(&h.ID, &h.Endpoint, &h.ReceivedAt, &h.ContentType, &h.Body); err != nil {
			return nil, err
		}
		h.Endpoint, h.ResourceID, _ = strings.Cut(h.Endpoint, "/")
		if h.Body == nil {
			return h, nil
		}
		var err error
		h.Body, err = b.Vault.OpenBytes(ctx, bodies, h.ID.String(), h.Body)
		return h, err
	})
}

// handle makes a call's effect.
func (b *Inbox) handle(ctx context.Context, h *handled) {
	handler, known := b.Handlers[h.Endpoint]
	switch {
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

// OfRules reports whether an error is a refusal by the rules or of the log, which no further attempt changes.
func OfRules(err error) bool {
	f, ok := errors.AsType[*fault.Error](err)
	return ok && f.Kind != fault.Unavailable || errors.Is(err, eventstore.ErrBadEvent)
}

// judge gives a call its verdict.
func (b *Inbox) judge(h *handled, last bool) {
	if h.err == nil && len(h.Unread) > 0 {
		h.err = Unreadable(h.parts())
	}
	_, permanent := errors.AsType[unreadable](h.err)
	permanent = permanent || errors.Is(h.err, eventstore.ErrBadEvent) // no log ever takes it
	switch {
	case h.err == nil && h.Effect == "":
		h.verdict = ignored
	case h.err == nil:
		h.verdict = done
	case permanent || last:
		b.Log.Warn("a webhook's call is parked", "endpoint", h.Endpoint, "call", h.ID, "error", h.err)
		h.verdict = parked
	default:
		h.verdict = waiting
	}
}

// maxParts bounds the parts that an error names.
const maxParts = 10

// parts returns the error of a call of which some parts cannot be handled.
func (h *handled) parts() error {
	told := strings.Join(h.Unread[:min(len(h.Unread), maxParts)], "; ")
	if more := len(h.Unread) - maxParts; more > 0 {
		told += fmt.Sprintf("; and %d more", more)
	}
	return errors.New(told)
}

// settle writes the calls' verdicts. What failed keeps its body.
func (b *Inbox) settle(ctx context.Context, tx pgx.Tx, all []*handled) error {
	n := len(all)
	ids, verdicts, effects, errs, forgets, subjects := make([]uuid.UUID, n), make([]string, n), make([]string, n), make([]string, n),
		make([]bool, n), make([]string, n)
	held := make([]string, n)
	for i, h := range all {
		ids[i], verdicts[i] = h.ID, h.verdict
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
	_, err := tx.Exec(ctx, `
		update inbox.call c set verdict = s.verdict, effect = nullif(s.effect, ''), error = nullif(s.error, ''),
			settled_at = case when s.verdict <> 'waiting' then $7::timestamptz end, body = case when not s.forget then c.body end,
			subjects = string_to_array(s.subjects, E'\n'), held_for = string_to_array(s.held, ',')::bigint[]
		from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::boolean[], $6::text[], $8::text[]) s (id, verdict, effect, error, forget,
			subjects, held) where c.id = s.id`,
		ids, verdicts, effects, errs, forgets, subjects, b.Now(), held)
	if err != nil {
		return fmt.Errorf("settle %d calls: %w", n, err)
	}
	return nil
}
