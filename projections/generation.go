package projections

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"bahi/domain/event"
	"bahi/eventstore"
)

// ErrFenced tells a runner that another one has taken over, or that its generation is no longer the
// one to write.
var ErrFenced = errors.New("another runner writes this projection now")

// generation is a row of the registry.
type generation struct {
	Name       string
	Generation int
	Version    int
	Live       bool
	Building   bool
	StoreID    uuid.UUID
	Position   event.Position
	EventID    *uuid.UUID
	Owner      *uuid.UUID
	Error      *string
}

func (g generation) schema() string { return SchemaName(g.Name, g.Generation) }

// SchemaName is where the tables of a generation are.
func SchemaName(name string, generation int) string { return fmt.Sprintf("%s_g%d", name, generation) }

type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

const generationColumns = `name, generation, version, live, building, store_id, position, event_id, owner, error`

func generations(ctx context.Context, db querier, where string, args ...any) ([]generation, error) {
	rows, _ := db.Query(ctx, `select `+generationColumns+` from projection.generation where `+where+` order by name, generation`, args...)
	return pgx.CollectRows(rows, pgx.RowToStructByPos[generation])
}

// liveGeneration answers the generation that is read for this version, false when there is none yet.
func liveGeneration(ctx context.Context, db querier, p *Projection) (generation, bool, error) {
	found, err := generations(ctx, db, `live and name = $1 and version = $2`, p.Name, p.Version)
	if err != nil || len(found) == 0 {
		return generation{}, false, err
	}
	return found[0], true, nil
}

// newGeneration makes empty tables under the next number, without what is made after the fill.
func newGeneration(ctx context.Context, conn *pgx.Conn, p *Projection, store, owner uuid.UUID) (g generation, err error) {
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if err := lockRegistry(ctx, tx); err != nil {
			return err
		}
		rows, _ := tx.Query(ctx, `
			insert into projection.generation (name, generation, version, ddl_sha256, store_id, owner)
			select $1, coalesce(max(generation), 0) + 1, $2, $3, $4, $5 from projection.generation where name = $1
			returning `+generationColumns, p.Name, p.Version, p.Hash(), store, owner)
		var err error
		if g, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[generation]); err != nil {
			return err
		}
		// One who had this number and gave it up may still be on the way out.
		if _, err := tx.Exec(ctx, `select `+hold, g.schema()); err != nil {
			return err
		}
		return inSchema(ctx, tx, g.schema(), `create schema `+g.schema()+`; `+p.tables)
	})
	if err != nil {
		return g, fmt.Errorf("make a generation of %s: %w", p.Name, err)
	}
	return g, nil
}

// inSchema runs statements that name no schema.
func inSchema(ctx context.Context, tx pgx.Tx, schema, statements string) error {
	if _, err := tx.Exec(ctx, `select set_config('search_path', $1, true)`, schema); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, statements)
	return err
}

// checkpoint moves a generation on, if its row is as this runner left it.
func checkpoint(ctx context.Context, tx pgx.Tx, g generation, owner uuid.UUID, to event.Position, id *uuid.UUID) error {
	done, err := tx.Exec(ctx, `
		update projection.generation set position = $5, event_id = $6, error = null, error_at = null, error_position = null
		where name = $1 and generation = $2 and position = $3 and owner = $4 and (live or building)`,
		g.Name, g.Generation, int64(g.Position), owner, int64(to), id)
	switch {
	case err != nil:
		return err
	case done.RowsAffected() == 0:
		return ErrFenced
	default:
		return nil
	}
}

// verify holds a generation's checkpoint against the log: the event at its position must be there,
// and be the one that the generation has folded. Otherwise this is another log, or one that was
// restored without its tail, and going on would be guessing.
func verify(ctx context.Context, store eventstore.Store, g generation) error {
	if g.StoreID != store.ID() {
		return &mismatch{fmt.Sprintf("projection %s was built from log %s, and this is log %s: rebuild it, or point to the log that it belongs to",
			g.Name, g.StoreID, store.ID())}
	}
	if g.Position == 0 || g.EventID == nil {
		return nil
	}
	if has, err := has(ctx, store, g.Position, *g.EventID); err != nil || has {
		return err
	}
	return &mismatch{fmt.Sprintf("projection %s stands at position %d on event %s, and the log has no such event there: "+
		"the log was restored without its newest events, or is another one; rebuild the projection if this log is the right one",
		g.Name, g.Position, *g.EventID)}
}

// has says whether the log has this event at this position.
func has(ctx context.Context, store eventstore.Store, at event.Position, id uuid.UUID) (bool, error) {
	for e, err := range store.ReadAll(ctx, at+1, eventstore.Backwards) {
		return err == nil && e.Position == at && e.ID == id, err
	}
	return false, nil
}

// mismatch tells why a generation does not belong to the log.
type mismatch struct{ why string }

func (m *mismatch) Error() string { return m.why }

// Listed is a generation as an operator sees it.
type Listed struct {
	Name       string
	Version    int
	Generation int
	State      string // live, building, parked, or old: kept for a program of another version
	Position   event.Position
	Error      string
}

// List answers all generations of all projections.
func List(ctx context.Context, db querier) ([]Listed, error) {
	found, err := generations(ctx, db, `true`)
	if err != nil {
		return nil, fmt.Errorf("list projections: %w", err)
	}
	all := make([]Listed, len(found))
	for i, g := range found {
		all[i] = Listed{Name: g.Name, Version: g.Version, Generation: g.Generation, Position: g.Position, State: "old"}
		switch {
		case g.Error != nil:
			all[i].State, all[i].Error = "parked", *g.Error
		case g.Live:
			all[i].State = "live"
		case g.Building:
			all[i].State = "building"
		}
	}
	return all, nil
}
