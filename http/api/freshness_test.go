package api_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"bahi/http/api"
	"bahi/internal/test/logtest"
	"bahi/internal/test/pgtest"
	"bahi/migrations"
	"bahi/readmodels"
)

// log returns a database with a projection at position 5 and the log's head there too.
func log(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.Pool(t, pgtest.Template(t, "migrated", migrations.Up))
	run := func(sql string) {
		t.Helper()
		pgtest.Exec(t, pool, sql)
	}
	run(`create schema books_g1`)
	run(`create table books_g1.row (id bigint)`)
	run(`insert into projection.generation (name, generation, version, ddl_sha256, status, store_id, position)
		values ('books', 1, 1, '', 'live', gen_random_uuid(), 5)`)
	grow(t, pool, 5)
	return pool
}

func grow(t *testing.T, pool *pgxpool.Pool, head int) {
	t.Helper()
	pgtest.Exec(t, pool, `insert into log.event (position, revision, recorded_at, id, open_ended, stream, type, data, meta)
		values ($1, $1, now(), gen_random_uuid(), false, 'bank-1', 'X', '{}', '{}')`, head)
}

func TestAnAnswerSaysHowFreshItIs(t *testing.T) {
	t.Parallel()
	pool := log(t)
	reader := readmodels.NewReader(logtest.Snapshots(t, pool), map[string]int{"books": 1}, nil)
	s := serve(t)
	count := func(ctx context.Context) (*api.Body[int], error) {
		return api.Answer(readmodels.Row(ctx, reader.From(api.At(ctx), "books"), nil, pgx.RowTo[int], `select count(*)::int from books.row`))
	}
	api.Handle(s.API, api.Op{ID: "count", Method: "GET", Path: "/count", Public: true, Reads: []string{"books"}},
		func(ctx context.Context, _ *struct{}) (*api.Body[int], error) { return count(ctx) })
	api.Handle(s.API, api.Op{ID: "write-and-count", Method: "PUT", Path: "/count", Public: true, Reads: []string{"books"}},
		func(ctx context.Context, _ *struct{}) (*api.Body[int], error) {
			api.SetWriteHeaders(ctx, 7, false)
			return count(ctx)
		})
	anyone := s.as(t, "")

	a := anyone.GET("/count").Status(200)
	require.Equal(t, "5", a.Header("Bahi-Position"))
	require.Empty(t, a.Header("Warning"))
	anyone.With("Bahi-Min-Position", "5").GET("/count").Status(200)
	anyone.With("Bahi-Min-Position", "6").GET("/count").Problem(422, "The log does not reach that position yet")

	grow(t, pool, 7)
	begun := time.Now()
	a = anyone.GET("/count").Status(200)
	require.Equal(t, "5", a.Header("Bahi-Position"))
	require.Equal(t, `110 - "Response is Stale"`, a.Header("Warning"))
	require.Equal(t, "true", a.Header("Bahi-Stale"))
	require.GreaterOrEqual(t, time.Since(begun), 500*time.Millisecond)

	a = anyone.With("Bahi-Min-Position", "7").PUT("/count", "").Status(200)
	require.Equal(t, "7", a.Header("Bahi-Position"), "a write returns its position")
	require.Equal(t, `110 - "Response is Stale"`, a.Header("Warning"), "and reports that its view is older")

	time.AfterFunc(600*time.Millisecond, func() {
		_, _ = pool.Exec(context.WithoutCancel(t.Context()), `update projection.generation set position = 7`)
	})
	require.Eventually(t, func() bool { // on a busy machine the change may come later than a read waits
		a = anyone.With("Bahi-Min-Position", "7").GET("/count")
		return a.Response.StatusCode == http.StatusOK
	}, time.Minute, time.Millisecond)
	require.Equal(t, "7", a.Header("Bahi-Position"), "a named position makes the read wait longer")
	require.Empty(t, a.Header("Warning"))

	grow(t, pool, 8)
	begun = time.Now()
	a = anyone.With("Bahi-Min-Position", "8").GET("/count").Problem(503, "The projections have not reached this position yet, try again")
	require.Equal(t, "1", a.Header("Retry-After"))
	require.GreaterOrEqual(t, time.Since(begun), 5*time.Second)
	require.Less(t, time.Since(begun), time.Minute, "less than the request's timeout")
}
