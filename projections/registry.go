package projections

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// registry stores a projection's checkpoint in the row of its live generation.
type registry struct {
	r *Runner
	p *Projection
}

func (k registry) connect(ctx context.Context) (*pgx.Conn, error) {
	return connect(ctx, k.r.config, k.p)
}

func (k registry) lock() lock { return projectionLock(k.p) }

// begin takes over the live generation, or builds the first one.
func (k registry) begin(ctx context.Context, conn *pgx.Conn) (held, error) {
	g, found, err := liveGeneration(ctx, conn, k.p)
	if err != nil {
		return nil, err
	}
	if !found {
		k.r.set(k.p, func(s *Status) { s.Generation, s.Position, s.Ready = 0, 0, false })
		if err := k.r.build(k.p).first(ctx, conn); err != nil {
			return nil, err
		}
		if g, found, err = liveGeneration(ctx, conn, k.p); err != nil {
			return nil, err
		}
		if !found { // another process has not completed the build
			return nil, errStandby
		}
	}
	if g.DDL != k.p.Hash() { // checked before the takeover, because another process may be able to fold it
		return nil, &mismatch{fmt.Sprintf("generation %d of projection %s version %d was built by a program with other tables or event types: "+
			"this program does not fold it; rebuild the projection if this is the program to serve", g.Generation, k.p.Name, k.p.Version)}
	}
	s := k.r.build(k.p).session(conn, g)
	s.owner = k.r.owner
	if err := s.own(ctx); err != nil {
		return nil, err
	}
	if s.g.Paused {
		return s, errPaused
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
	at = place{generation: g.Generation, position: g.Position, paused: g.Paused}
	if g.Error != nil {
		at.err = *g.Error
	}
	return at, true, nil
}

// note records the error that stopped the live generation if this process owns it. Another generation may be live by then.
func (k registry) note(ctx context.Context, why error) (bool, error) {
	n, err := noteIn(ctx, k.r.pool, why, k.r.Program, isLive+` and owner = $3`, k.p.Name, k.p.Version, k.r.owner)
	return n > 0, err
}
