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

// pending is a call to be recorded, with the result.
type pending struct {
	id          uuid.UUID
	endpoint    string
	contentType string
	hash, body  []byte
	result      chan receipt
}

type receipt struct {
	repeated bool
	err      error
}

// maxWritten is the maximum number of calls in one transaction.
const maxWritten = 500

// Receive records a call and reports whether it was recorded before. When it returns no error, the call is on disk. It returns [errFull]
// while too many calls wait. One transaction writes calls that arrive together.
func (b *Inbox) Receive(ctx context.Context, in Incoming) (repeated bool, err error) {
	if in.ResourceID != "" {
		in.Endpoint += "/" + in.ResourceID
	}
	p := &pending{endpoint: in.Endpoint, contentType: in.ContentType, result: make(chan receipt, 1)}
	if p.id, err = uuid.NewV7(); err != nil {
		return false, fmt.Errorf("name a call: %w", err)
	}
	of, what := "key", []byte(in.Key)
	if in.Key == "" {
		of, what = "body", in.Body
	}
	if p.hash, err = b.Vault.HMAC(ctx, hashes, []byte(in.Endpoint), []byte(of), what); err != nil {
		return false, err
	}
	if p.body, err = b.Vault.SealBytes(ctx, bodies, p.id.String(), in.Body); err != nil {
		return false, err
	}
	if err := b.enqueue(ctx, p); err != nil {
		return false, err
	}
	select {
	case r := <-p.result:
		return r.repeated, r.err
	case <-ctx.Done(): // the call may still be recorded; the provider repeats it
		return false, ctx.Err()
	}
}

// enqueue adds a call to the next transaction, and starts the writer unless it runs.
func (b *Inbox) enqueue(ctx context.Context, p *pending) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bytes+len(p.body) > maxPending {
		return errFull
	}
	b.pending, b.bytes = append(b.pending, p), b.bytes+len(p.body)
	if !b.writing {
		b.writing = true
		go b.writePending(context.WithoutCancel(ctx))
	}
	return nil
}

// writeTimeout is the timeout of a transaction that records calls.
const writeTimeout = 20 * time.Second

// writePending writes pending calls until there are none.
func (b *Inbox) writePending(ctx context.Context) {
	for {
		b.mu.Lock()
		batch := b.pending[:min(len(b.pending), maxWritten)]
		b.pending = b.pending[len(batch):]
		for _, p := range batch {
			b.bytes -= len(p.body)
		}
		if len(batch) == 0 {
			b.writing = false
			b.mu.Unlock()
			return
		}
		b.mu.Unlock()
		within, cancel := context.WithTimeout(ctx, writeTimeout)
		added, err := b.record(within, batch)
		cancel()
		for _, p := range batch {
			p.result <- receipt{repeated: err == nil && !added[p.id], err: err}
		}
	}
}

// record writes the calls and returns those that were not recorded before.
func (b *Inbox) record(ctx context.Context, batch []*pending) (added map[uuid.UUID]bool, err error) {
	ids, endpoints, types := make([]uuid.UUID, len(batch)), make([]string, len(batch)), make([]string, len(batch))
	hashed, closed := make([][]byte, len(batch)), make([][]byte, len(batch))
	for i, p := range batch {
		ids[i], endpoints[i], types[i], hashed[i], closed[i] = p.id, p.endpoint, p.contentType, p.hash, p.body
	}
	added = map[uuid.UUID]bool{}
	err = b.write(ctx, func(tx pgx.Tx) error {
		if err := b.room(ctx, tx); err != nil {
			return err
		}
		// Transactions insert in one order, which prevents deadlocks.
		rows, _ := tx.Query(ctx, `
			insert into inbox.call (id, endpoint, key_hash, received_at, content_type, body, verdict, due_at)
			select id, endpoint, key_hash, $6, content_type, body, 'waiting', now()
			from unnest($1::uuid[], $2::text[], $3::bytea[], $4::text[], $5::bytea[]) n (id, endpoint, key_hash, content_type, body)
			order by endpoint, key_hash, id
			on conflict (endpoint, key_hash) do nothing returning id`, ids, endpoints, hashed, types, closed, b.Now())
		fresh, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		if err != nil {
			return fmt.Errorf("record %d calls: %w", len(batch), err)
		}
		for _, id := range fresh {
			added[id] = true
		}
		b.waiting += len(fresh)
		return nil
	})
	if err == nil && len(batch) >= crowd {
		b.crowded.Store(b.Now().UnixNano())
	}
	b.wake()
	return added, err
}

// countInterval is the interval between counts of the waiting calls.
const countInterval = time.Second

// room returns [errFull] if too many calls wait. Only the writer calls it.
func (b *Inbox) room(ctx context.Context, tx pgx.Tx) error {
	if now := b.Now(); now.Sub(b.counted) >= countInterval {
		if err := tx.QueryRow(ctx, `select count(*) from inbox.call where verdict = 'waiting'`).Scan(&b.waiting); err != nil {
			return fmt.Errorf("count the calls that wait: %w", err)
		}
		b.counted = now
	}
	if b.waiting >= b.Room {
		return errFull
	}
	return nil
}
