package projections

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/eventstore"
)

// reactorRow stores a reactor's checkpoint in a row outside the generations.
type reactorRow struct {
	*Reactor

	r   *Runner
	log *slog.Logger
}

func (k reactorRow) connect(ctx context.Context) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, k.configured(k.r.config))
	if err != nil {
		return nil, fmt.Errorf("connect reactor %s: %w", k.p.Name, err)
	}
	return conn, nil
}

func (a *Reactor) configured(config *pgx.ConnConfig) *pgx.ConnConfig {
	config = config.Copy()
	config.RuntimeParams["synchronous_commit"] = "on" // the effects are recorded only in this transaction
	if a.p.forwards {
		config.RuntimeParams["synchronous_commit"] = "off" // after a crash, events may be forwarded again
	}
	noticed(config.RuntimeParams)
	config.RuntimeParams["application_name"] = "bahi reactor " + a.p.Name
	return config
}

func (k reactorRow) lock() lock { return reactorLock(k.p.Name) }

// begin takes over the checkpoint, or creates it. A checkpoint of another log parks a forwarding reactor. Any other reactor then starts at
// the log's head, so that it does not repeat old effects (DESIGN.md, hard case 3).
func (k reactorRow) begin(ctx context.Context, conn *pgx.Conn) (held, error) {
	rows, _ := conn.Query(ctx, `update reactor.checkpoint set owner = $2 where name = $1 returning `+checkpointColumns, k.p.Name, k.r.owner)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Checkpoint])
	if err != nil {
		return nil, fmt.Errorf("take over reactor %s: %w", k.p.Name, err)
	}
	h := &reaction{Reactor: k.Reactor, k: k, owner: k.r.owner, conn: conn}
	if len(found) > 0 {
		h.at = found[0].Position
		known, err := k.knows(ctx, found[0])
		switch {
		case err != nil:
			return nil, err
		case known:
			_, err := conn.Exec(ctx, `update reactor.checkpoint set error = null, error_at = null where name = $1 and error_position is null`,
				k.p.Name)
			return h, err
		case k.p.forwards:
			return h, &mismatch{fmt.Sprintf("%s has forwarded the log %s up to position %d, which is not in this log: "+
				"nothing is forwarded until bahi %s replay sets the start", k.p.Name, found[0].StoreID, found[0].Position, k.p.Name)}
		}
	}
	var id *uuid.UUID
	if h.at = 0; !k.beginning {
		if h.at, id, err = NewestBefore(ctx, k.r.store, eventstore.End); err != nil {
			return nil, err
		}
	}
	if len(found) > 0 {
		k.log.Warn("reactor's checkpoint does not match the log; starting at the log's head",
			"checkpoint", found[0].Position, "checkpoint_log", found[0].StoreID, "head", h.at, "log", k.r.store.ID())
	} else {
		k.log.Info("reactor starts without a checkpoint", "after", h.at)
	}
	return h, PlaceReactor(ctx, conn, k.p.Name, Checkpoint{StoreID: k.r.store.ID(), Position: h.at, EventID: id}, k.r.owner)
}

// PlaceReactor moves a reactor's checkpoint and sets its owner.
func PlaceReactor(ctx context.Context, db querier, name string, at Checkpoint, owner uuid.UUID) error {
	_, err := db.Exec(ctx, `
		insert into reactor.checkpoint (name, store_id, position, event_id, owner) values ($1, $2, $3, $4, $5)
		on conflict (name) do update
		set store_id = $2, position = $3, event_id = $4, owner = $5, error = null, error_at = null, error_position = null, wait_reason = null`,
		name, at.StoreID, int64(at.Position), at.EventID, owner)
	if err != nil {
		return fmt.Errorf("place the checkpoint of %s: %w", name, err)
	}
	return nil
}

// knows reports whether a checkpoint belongs to this log.
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

// NewestBefore returns the last event before a position: 0 and nil if there is none.
func NewestBefore(ctx context.Context, store eventstore.Store, at event.Position) (event.Position, *uuid.UUID, error) {
	for e, err := range store.ReadAll(ctx, at, eventstore.Backwards) {
		return e.Position, &e.ID, err
	}
	return 0, nil, nil
}

func (k reactorRow) look(ctx context.Context) (at place, found bool, err error) {
	c, err := CheckpointOf(ctx, k.r.pool, k.p.Name)
	if c == nil {
		return at, false, err
	}
	at.position = c.Position
	if c.Error != nil {
		at.err = *c.Error
	} else if c.WaitReason != nil {
		at.waitReason = *c.WaitReason
	}
	return at, true, nil
}

