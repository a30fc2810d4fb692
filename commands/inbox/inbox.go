// Package inbox stores the calls of providers' webhooks until their effect is in the log.
//
// The inbox records a call before it acknowledges the call, and handles it in the background. It records a call once under its key, so a
// repeated call has no second effect. Groups of due calls are handled under a lease. Another process takes the lease over after a crash. A
// failed call is retried. A call that cannot be handled is parked until an operator replays it.
//
// Calls are not events, because their bodies have personal data of third parties and are deleted after a while.
package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/semaphore"

	"bahi/domain/fault"
	"bahi/eventstore/vault"
)

// The refusals of an inbox.
var (
	errFull    = fault.New(fault.Unavailable, "Too many calls wait to be handled, try again later")
	errNoCall  = fault.New(fault.NotFound, "Webhook call not found")
	ErrHandled = fault.New(fault.Conflict, "The call is handled or queued. Only parked or ignored calls can be replayed.")
	ErrRemoved = fault.New(fault.Conflict, "The call's body was removed")
)

// Call is a call that was recorded.
type Call struct {
	ID          uuid.UUID
	Endpoint    string
	ResourceID  string // id of the record, such as a channel, with the secret that signed the call; empty: the deployment
	ReceivedAt  time.Time
	ContentType string
	Body        []byte
}

// Outcome is the effect of a call.
type Outcome struct {
	Effect string   // such as "order draft 12"; empty: none. It MUST NOT name a person
	Reason string   // reason for no effect; empty: unknown
	Unread []string // parts that cannot be handled, each with place and reason. They park the call after its other parts had their effect
	Forget bool     // remove the body at once

	Held []int64 // unverified channels that may own the call: [Inbox.Deliver] handles it again after their verification

	Subjects []string // data subjects with values in the body: the body is deleted with their keys
}

// Handler handles a call. It MUST be idempotent, because it gets the call again after a crash. Its error MUST NOT name a person.
type Handler func(ctx context.Context, c Call) (Outcome, error)

// unreadable is the error of a call that no retry can handle.
type unreadable struct{ error }

// Unreadable returns an error that parks the call at once.
func Unreadable(why error) error { return unreadable{why} }

// Config has the parts of an Inbox.
type Config struct {
	Pool     *pgxpool.Pool
	Vault    *vault.Vault
	Handlers map[string]Handler // by endpoint
	Keep     time.Duration      // retention period of bodies; 0: 30 days
	Room     int                // maximum number of waiting calls; 0: 100,000
	Now      func() time.Time
	Log      *slog.Logger
}

// Inbox records calls and handles them.
type Inbox struct {
	Config

	memory *semaphore.Weighted // bytes of bodies that wait to be written

	mu      sync.Mutex
	counted time.Time // time of the last count of waiting calls, see room
	waiting int

	came chan struct{} // has a value if calls may wait
}

const (
	defaultKeep = 30 * 24 * time.Hour
	defaultRoom = 100_000

	// maxPending limits the bytes of bodies that wait to be written.
	maxPending = 64 << 20

	// vault's names of keys
	bodies = "inbox"
	hashes = "inbox-keys"
)

// New returns an inbox in a migrated database.
func New(config Config) *Inbox {
	config.Keep = cmp.Or(config.Keep, defaultKeep)
	if config.Room == 0 {
		config.Room = defaultRoom
	}
	return &Inbox{Config: config, memory: semaphore.NewWeighted(maxPending), came: make(chan struct{}, 1)}
}

// Replay queues a call again if it is parked, had no effect, or waits after a failure. Otherwise it returns [errNoCall], [ErrHandled] or
// [ErrRemoved].
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
			return errNoCall
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

// Deliver queues the calls that waited for the verification of a channel.
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

// Body returns a call's body, nil if it was removed, or [errNoCall].
func (b *Inbox) Body(ctx context.Context, id uuid.UUID) ([]byte, error) {
	var body []byte
	err := b.Pool.QueryRow(ctx, `select body from inbox.call where id = $1`, id).Scan(&body)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, errNoCall
	case err != nil:
		return nil, fmt.Errorf("read call %s: %w", id, err)
	case body == nil:
		return nil, nil
	}
	return b.Vault.OpenBytes(ctx, bodies, id.String(), body)
}

// Sweep removes bodies older than the retention period, and bodies with values of erased subjects. It returns their number. It does not
// delete the calls, so that a repeated call is still recognised.
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

// write runs do in a transaction. When it returns, the commit is on disk, whatever the pool's settings.
func (b *Inbox) write(ctx context.Context, do func(tx pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, b.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `set local synchronous_commit = on`); err != nil {
			return err
		}
		return do(tx)
	})
}
