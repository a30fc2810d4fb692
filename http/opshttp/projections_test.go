package opshttp_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/http/api"
	"bahi/http/opshttp"
	"bahi/internal/test/apitest"
	"bahi/internal/test/pgtest"
	"bahi/internal/test/worktest"
	"bahi/migrations"
	"bahi/readmodels/opsview"
)

// registry is a server on tables of projections and jobs that the test writes by hand.
type registry struct {
	t    *testing.T
	pool *pgxpool.Pool
	url  string
}

func startRegistry(t *testing.T) *registry {
	t.Helper()
	pool := pgtest.Pool(t, pgtest.Template(t, "migrated", migrations.Up))
	a := api.New(api.Config{Credentials: []api.Credential{{Authenticator: people{"operator": {Operator: true}}}}})
	r := &registry{t: t, pool: pool}
	routes := &opshttp.Routes{
		API: a, Views: &opsview.Jobs{DB: pool}, Queue: struct{ opshttp.Queue }{},
		Registry: &opsview.Projections{DB: pool, Versions: map[string]int{"books": 2, "users": 1}},
		Builds:   struct{ opshttp.Builds }{}, // the tests of real builds serve a whole system
	}
	routes.Jobs()
	routes.Projections()
	routes.Parked()
	server := worktest.Serve(t, a)
	r.url = server.URL
	return r
}

func (r *registry) operator() *apitest.Client { return apitest.New(r.t, r.url, "operator") }

func (r *registry) sql(text string, args ...any) {
	r.t.Helper()
	pgtest.Exec(r.t, r.pool, text, args...)
}

// log appends events at positions 1 to n, a minute old.
func (r *registry) log(n int) {
	r.t.Helper()
	r.sql(`insert into log.event (position, revision, recorded_at, id, open_ended, stream, type, data, meta)
		select n, n - 1, now() - interval '1 minute', gen_random_uuid(), false, 'bank-7', 'BankRowAdded', '{}', '{}'
		from generate_series(1, $1) n`, n)
}

// generation inserts a generation with its version, and sets other columns.
func (r *registry) generation(name string, generation, version int, set string) {
	r.t.Helper()
	r.sql(`insert into projection.generation (name, generation, version, ddl_sha256, store_id) values ($1, $2, $3, '', gen_random_uuid())`,
		name, generation, version)
	r.set(name, generation, set)
}

func (r *registry) set(name string, generation int, set string) {
	r.t.Helper()
	r.sql(`update projection.generation set `+set+` where name = $1 and generation = $2`, name, generation)
}

func (r *registry) books() (p opsview.Projection) {
	r.t.Helper()
	r.operator().GET("/ops/projections/books").Status(200).JSON(&p)
	return p
}

func TestProjectionIsShown(t *testing.T) {
	t.Parallel()
	r := startRegistry(t)
	all := apitest.Read[[]opsview.Projection](r.operator().GET("/ops/projections").Status(200))
	require.Equal(t, []opsview.Projection{
		{Name: "books", Version: 2, State: "building"}, {Name: "users", Version: 1, State: "building"},
	}, all)

	r.log(10)
	r.generation("books", 3, 1, `status = 'live', position = 10`) // another program's version
	r.generation("books", 4, 2, `status = 'live', position = 10, rate = 1000`)
	r.generation("users", 1, 1, `status = 'live', position = 4`)
	r.sql(`insert into log.event (position, revision, recorded_at, id, open_ended, stream, type, data, meta) values
		(11, 0, now(), gen_random_uuid(), false, 'follower-books', 'EventSkipped', '{"version":1}', '{}'),
		(12, 1, now(), gen_random_uuid(), false, 'follower-books', 'EventSkipped', '{"version":2}', '{}'),
		(13, 2, now(), gen_random_uuid(), false, 'follower-books', 'EventSkipped', '{"version":2}', '{}'),
		(14, 0, now(), gen_random_uuid(), false, 'follower-users', 'EventSkipped', '{"version":1}', '{}')`)
	r.set("books", 4, `position = 14`)
	r.operator().GET("/ops/projections").Status(200).JSON(&all)
	require.Equal(t, opsview.Projection{
		Name: "books", Version: 2, Generation: 4, State: "live", Position: 14, Head: 14, Rate: 1000, Skipped: 2,
	}, all[0])
	require.Equal(t, uint64(10), all[1].LagEvents)
	require.InDelta(t, 60, all[1].LagSeconds, 30)
	require.Equal(t, 1, all[1].Skipped)

	r.set("books", 4, `error = 'no such account', error_position = 11`)
	require.Equal(t, "parked", r.books().State)
	require.Equal(t, "no such account", *r.books().LastError)
	r.set("books", 4, `paused = true`)
	require.Equal(t, "paused", r.books().State)
	r.operator().GET("/ops/projections/books?x=1").Status(422)
}