func (k reactorRow) note(ctx context.Context, why error) (bool, error) {
	text, at := noteOf(why)
	done, err := k.r.pool.Exec(ctx, `
		update reactor.checkpoint set error = $2, error_position = $3, error_program = $4,
			error_at = case when error is distinct from $2 then now() else error_at end
		where name = $1`, k.p.Name, text, at, k.r.Program)
	return done.RowsAffected() > 0, err
}

// reaction is a reactor's checkpoint that this runner holds.
type reaction struct {
	*Reactor

	k     reactorRow
	at    event.Position
	owner uuid.UUID
	conn  *pgx.Conn
}

func (a *reaction) place() place { return place{position: a.at} }

// apply reacts to the events and moves the checkpoint in one transaction.
func (a *reaction) apply(ctx context.Context, d decoded) error {
	err := pgx.BeginFunc(ctx, a.conn, func(tx pgx.Tx) error {
		if len(d.events) == 0 { // after a crash, these events are skipped again
			if _, err := tx.Exec(ctx, `set local synchronous_commit = off`); err != nil {
				return err
			}
		}
		if err := guarded(func() error { return a.p.fold(ctx, &Batch{Tx: tx}, d) }); err != nil {
			return err
		}
		return a.move(ctx, tx, d.upTo, d.last)
	})
	if err == nil {
		a.at = d.upTo
	}
	return err
}

// move moves the checkpoint.
func (a *reaction) move(ctx context.Context, db querier, to event.Position, id *uuid.UUID) error {
	done, err := db.Exec(ctx, `
		update reactor.checkpoint set position = $4, event_id = $5, error = null, error_at = null, error_position = null, wait_reason = null
		where name = $1 and position = $2 and owner = $3`, a.p.Name, int64(a.at), a.owner, int64(to), id)
	if err == nil && done.RowsAffected() == 0 {
		err = ErrFenced
	}
	return err
}

// hand forwards events and moves the checkpoint past the stored ones. Meanwhile it checks every second whether it still owns the
// checkpoint. Other processes see these queries, so they do not take it for hanging.
func (a *reaction) hand(ctx, reading context.Context, d decoded) error {
	forwarding, stop := context.WithCancelCause(reading)
	defer stop(nil)
	var kept int
	waits, ended := make(chan error), make(chan error, 1)
	go func() {
		ended <- guarded(func() (err error) {
			kept, err = a.forward(forwarding, d.stored, func(why error) {
				select {
				case waits <- why:
				case <-forwarding.Done():
				}
			})
			return err
		})
	}()
	for {
		var err error
		select {
		case err := <-ended:
			if forwarding.Err() != nil {
				return &unreachable{context.Cause(forwarding)}
			}
			return a.handed(ctx, d, kept, err)
		case why := <-waits:
			err = a.wait(ctx, why)
		case <-time.After(ownedInterval):
			err = a.fenced(ctx)
		}
		if err != nil {
			stop(err)
		}
	}
}

// handed moves the checkpoint past the stored events.
func (a *reaction) handed(ctx context.Context, d decoded, kept int, failed error) error {
	to, id := d.upTo, d.last
	if failed != nil {
		if kept == 0 {
			return d.blame(0, failed)
		}
		to, id = d.stored[kept-1].Position, &d.stored[kept-1].ID
	}
	if err := a.move(ctx, a.conn, to, id); err != nil {
		return err
	}
	if a.at = to; failed != nil {
		return d.blame(kept, failed)
	}
	return nil
}

// wait records the reason for waiting; nil: the reactor continues.
func (a *reaction) wait(ctx context.Context, why error) error {
	text := ""
	if why != nil {
		text = why.Error()
		a.k.log.Warn("reactor waiting", "error", why)
	} else {
		a.k.log.Info("reactor continues")
	}
	a.k.r.set(a.p, func(s *Status) { s.Error, s.Parked = text, false })
	_, err := a.conn.Exec(ctx, `update reactor.checkpoint set wait_reason = nullif($3, '') where name = $1 and owner = $2`,
		a.p.Name, a.owner, text)
	return err
}

// fenced returns [ErrFenced] if this process may no longer move the checkpoint.
func (a *reaction) fenced(ctx context.Context) error {
	found, err := checkpoints(ctx, a.conn, `name = $1 and position = $2 and owner = $3`, a.p.Name, int64(a.at), a.owner)
	if err == nil && len(found) == 0 {
		err = ErrFenced
	}
	return err
}
