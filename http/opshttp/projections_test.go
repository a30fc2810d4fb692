package opshttp_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/http/api"
	"bahi/http/opshttp"
	"bahi/internal/app"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
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

	eta := 3.0 + 4 // the fill, and as long as a whole fill for the phases after it
	r.set("books", 2, `total = 8, position = 2, rate = 2`)
	want = opsview.Build{Generation: 2, Phase: "filling", Done: 2, Total: 8, Percent: 25, Rate: 2, ETASeconds: &eta,
		Differences: []opsview.Difference{}}
	require.Equal(t, want, *r.books().Build)
	r.set("books", 2, `paused = true`)
	require.True(t, r.books().Build.Paused)
	require.Equal(t, "live", r.books().State, "only the build has stopped")
	r.set("books", 2, `paused = false, error = 'disk full'`)
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

// toldUntil reads the progress of a rebuild until a condition holds, or to its end.
func toldUntil(t *testing.T, stream *apitest.Stream, wanted func(opsview.Build) bool) (end opshttp.End) {
	t.Helper()
	for {
		var data json.RawMessage
		name, _ := stream.Next(&data)
		if name == "end" {
			require.NoError(t, json.Unmarshal(data, &end))
			return end
		}
		var b opsview.Build
		require.Equal(t, "progress", name)
		require.NoError(t, json.Unmarshal(data, &b))
		if wanted(b) {
			return end
		}
	}
}

func TestProjectionIsRebuiltOverHTTP(t *testing.T) {
	t.Parallel()
	with := apptest.Settings(t, apptest.Database(t))
	with.Keep = time.Hour
	o := apptest.StartAs(t, with)
	clerk := o.Clerk(apptest.Home)
	account := apptest.Open(clerk, "HDFC")
	apptest.Fill(clerk, account, 200)
	before := apptest.Balances(clerk, apptest.Ledger(account))
	none := toldUntil(t, o.Operator().Stream("/ops/projections/books/progress"), func(opsview.Build) bool { return true })
	require.Equal(t, opshttp.End{State: "none", Generation: 1}, none)
	all := apitest.Read[[]opsview.Projection](o.Operator().GET("/ops/projections").Status(200))
	require.Len(t, all, len(app.AllProjections()))
	was := o.Projection("books")
	require.Equal(t, "live", was.State)
	require.Nil(t, was.Build)
	require.Equal(t, event.Position(o.Head()), was.Head)

	// At one event per second the build can be observed.
	var now opsview.Projection
	o.Operator().POST("/ops/projections/books/rebuild", `{"throttle":1,"keep_seconds":3600}`).Status(202).JSON(&now)
	require.Greater(t, now.Build.Generation, was.Generation)
	o.Operator().POST("/ops/projections/books/rebuild", nil).Problem(409, "The projection is being rebuilt already")
	stream := o.Operator().Stream("/ops/projections/books/progress")
	toldUntil(t, stream, func(b opsview.Build) bool { return b.Phase == "filling" && b.Done > 0 && b.Done < b.Total })
	require.True(t, o.Order("pause", "").Build.Paused)
	toldUntil(t, stream, func(b opsview.Build) bool { return b.Paused })
	require.Equal(t, "live", o.Projection("books").State)
	o.Order("resume", "")
	require.Nil(t, o.Order("throttle", `{"events_per_second":null}`).Build.Throttle)
	end := toldUntil(t, stream, func(opsview.Build) bool { return false })
	require.Equal(t, opshttp.End{State: "live", Generation: now.Build.Generation}, end)

	now = o.Projection("books")
	require.Nil(t, now.Build)
	require.Equal(t, was.Generation, now.Kept.Generation)
	require.Equal(t, before, apptest.Balances(clerk, apptest.Ledger(account)))
	o.Operator().POST("/ops/projections/books/cancel", nil).Problem(409, "The projection is not being rebuilt")
	o.Operator().POST("/ops/projections/users/rollback", nil).Problem(409, "No earlier generation is kept to go back to")

	o.Operator().POST("/ops/projections/books/rebuild", `{"throttle":1}`).Status(202) // takes minutes
	stream = o.Operator().Stream("/ops/projections/books/progress")
	toldUntil(t, stream, func(b opsview.Build) bool { return b.Phase == "filling" })
	require.Nil(t, o.Order("cancel", "").Build)
	end = toldUntil(t, stream, func(opsview.Build) bool { return false })
	require.Equal(t, opshttp.End{State: "cancelled", Generation: now.Generation}, end)
	require.Equal(t, before, apptest.Balances(clerk, apptest.Ledger(account)))
}

