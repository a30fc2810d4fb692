package inbox

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Incoming is a call with a verified signature.
type Incoming struct {
	Endpoint    string
	ResourceID  string // id of the record in the path; keys are unique per record
	Key         string // identifies repeated deliveries of the call; empty: the body identifies them
	ContentType string
	Body        []byte
}

// writeTimeout is the timeout of the transaction that records a call.
const writeTimeout = 20 * time.Second

// Receive records a call and reports whether it was recorded before. When it returns no error, the call is on disk. It returns [errFull]
// while too many calls wait. A call is recorded even if ctx ends meanwhile.
func (b *Inbox) Receive(ctx context.Context, in Incoming) (repeated bool, err error) {
	if in.ResourceID != "" {
		in.Endpoint += "/" + in.ResourceID
	}
	id, err := uuid.NewV7()
	if err != nil {
		return false, fmt.Errorf("name a call: %w", err)
	}
	of, what := "key", []byte(in.Key)
	if in.Key == "" {
		of, what = "body", in.Body
	}
	hash, err := b.Vault.HMAC(ctx, hashes, []byte(in.Endpoint), []byte(of), what)
	if err != nil {
		return false, err
	}
	body, err := b.Vault.SealBytes(ctx, bodies, id.String(), in.Body)
	if err != nil {
		return false, err
	}
	if !b.memory.TryAcquire(int64(len(body))) {
		return false, errFull
	}
	defer b.memory.Release(int64(len(body)))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	if err := b.room(ctx); err != nil {
		return false, err
	}
	err = b.write(ctx, func(tx pgx.Tx) error {
		done, err := tx.Exec(ctx, `
			insert into inbox.call (id, endpoint, key_hash, received_at, content_type, body, verdict, due_at)
			values ($1, $2, $3, $4, $5, $6, 'waiting', now()) on conflict (endpoint, key_hash) do nothing`,
			id, in.Endpoint, hash, b.Now(), in.ContentType, body)
		repeated = done.RowsAffected() == 0
		return err
	})
	if err != nil {
		return false, fmt.Errorf("record a call: %w", err)
	}
	b.wake()
	return repeated, nil
}

// countInterval is the interval between counts of the waiting calls.
const countInterval = time.Second

// room takes the place of one more call. It returns [errFull] if too many calls wait.
func (b *Inbox) room(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := b.Now(); now.Sub(b.counted) >= countInterval {
		if err := b.Pool.QueryRow(ctx, `select count(*) from inbox.call where verdict = 'waiting'`).Scan(&b.waiting); err != nil {
			return fmt.Errorf("count the calls that wait: %w", err)
		}
		b.counted = now
	}
	if b.waiting >= b.Room {
		return errFull
	}
	b.waiting++
	return nil
}
