package postgres

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
)

func TestEventsAreReadInEachQueryExecMode(t *testing.T) {
	t.Parallel()
	url := newLog(t)
	pool := newPool(t, url)
	want := event.Stored{
		Position: 1, Stream: "café-1", Revision: 0, ID: uuid.New(), Type: "Made", Data: []byte(`{ "é" :1.50}`), Meta: []byte("{}"),
		At: time.Date(1999, 12, 31, 23, 59, 59, 999_999_000, time.UTC),
	}
	_, err := pool.Exec(t.Context(), `insert into log.event (position, stream, revision, id, open_ended, type, data, meta, recorded_at)
		values ($1, $2, $3, $4, false, $5, $6, $7, $8)`,
		want.Position, want.Stream, want.Revision, want.ID, want.Type, want.Data, want.Meta, want.At)
	require.NoError(t, err)
	first := func(mode pgx.QueryExecMode) (e event.Stored, err error) {
		s := newStoreWith(t, url, defaultTimeouts, func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = mode })
		for e, err = range s.ReadAll(t.Context(), 0, eventstore.Forwards) {
			break
		}
		return e, err
	}
	modes := []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec,
		pgx.QueryExecModeSimpleProtocol,
	}
	for _, mode := range modes {
		e, err := first(mode)
		require.NoError(t, err, mode)
		require.Equal(t, want, e, mode)
	}

	_, err = pool.Exec(t.Context(), `update log.event set recorded_at = '-infinity'`)
	require.NoError(t, err)
	e, err := first(pgx.QueryExecModeCacheStatement)
	require.NoError(t, err)
	require.NotEqual(t, want.At, e.At)
}
