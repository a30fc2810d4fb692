// Package inbox keeps the calls of providers' webhooks until their effect is in the log.
//
// A call is recorded before it is acknowledged, and its effect follows in the background. A call is recorded once under its key, so
// repetitions have no second effect. Calls that are due are handled in groups, under a lease that another process takes over after a crash.
// One that fails is tried again later, and one that cannot be handled is parked until an operator replays it.
//
// Calls are not events: their bodies are strangers' personal data, and are removed after a while.
package inbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"bahi/domain/fault"
	"bahi/eventstore/vault"
)

// The refusals of an inbox.
var (
	ErrFull    = fault.New(fault.Unavailable, "Too many calls wait to be handled, try again later")
	ErrNoCall  = fault.New(fault.NotFound, "Webhook call not found")
	ErrHandled = fault.New(fault.Conflict, "The call had its effect or waits for it")
	ErrRemoved = fault.New(fault.Conflict, "The call's body was removed")
)

// Call is a call that was recorded.
type Call struct {
	ID          uuid.UUID
	Endpoint    string
	ResourceID  string // what the proof is of, such as a channel's id; empty: the deployment
	ReceivedAt  time.Time
	ContentType string
	Body        []byte
}

// Outcome is what has followed from a call.
type Outcome struct {
	Effect string   // such as "order draft 12"; empty: none. It MUST NOT name a person
	Reason string   // why there is none; empty: nothing is known of it
	Unread []string // parts that cannot be handled: each its place and why. They park the call, whose other parts have had their effect
	Forget bool     // remove the body at once

	Held []int64 // channels that the call may be for, once that is proven: [Inbox.Deliver] handles it again

	Subjects []string // of the vault, whose values the body has: it is removed with their keys
}

// Handler makes the effect of a call. It MUST be idempotent: after a crash it gets the call again. Its error MUST NOT name a person.
type Handler func(ctx context.Context, c Call) (Outcome, error)

// unreadable is the error of a call that no further attempt can handle.
type unreadable struct{ error }

// Unreadable returns an error that parks the call at once.
func Unreadable(why error) error { return unreadable{why} }

// Config has the parts of an Inbox.
type Config struct {
	Pool     *pgxpool.Pool
	Vault    *vault.Vault
	Handlers map[string]Handler // by endpoint
	Keep     time.Duration      // how long bodies are kept; 0: 30 days
	Room     int                // most calls that wait; 0: 100,000
	Now      func() time.Time
	Log      *slog.Logger
}

// Inbox records calls and handles them.
type Inbox struct {
	Config

	mu      sync.Mutex
	pending []*pending // to be written
	bytes   int        // of their bodies
	writing bool

	counted time.Time // when waiting was counted, see room
	waiting int

	came    chan struct{} // has something when calls may wait
	crowded atomic.Int64  // when many calls came at once, in Unix nanoseconds
}

const (
	defaultKeep = 30 * 24 * time.Hour
	defaultRoom = 100_000

	// maxPending bounds the bytes of bodies that wait to be written.
	maxPending = 64 << 20

	// vault's names of keys
	bodies = "inbox"
	hashes = "inbox-keys"
)

// New returns an inbox in a database that was migrated.
func New(config Config) *Inbox {
	if config.Keep == 0 {
		config.Keep = defaultKeep
	}
	if config.Room == 0 {
		config.Room = defaultRoom
	}
	return &Inbox{Config: config, came: make(chan struct{}, 1)}
}

// Replay handles a call again that is parked, had no effect, or rests after a failure. It returns [ErrNoCall], [ErrHandled] or
// [ErrRemoved] if it cannot.
func (b *Inbox) Replay(ctx context.Context, id uuid.UUID) error {
	defer b.wake()
	return b.write(ctx, func(tx pgx.Tx) error {
		var (
			able, kept bool
		)
		err := tx.QueryRow(ctx, `select verdict in ('parked', 'ignored') or verdict = 'waiting' and error is not null, body is not null
			from inbox.call where id = $1 for update`, id).Scan(&able, &kept)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return ErrNoCall
		case err != nil:
			return fmt.Errorf("find call %s: %w", id, err)
		case !able:
			return ErrHandled
		case !kept:
			return ErrRemoved
		}
		if _, err := tx.Exec(ctx, `
			update inbox.call set verdict = 'waiting', claim = null, due_at = now(), attempts = 0, error = null, settled_at = null
			where id = $1`, id); err != nil {
			return fmt.Errorf("replay call %s: %w", id, err)
		}
		return nil
	})
}

// Deliver handles the calls again that were held for a channel.
func (b *Inbox) Deliver(ctx context.Context, channel int64) error {
	defer b.wake()
	return b.write(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			update inbox.call set verdict = 'waiting', claim = null, due_at = now(), attempts = 0, error = null, settled_at = null, held_for = '{}'
			where held_for @> array[$1::bigint] and held_for <> '{}' and verdict <> 'waiting' and body is not null`, channel)
		if err != nil {
			return fmt.Errorf("deliver the calls that were held for channel %d: %w", channel, err)
		}
		return nil
	})
}

// Body returns a call's body, nil if it was removed, or [ErrNoCall].
func (b *Inbox) Body(ctx context.Context, id uuid.UUID) ([]byte, error) {
	var body []byte
	err := b.Pool.QueryRow(ctx, `select body from inbox.call where id = $1`, id).Scan(&body)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, ErrNoCall
	case err != nil:
		return nil, fmt.Errorf("read call %s: %w", id, err)
	case body == nil:
		return nil, nil
	}
	return b.Vault.OpenBytes(ctx, bodies, id.String(), body)
}

// Sweep removes the bodies that are older than the inbox keeps them, and those with values of erased subjects, and returns their number.
// Their calls stay, so that a repetition is still known.
func (b *Inbox) Sweep(ctx context.Context) (int64, error) {
	tag, err := b.Pool.Exec(ctx, `
		update inbox.call set body = null where body is not null
			and (received_at < $1 or subjects <> '{}' and exists (select from vault.key k where k.subject = any(subjects)
				and k.destroyed_at is not null))`, b.Now().Add(-b.Keep))
	if err != nil {
		return 0, fmt.Errorf("remove old bodies: %w", err)
	}
	return tag.RowsAffected(), nil
}

// write runs do in a transaction that is on disk when it returns, whatever the pool's settings.
func (b *Inbox) write(ctx context.Context, do func(tx pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, b.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `set local synchronous_commit = on`); err != nil {
			return err
		}
		return do(tx)
	})
}
