package projections

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/eventstore"
)

// reactorRow keeps a reactor's checkpoint, in a row outside of the generations.
type reactorRow struct {
	r   *Runner
	p   *Projection
	log *slog.Logger
}

func (k reactorRow) connect(ctx context.Context) (*pgx.Conn, error) {
	config := k.r.config.Copy()
	// Its effects leave the system, and what it has done is written nowhere else.
	config.RuntimeParams["synchronous_commit"] = "on"
	Noticed(config.RuntimeParams)
	config.RuntimeParams["application_name"] = "bahi reactor " + k.p.Name
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect reactor %s: %w", k.p.Name, err)
	}
	return conn, nil
}

func (k reactorRow) tryLock(ctx context.Context, conn *pgx.Conn) (locked bool, err error) {
	err = conn.QueryRow(ctx, `select pg_try_advisory_lock(8241004, hashtext($1))`, k.p.Name).Scan(&locked)
	return locked, err
}

// begin takes the checkpoint over. Where there is none, or one of another log, the reactor starts at
// the head: it must not do once more what was done long ago (DESIGN.md, hard case 3).
func (k reactorRow) begin(ctx context.Context, conn *pgx.Conn) (held, error) {
	rows, _ := conn.Query(ctx, `update reactor.checkpoint set owner = $2 where name = $1 returning `+checkpointColumns, k.p.Name, k.r.owner)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Checkpoint])
	if err != nil {
		return nil, fmt.Errorf("take over reactor %s: %w", k.p.Name, err)
	}
	if len(found) > 0 {
		if known, err := k.knows(ctx, found[0]); err != nil {
			return nil, err
		} else if known {
			return &reaction{p: k.p, at: found[0].Position, owner: k.r.owner, conn: conn}, nil
		}
	}
	head, id, err := newestEvent(ctx, k.r.store)
	if err != nil {
		return nil, err
	}
	if len(found) > 0 {
		k.log.Warn("the reactor's checkpoint does not match the log and is given up: it starts at the log's head",
			"checkpoint", found[0].Position, "checkpoint_log", found[0].StoreID, "head", head, "log", k.r.store.ID())
	} else {
		k.log.Info("the reactor has no checkpoint: it starts at the log's head", "head", head)
	}
	_, err = conn.Exec(ctx, `
		insert into reactor.checkpoint (name, store_id, position, event_id, owner) values ($1, $2, $3, $4, $5)
		on conflict (name) do update
		set store_id = $2, position = $3, event_id = $4, owner = $5, error = null, error_at = null, error_position = null`,
		k.p.Name, k.r.store.ID(), int64(head), id, k.r.owner)
	if err != nil {
		return nil, fmt.Errorf("start reactor %s: %w", k.p.Name, err)
	}
	return &reaction{p: k.p, at: head, owner: k.r.owner, conn: conn}, nil
}

// knows says whether a checkpoint is of this log.
func (k reactorRow) knows(ctx context.Context, c Checkpoint) (bool, error) {
	switch {
	case c.StoreID != k.r.store.ID():
		return false, nil
	case c.EventID == nil:
		return true, nil
	default:
		return has(ctx, k.r.store, c.Position, *c.EventID)
	}
}

func newestEvent(ctx context.Context, store eventstore.Store) (event.Position, *uuid.UUID, error) {
	for e, err := range store.ReadAll(ctx, eventstore.End, eventstore.Backwards) {
		return e.Position, &e.ID, err
	}
	return 0, nil, nil
}

func (k reactorRow) look(ctx context.Context) (at place, found bool, err error) {
	all, err := checkpoints(ctx, k.r.pool, `name = $1`, k.p.Name)
	if err != nil || len(all) == 0 {
		return at, false, err
	}
	at.position = all[0].Position
	if all[0].Error != nil {
		at.err = *all[0].Error
	}
	return at, true, nil
}

func (k reactorRow) note(ctx context.Context, why error) (bool, error) {
	text, at, typ := noteOf(why)
	done, err := k.r.pool.Exec(ctx, `
		update reactor.checkpoint set error = $2, error_position = $3, error_type = $4, error_program = $5,
			error_at = case when error is distinct from $2 then now() else error_at end
		where name = $1`, k.p.Name, text, at, typ, k.r.Program)
	return done.RowsAffected() > 0, err
}

// reaction is a runner's hold on a reactor.
type reaction struct {
	p     *Projection
	at    event.Position
	owner uuid.UUID
	conn  *pgx.Conn
}

func (a *reaction) place() place { return place{position: a.at} }

func (a *reaction) apply(ctx context.Context, d decoded) error {
	err := pgx.BeginFunc(ctx, a.conn, func(tx pgx.Tx) error {
		if len(d.events) == 0 { // if a crash undoes this, events are passed over once more
			if _, err := tx.Exec(ctx, `set local synchronous_commit = off`); err != nil {
				return err
			}
		}
		if err := guarded(func() error { return a.p.fold(ctx, &Batch{Tx: tx}, d) }); err != nil {
			return err
		}
		done, err := tx.Exec(ctx, `
			update reactor.checkpoint set position = $4, event_id = $5, error = null, error_at = null, error_position = null
			where name = $1 and position = $2 and owner = $3`, a.p.Name, int64(a.at), a.owner, int64(d.upTo), d.last)
		if err == nil && done.RowsAffected() == 0 {
			err = ErrFenced
		}
		return err
	})
	if err == nil {
		a.at = d.upTo
	}
	return err
}

// fenced answers [ErrFenced] when this process may not move the checkpoint any more.
func (a *reaction) fenced(ctx context.Context) error {
	found, err := checkpoints(ctx, a.conn, `name = $1 and position = $2 and owner = $3`, a.p.Name, int64(a.at), a.owner)
	if err == nil && len(found) == 0 {
		err = ErrFenced
	}
	return err
}
