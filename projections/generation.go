package projections

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"bahi/domain/event"
	"bahi/eventstore"
)

// ErrFenced reports to a runner that another runner has taken over, or that its generation was replaced.
var ErrFenced = errors.New("another runner writes this projection now")

// generation is a row of the registry.
type generation struct {
	buildState

	Name       string
	Generation int
	Version    int
	DDL        string `db:"ddl_sha256"`
	Status     string
	StoreID    uuid.UUID
	Position   event.Position
	EventID    *uuid.UUID
	Owner      *uuid.UUID
	Error      *string
	Paused     bool
	KeepUntil  *time.Time
	Over       bool // KeepUntil has passed
}

// buildState is the state of a generation's build.
type buildState struct {
	Throttle    *int
	Partitions  int
	Accepted    bool
	Differences []Difference
	Total       event.Position
	Rate        int64      // events per second
	FilledAt    *time.Time // when its fill ended
	ThenEach    *int64     // nanoseconds per event of the phases after the fill, in the last measured build
	KeepFor     time.Duration
}

func (g generation) schema() string { return SchemaName(g.Name, g.Generation) }

// then estimates the duration of the phases after the fill by the last build. Without a last build, it assumes the duration of the fill.
func (g generation) then(now time.Time) time.Duration {
	each := time.Second / time.Duration(max(g.Rate, 1))
	if g.ThenEach != nil {
		each = time.Duration(*g.ThenEach)
	}
	all := each * time.Duration(g.Total) // positions are less than 2^63
	if g.FilledAt != nil && g.Status != filling {
		all -= now.Sub(*g.FilledAt)
	}
	return max(all, 0)
}

// SchemaName returns the schema of a generation's tables.
func SchemaName(name string, generation int) string { return fmt.Sprintf("%s_g%d", name, generation) }

type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

const generationColumns = `name, generation, version, ddl_sha256, status, store_id, position, event_id, owner, error, paused, throttle,
	partitions, accepted, differences, total, rate::bigint as rate, filled_at, keep_for, keep_until,
	coalesce(keep_until <= now(), false) as over,
	(select (extract(epoch from last.after_fill) * 1000000000 / last.total)::bigint from projection.generation last
		where last.name = projection.generation.name and last.after_fill is not null and last.total > 0
		order by last.generation desc limit 1) as then_each`

func generations(ctx context.Context, db querier, where string, args ...any) ([]generation, error) {
	rows, _ := db.Query(ctx, `select `+generationColumns+` from projection.generation where `+where+` order by name, generation`, args...)
	return pgx.CollectRows(rows, pgx.RowToStructByName[generation])
}

// oneGeneration returns the first matching generation, or false.
func oneGeneration(ctx context.Context, db querier, where string, args ...any) (generation, bool, error) {
	found, err := generations(ctx, db, where, args...)
	if err != nil || len(found) == 0 {
		return generation{}, false, err
	}
	return found[0], true, nil
}

// liveGeneration returns the live generation of this version, or false.
func liveGeneration(ctx context.Context, db querier, p *Projection) (generation, bool, error) {
	return oneGeneration(ctx, db, isLive, p.Name, p.Version)
}

// newGeneration registers a generation without tables under the next number: requested, or scratch. It locks a scratch generation on the
// connection.
func newGeneration(ctx context.Context, conn *pgx.Conn, p *Projection, store uuid.UUID, how BuildOptions, status string) (g generation,
	err error) {
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if err := lockRegistry(ctx, tx); err != nil {
			return err
		}
		var throttle *int
		if how.Throttle > 0 {
			throttle = &how.Throttle
		}
		rows, _ := tx.Query(ctx, `
			insert into projection.generation (name, generation, version, ddl_sha256, store_id, status, throttle, partitions, accepted,
				keep_for)
			select $1, coalesce(max(generation), 0) + 1, $2, $3, $4, $5, $6, $7, $8, $9 from projection.generation where name = $1
			returning `+generationColumns,
			p.Name, p.Version, p.Hash(), store, status, throttle, p.parts(how.Partitions), how.Accept, how.Keep)
		var err error
		g, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[generation])
		if err == nil && status == statusScratch { // before the commit, so that other processes never find it unlocked
			err = g.lock().wait(ctx, tx)
		}
		return err
	})
	if err != nil {
		return g, fmt.Errorf("create a generation of %s: %w", p.Name, err)
	}
	return g, nil
}

// inSchema runs statements in a schema.
func inSchema(ctx context.Context, tx pgx.Tx, schema, statements string) error {
	if _, err := tx.Exec(ctx, `select set_config('search_path', $1, true)`, schema); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, statements)
	return err
}

