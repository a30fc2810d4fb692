package projections

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// lock is a Postgres advisory lock. Only its holder works on a projection, a reactor or a generation. It ends with its connection. The
// fence of the checkpoint excludes a process that has lost the lock.
type lock struct {
	space int32
	name  string
}

func projectionLock(p *Projection) lock {
	return lock{8241002, fmt.Sprintf("%s/%d", p.Name, p.Version)}
}

func reactorLock(name string) lock { return lock{8241004, name} }

func (g generation) lock() lock { return lock{8241003, g.schema()} }

// try takes the lock if it is free.
func (l lock) try(ctx context.Context, conn *pgx.Conn) (locked bool, err error) {
	err = conn.QueryRow(ctx, `select pg_try_advisory_lock($2, hashtext($1))`, l.name, l.space).Scan(&locked)
	return locked, err
}

// wait takes the lock when it is free.
func (l lock) wait(ctx context.Context, db querier) error {
	_, err := db.Exec(ctx, `select pg_advisory_lock($2, hashtext($1))`, l.name, l.space)
	return err
}

func (l lock) release(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `select pg_advisory_unlock($2, hashtext($1))`, l.name, l.space)
	return err
}

// free reports whether no process has the lock. A standby process calls it several times a second. It uses the pool, because a new
// connection costs Postgres more than the query.
func (l lock) free(ctx context.Context, pool *pgxpool.Pool) (free bool, err error) {
	err = pool.QueryRow(ctx, `select pg_try_advisory_xact_lock($2, hashtext($1))`, l.name, l.space).Scan(&free)
	return free, err
}

// breakIfSilent terminates the connection that holds the lock if Postgres has waited for the connection's client for the given time. That
// rolls back its transaction. breakIfSilent reports whether it terminated the connection. Postgres lets roles terminate their own
// connections.
func (l lock) breakIfSilent(ctx context.Context, db querier, silent time.Duration) (bool, error) {
	rows, _ := db.Query(ctx, `
		select pg_terminate_backend(a.pid)
		from pg_locks l join pg_stat_activity a on a.pid = l.pid
		where l.locktype = 'advisory' and l.granted and l.database = (select oid from pg_database where datname = current_database())
			and l.classid = $2::int and l.objid::bigint = (hashtext($1)::bigint & 4294967295) and l.objsubid = 2
			and a.state_change < now() - $3::interval and (a.state <> 'active' or a.wait_event_type = 'Client')`, l.name, l.space, silent)
	ended, err := pgx.CollectRows(rows, pgx.RowTo[bool])
	if err != nil {
		return false, fmt.Errorf("terminate an idle connection: %w", err)
	}
	return len(ended) > 0, nil
}
