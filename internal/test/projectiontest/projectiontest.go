// Package projectiontest tests the tables that a projection folds from events. It folds each case event by event, in one batch, and like a
// rebuild: in parts and with interruptions. All must give the same tables, because the batches of a log are arbitrary.
package projectiontest

import (
	"context"
	"log/slog"
	"math"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/vault"
	"bahi/internal/test/logtest"
	"bahi/projections"
)

// Event is an event of a case, in a stream.
type Event struct {
	stream string
	encode func(seal func([]*event.Sealed) error) (event.Proposed, error)
}

// Happened returns an event of the aggregate id, with personal values as plaintext. It sets meta's schema version.
func Happened[S any](kind *event.Kind[S], id string, e event.Event[S], meta event.Meta) Event {
	return Event{
		stream: kind.Stream(id),
		encode: func(seal func([]*event.Sealed) error) (event.Proposed, error) {
			sealed, err := event.MapSealed([]event.Event[S]{e}, seal)
			if err != nil {
				return event.Proposed{}, err
			}
			return kind.Encode(uuid.New(), sealed[0], meta)
		},
	}
}

// Tables are the result of a case.
type Tables struct {
	t     *testing.T
	pool  *pgxpool.Pool
	vault *vault.Vault
	build projections.Build
}

// Run folds the events, at the positions 1, 2, 3 …, in all ways, and returns the tables.
func Run(t *testing.T, p *projections.Projection, events ...Event) *Tables {
	t.Helper()
	pool, store := logtest.Open(t)
	log := slog.New(slog.DiscardHandler)
	v, err := vault.Open(t.Context(), pool, make([]byte, 32), log)
	require.NoError(t, err)
	seal := func(values []*event.Sealed) error { return v.Seal(t.Context(), values) }
	few := 1 + len(events)/1000*4 // in a case of thousands of events, a transaction for each one takes a minute
	written := map[string]eventstore.Expected{}
	for together := range slices.Chunk(events, few) {
		var writes []eventstore.Write
		for _, e := range together {
			encoded, err := e.encode(seal)
			require.NoError(t, err)
			writes = append(writes, eventstore.Write{Stream: e.stream, Expected: written[e.stream] - 1, Events: []event.Proposed{encoded}})
			written[e.stream]++
		}
		_, err = store.Append(t.Context(), eventstore.Transaction{Writes: writes})
		require.NoError(t, err)
	}
	tables := &Tables{t: t, pool: pool, vault: v, build: projections.Build{
		Store: store, Config: pool.Config().ConnConfig.Copy(), Projection: p, Reveal: v.OpenPersonal, Log: log,
	}}
	for what, way := range map[string]struct{ size, parts, stops int }{
		"event by event": {few, 1, 0}, "two by two": {2 * few, 3, 2}, "in one batch": {math.MaxInt, 2, 0},
	} {
		build := tables.build
		build.How.Partitions = way.parts
		differences, err := build.Fold(t.Context(), way.size, way.stops)
		require.NoError(t, err, what)
		require.Empty(t, differences, "%s, and as a rebuild", what)
	}
	require.NoError(t, tables.build.Run(t.Context()))
	return tables
}

// Rows returns the rows of a query in Postgres's format: (1,SBI,f). The query names tables without a schema.
func (tb *Tables) Rows(query string) []string {
	tb.t.Helper()
	var all []string
	err := pgx.BeginFunc(tb.t.Context(), tb.pool, func(tx pgx.Tx) error {
		if err := tb.inSchema(tb.t.Context(), tx); err != nil {
			return err
		}
		rows, _ := tx.Query(tb.t.Context(), `select q::text from (`+query+`) q`)
		var err error
		all, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	require.NoError(tb.t, err)
	return all
}

// Exec changes the tables directly.
func (tb *Tables) Exec(statement string) {
	tb.t.Helper()
	err := pgx.BeginFunc(tb.t.Context(), tb.pool, func(tx pgx.Tx) error {
		if err := tb.inSchema(tb.t.Context(), tx); err != nil {
			return err
		}
		_, err := tx.Exec(tb.t.Context(), statement)
		return err
	})
	require.NoError(tb.t, err)
}

// Erase destroys a subject's key: the subject's values in the log cannot be opened any more.
func (tb *Tables) Erase(subject string) {
	tb.t.Helper()
	require.NoError(tb.t, tb.vault.Erase(tb.t.Context(), subject))
}

// Examine compares the tables with the log again.
func (tb *Tables) Examine() []projections.Difference {
	tb.t.Helper()
	found, err := tb.build.Examine(tb.t.Context())
	require.NoError(tb.t, err)
	return found.Differences
}

func (tb *Tables) inSchema(ctx context.Context, tx pgx.Tx) error {
	var generation int
	err := tx.QueryRow(ctx, `select generation from projection.generation where name = $1 and status = 'live'`,
		tb.build.Projection.Name).Scan(&generation)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `select set_config('search_path', $1, true)`, projections.SchemaName(tb.build.Projection.Name, generation))
	return err
}
