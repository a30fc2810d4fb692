package messagingreact

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	leaseFor      = 15 * time.Second
	renewInterval = 4 * time.Second
)

// WithLease lets one job of all nodes answer a contact at a time. It returns false if another job does. No connection is held meanwhile.
// The context of do ends when the lease can have ended: a job counts from when it asked, and not from when it was answered.
func WithLease(ctx context.Context, pool *pgxpool.Pool, contact int64, do func(context.Context) error) (held bool, err error) {
	holder, until := uuid.New(), time.Now().Add(leaseFor)
	err = pool.QueryRow(ctx, `
		insert into knowledge.lease (contact_id, holder, until) values ($1, $2, now() + $3::interval)
		on conflict (contact_id) do update set holder = excluded.holder, until = excluded.until where lease.until < now()
		returning true`, contact, holder, leaseFor).Scan(&held)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	// A lease that is not released ends by itself, so that its end need not be on the disk.
	defer func() {
		_, _ = pool.Exec(context.WithoutCancel(ctx), `
			with unsafe as materialized (select set_config('synchronous_commit', 'off', true))
			delete from knowledge.lease using unsafe where contact_id = $1 and holder = $2`, contact, holder)
	}()
	working, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		defer stop()
		renew(working, pool, contact, holder, until)
	}()
	return true, do(working)
}

// renew renews a lease until ctx ends, or the lease is another job's, or it has ended before it was renewed.
func renew(ctx context.Context, pool *pgxpool.Pool, contact int64, holder uuid.UUID, until time.Time) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(renewInterval, time.Until(until))):
		}
		asked := time.Now()
		asking, cancel := context.WithDeadline(ctx, until)
		done, err := pool.Exec(asking, `update knowledge.lease set until = now() + $3::interval where contact_id = $1 and holder = $2`,
			contact, holder, leaseFor)
		cancel()
		switch {
		case err == nil && done.RowsAffected() == 1:
			until = asked.Add(leaseFor)
		case err == nil || !time.Now().Before(until):
			return
		}
	}
}