// checkpoint moves the checkpoint of a session's generation if the session still owns it.
func (s *session) checkpoint(ctx context.Context, tx querier, to event.Position, id *uuid.UUID) error {
	done, err := tx.Exec(ctx, `
		update projection.generation set position = $5, event_id = $6, rate = $7::bigint, error = null, error_at = null, error_position = null
		where name = $1 and generation = $2 and position = $3 and owner = $4 and not (status = 'live' and paused)`,
		s.g.Name, s.g.Generation, int64(s.g.Position), s.owner, int64(to), id, s.g.Rate)
	switch {
	case err != nil:
		return err
	case done.RowsAffected() == 0:
		return ErrFenced
	default:
		return nil
	}
}

// isTaken reports whether a unique index refused a row.
func isTaken(err error) bool {
	server, ok := errors.AsType[*pgconn.PgError](err)
	return ok && server.Code == "23505"
}

// noteIn records an error and its event in the generations that match a condition with three parameters. It returns their number.
func noteIn(ctx context.Context, db querier, why error, program, where string, args ...any) (int64, error) {
	text, at := noteOf(why)
	done, err := db.Exec(ctx, `
		update projection.generation set error = $4, error_position = $5, error_program = $6,
			error_at = case when error is distinct from $4 then now() else error_at end
		where `+where, append(args, text, at, program)...)
	return done.RowsAffected(), err
}

// noteOf returns an error's text and the position of the faulty event.
func noteOf(why error) (text string, at *int64) {
	if bad, ok := errors.AsType[*poison](why); ok {
		position := int64(bad.at)
		at = &position
	}
	return why.Error(), at
}

// verify checks that the log has the event of a generation's checkpoint. Otherwise the log is another one, or was restored without its
// newest events, and the generation must not continue.
func verify(ctx context.Context, store eventstore.Store, g generation) error {
	if g.StoreID != store.ID() {
		return &mismatch{fmt.Sprintf("projection %s was built from log %s, but this is log %s: rebuild it, or configure the log that it "+
			"belongs to",
			g.Name, g.StoreID, store.ID())}
	}
	if g.Position == 0 || g.EventID == nil {
		return nil
	}
	if has, err := has(ctx, store, g.Position, *g.EventID); err != nil || has {
		return err
	}
	return &mismatch{fmt.Sprintf("projection %s is at position %d with event %s, but the log has no such event there: "+
		"the log was restored without its newest events, or is another one; rebuild the projection if this log is the right one",
		g.Name, g.Position, *g.EventID)}
}

// has reports whether the log has this event at this position. The id alone does not identify the event: if a request is retried after its
// event was lost, the new event has the same id.
func has(ctx context.Context, store eventstore.Store, at event.Position, id uuid.UUID) (bool, error) {
	for e, err := range store.ReadAll(ctx, at+1, eventstore.Backwards) {
		return err == nil && e.Position == at && e.ID == id, err
	}
	return false, nil
}

// mismatch is the error of a generation or a checkpoint that does not belong to the log.
type mismatch struct{ why string }

func (m *mismatch) Error() string { return m.why }

// GenerationInfo describes a generation to operators.
type GenerationInfo struct {
	Name       string
	Version    int
	Generation int
	State      string // live, building, parked, paused, kept, scratch
	Live       bool   // programs of its version read it, even if it is parked or paused
	Position   event.Position
	Error      string
	Phase      string         // phase of a build
	Total      event.Position // where a build's fill ends
	KeepUntil  time.Time      // zero: not kept
}

// List returns all generations of all projections.
func List(ctx context.Context, db querier) ([]GenerationInfo, error) {
	found, err := generations(ctx, db, `true`)
	if err != nil {
		return nil, fmt.Errorf("list projections: %w", err)
	}
	all := make([]GenerationInfo, len(found))
	for i, g := range found {
		now := GenerationInfo{
			Name: g.Name, Version: g.Version, Generation: g.Generation, State: g.Status, Live: g.Status == statusLive, Position: g.Position,
			Total: g.Total,
		}
		if !g.built() && g.Status != statusScratch {
			now.State, now.Phase = "building", g.Status
		}
		if g.KeepUntil != nil {
			now.KeepUntil = *g.KeepUntil
		}
		if g.Error != nil {
			now.State, now.Error = "parked", *g.Error
		} else if g.Paused {
			now.State = "paused"
		}
		all[i] = now
	}
	return all, nil
}