func TestRebuildIsShown(t *testing.T) {
	t.Parallel()
	r := startRegistry(t)
	r.log(10)
	r.generation("books", 1, 2, `status = 'live', position = 10`)
	require.Nil(t, r.books().Build)
	r.generation("books", 2, 2, `throttle = 500`)
	limit := 500
	want := opsview.Build{Generation: 2, Phase: "requested", Throttle: &limit, Differences: []opsview.Difference{}}
	require.Equal(t, want, *r.books().Build)
	r.set("books", 2, `status = 'filling', throttle = null`)
	require.InDelta(t, 100, r.books().Build.Percent, 0, "of an empty log")
	require.Nil(t, r.books().Build.ETASeconds, "unknown without a rate")

	eta := 3.0 + 4 // the fill, and as long as a whole fill for the phases after it
	r.set("books", 2, `total = 8, position = 2, rate = 2`)
	want = opsview.Build{Generation: 2, Phase: "filling", Done: 2, Total: 8, Percent: 25, Rate: 2, ETASeconds: &eta,
		Differences: []opsview.Difference{}}
	require.Equal(t, want, *r.books().Build)
	r.set("books", 2, `paused = true`)
	require.True(t, r.books().Build.Paused)
	require.Nil(t, r.books().Build.ETASeconds, "unknown")
	require.Equal(t, "live", r.books().State, "only the build has stopped")
	r.set("books", 2, `paused = false, error = 'disk full'`)
	require.Nil(t, r.books().Build.ETASeconds)
	require.Equal(t, "disk full", *r.books().Build.Error)
	require.Nil(t, r.books().LastError)

	r.set("books", 2, `error = null, partitions = 2, position = 0`)
	r.sql(`insert into projection.partition (name, generation, ordinal, position) values ('books', 2, 0, 8), ('books', 2, 1, 4)`)
	require.Equal(t, event.Position(4), r.books().Build.Done, "the position of the slowest part")
	r.set("books", 2, `position = 10, status = 'catching up'`)
	b := r.books().Build
	require.Equal(t, event.Position(10), b.Done)
	require.InDelta(t, 100, b.Percent, 0)
	require.NotNil(t, b.ETASeconds, "the phases after the fill")

	r.set("books", 2, `status = 'differs', differences = '[{"table":"row","count":3,"rows":[{"where":"log","row":{"id":7}}]}]'`)
	require.Equal(t, "row", r.books().Build.Differences[0].Table)
	require.JSONEq(t, `{"id":7}`, string(r.books().Build.Differences[0].Rows[0].Row))

	r.set("books", 1, `status = 'kept', keep_until = now() + interval '1 hour'`)
	r.set("books", 2, `status = 'live'`)
	r.generation("books", 3, 2, `status = 'scratch'`)
	r.generation("books", 4, 2, `status = 'scratch'`) // being dropped
	now := r.books()
	require.Nil(t, now.Build)
	require.Equal(t, 2, now.Generation)
	require.Equal(t, 1, now.Kept.Generation)
	require.Equal(t, event.Position(10), now.Kept.Position)
	require.WithinDuration(t, time.Now().Add(time.Hour), now.Kept.Until, time.Minute)
}

func TestParkedFollowersAreListed(t *testing.T) {
	t.Parallel()
	r := startRegistry(t)
	r.operator().GET("/ops/parked").Status(200).Body(`[]`)
	r.log(5)
	for i, set := range []string{`status = 'live', error_position = 3`, `status = 'kept', keep_until = now(), error_position = 4`,
		`status = 'scratch'`, `error_position = null`} {
		r.generation("books", i+1, 2, set+`, error = 'bad', error_at = '2026-03-01T10:00:00Z', error_program = '1.4'`)
	}
	r.generation("books", 7, 1, `status = 'live', error = 'of an older program'`)
	r.generation("users", 1, 1, `status = 'live'`)
	r.sql(`insert into reactor.checkpoint (name, store_id, position, error, error_position, error_at) values
		('accounts', gen_random_uuid(), 4, 'no', 5, now()), ('well', gen_random_uuid(), 5, null, null, null)`)
	all := apitest.Read[[]opsview.Parked](r.operator().GET("/ops/parked").Status(200))
	short := make([]string, len(all))
	for i, p := range all {
		short[i] = fmt.Sprint(p.Name, " ", p.Kind, " ", p.Version, " ", p.Generation, " ", p.Position, " ", p.Stream, " ", p.Type,
			" ", p.EventID != nil)
	}
	require.Equal(t, []string{
		"books build 2 4 0   false", "books kept 2 2 4 bank-7 BankRowAdded true", "books projection 2 1 3 bank-7 BankRowAdded true",
		"accounts reactor 0 0 5 bank-7 BankRowAdded true",
	}, short)
	id := pgtest.Value[uuid.UUID](t, r.pool, `select id from log.event where position = 3`)
	require.Equal(t, id.String(), *all[2].EventID)
	require.Equal(t, "bad", all[2].Error)
	require.Equal(t, "1.4", all[2].Program)
	require.Equal(t, time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC), all[2].Since.UTC())
}
