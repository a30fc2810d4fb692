package projections

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// registry keeps a projection's checkpoint, in the row of its live generation.
type registry struct {
	r *Runner
	p *Projection
}

func (k registry) connect(ctx context.Context) (*pgx.Conn, error) {
	return connect(ctx, k.r.config, k.p)
}

func (k registry) tryLock(ctx context.Context, conn *pgx.Conn) (bool, error) {
	return tryLock(ctx, conn, k.p)
}

// begin takes over the live generation, or builds one where there is none.
func (k registry) begin(ctx context.Context, conn *pgx.Conn) (held, error) {
	g, found, err := liveGeneration(ctx, conn, k.p)
	if err != nil {
		return nil, err
	}
	if !found {
		build := Build{Store: k.r.store, Config: k.r.config, Projection: k.p, Reveal: k.r.Reveal, Log: k.r.log}
		if g, err = build.run(ctx); err != nil {
			return nil, err
		}
	}
	s := &session{p: k.p, g: g, owner: k.r.owner, conn: conn}
	if err := s.own(ctx); err != nil {
		return nil, err
	}
	if err := verify(ctx, k.r.store, s.g); err != nil {
		return s, err
	}
	_, err = conn.Exec(ctx, `
		update projection.generation set error = null, error_at = null
		where name = $1 and generation = $2 and error is not null and error_position is null`, k.p.Name, s.g.Generation)
	return s, err
}

func (k registry) look(ctx context.Context) (at place, found bool, err error) {
	g, found, err := liveGeneration(ctx, k.r.pool, k.p)
	if err != nil || !found {
		return at, false, err
	}
	at = place{generation: g.Generation, position: g.Position}
	if g.Error != nil {
		at.err = *g.Error
	}
	return at, true, nil
}

func (k registry) note(ctx context.Context, why error, at *int64) (bool, error) {
	done, err := k.r.pool.Exec(ctx, `
		update projection.generation set error = $3, error_position = $4,
			error_at = case when error is distinct from $3 then now() else error_at end
		where name = $1 and version = $2 and live`, k.p.Name, k.p.Version, why.Error(), at)
	return done.RowsAffected() > 0, err
}

// Retry lets a parked projection try its event again, which helps when the program has changed.
func Retry(ctx context.Context, pool *pgxpool.Pool, name string) error {
	_, err := pool.Exec(ctx, `
		update projection.generation set error = null, error_at = null, error_position = null where name = $1 and live`, name)
	if err != nil {
		return fmt.Errorf("retry %s: %w", name, err)
	}
	return nil
}
