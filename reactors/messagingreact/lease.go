package messagingreact

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"bahi/commands/lease"
)

// WithLease runs do while it holds the contact's lease. Only one job on all nodes can hold it at a time. It returns false if another job
// holds it. It holds no connection meanwhile. The context of do ends before the lease can expire.
func WithLease(ctx context.Context, pool *pgxpool.Pool, contact int64, do func(context.Context) error) (held bool, err error) {
	holder, asked := uuid.New(), time.Now()
	err = pool.QueryRow(ctx, `
		insert into knowledge.lease (contact_id, holder, until) values ($1, $2, now() + $3::interval)
		on conflict (contact_id) do update set holder = excluded.holder, until = excluded.until where lease.until < now()
		returning true`, contact, holder, lease.Duration).Scan(&held)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	// A lease that is not released expires, so its release need not be on disk.
	defer func() {
		_, _ = pool.Exec(context.WithoutCancel(ctx), `
			with unsafe as materialized (select set_config('synchronous_commit', 'off', true))
			delete from knowledge.lease using unsafe where contact_id = $1 and holder = $2`, contact, holder)
	}()
	return true, lease.While(ctx, asked, func(ctx context.Context) (bool, error) {
		done, err := pool.Exec(ctx, `update knowledge.lease set until = now() + $3::interval where contact_id = $1 and holder = $2`,
			contact, holder, lease.Duration)
		return done.RowsAffected() == 1, err
	}, do)
}