func TestAReactorAndAProjectionOfOneNameAreBothSetGoing(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	o.Operator().POST("/api/bots",
		`{"name": "Asha", "description": "Answers questions about orders", "systemPrompt": "You are polite."}`).Status(201)
	var parked []opsview.Parked
	stopped := func() (found []string) {
		parked = nil
		o.Operator().GET("/ops/parked").Status(200).JSON(&parked)
		for _, p := range parked {
			if p.Position != 0 { // another error passes
				found = append(found, p.Kind+" "+p.Name)
			}
		}
		slices.Sort(found)
		return found
	}
	comes := func(want ...string) {
		t.Helper()
		require.Eventually(t, func() bool { return slices.Equal(want, stopped()) }, time.Minute, 5*time.Millisecond)
	}
	park := func(page string) event.Position {
		o.Sql(`alter table bots_g1.source add constraint parked_for_a_test check (false) not valid`)
		o.Sql(`alter table river.river_job add constraint parked_for_a_test check (kind <> 'read_bot_source') not valid`)
		o.Operator().POST("/api/bots/1/urls", map[string]any{"url": "https://shop.invalid/" + page}).Status(201)
		comes("projection bots", "reactor bots")
		require.Equal(t, app.Version, parked[0].Program)
		o.Sql(`alter table bots_g1.source drop constraint parked_for_a_test`)
		return parked[0].Position
	}
	rings := park("rings")
	o.Sql(`alter table river.river_job drop constraint parked_for_a_test`)
	o.Operator().POST("/ops/parked/bots/retry", nil).Status(200)
	require.Eventually(t, func() (passed bool) { // an event that is tried again is not shown as parked until it fails again
		require.NoError(t, o.Sys.Pool.QueryRow(t.Context(), `
			select min(position) >= $1 from (
				select position from projection.generation where name = 'bots' and status = 'live'
				union all
				select position from reactor.checkpoint where name = 'bots') checkpoints`, int64(rings)).Scan(&passed))
		return passed
	}, time.Minute, 5*time.Millisecond)
	comes()
	skip := map[string]any{"position": park("chains"), "reason": "a test"}
	o.Operator().POST("/ops/parked/bots/skip", skip).Status(200)
	comes("reactor bots")
	o.Operator().POST("/ops/parked/bots/skip", skip).Status(200)
	comes()
	require.Equal(t, 1, o.Projection("bots").Skipped)
	o.Operator().POST("/ops/parked/bots/skip", skip).Problem(409, "The projection is not parked at that event")
}

func TestAnUnknownNameOrAReactorsIsNoProjection(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	for _, name := range []string{"bank", "books_g1", uuid.NewString(), "accounts"} { // a reactor
		o.Operator().GET("/ops/projections/"+name).Problem(404, "Projection not found")
		o.Operator().POST("/ops/projections/"+name+"/rebuild", nil).Problem(404, "Projection not found")
		o.Operator().POST("/ops/projections/"+name+"/retry", nil).Problem(404, "Projection not found")
	}
	o.Operator().POST("/ops/projections/books/rebuild?dryrun=true", nil).Status(422)
	o.Operator().POST("/ops/parked/bank/retry", nil).Problem(404, "Projection not found")
	o.Operator().POST("/ops/parked/bank/skip", `{"position":1,"reason":"x"}`).Problem(404, "Projection not found")
}
