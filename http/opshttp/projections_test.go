package opshttp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/domain/actor"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/http/api"
	"bahi/http/opshttp"
	"bahi/internal/test/apitest"
	"bahi/internal/test/pgtest"
	"bahi/migrations"
	"bahi/projections"
	"bahi/readmodels/opsview"
)

// orders records what is asked of the builds.
type orders struct {
	mu    sync.Mutex
	asked []string
	err   error
}

func (o *orders) note(what ...any) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.asked = append(o.asked, strings.TrimSpace(fmt.Sprintln(what...)))
	}
	return o.err
}

// taken returns the orders since the last call.
func (o *orders) taken() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	asked := o.asked
	o.asked = nil
	return asked
}

// refuse makes all orders fail with err, or succeed if err is nil.
func (o *orders) refuse(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = err
}

func (o *orders) Rebuild(_ context.Context, name string, how opshttp.Rebuild) error {
	return o.note("rebuild", name, how)
}

func (o *orders) Estimate(_ context.Context, name string) (opsview.Estimate, error) {
	return opsview.Estimate{Events: 10, Rate: 4, Seconds: 2.5, Bytes: 8192}, o.note("estimate", name)
}

func (o *orders) Throttle(_ context.Context, name string, perSecond int) error {
	return o.note("throttle", name, perSecond)
}
func (o *orders) Pause(_ context.Context, name string) error    { return o.note("pause", name) }
func (o *orders) Resume(_ context.Context, name string) error   { return o.note("resume", name) }
func (o *orders) Cancel(_ context.Context, name string) error   { return o.note("cancel", name) }
func (o *orders) Accept(_ context.Context, name string) error   { return o.note("accept", name) }
func (o *orders) Rollback(_ context.Context, name string) error { return o.note("rollback", name) }
func (o *orders) Retry(_ context.Context, name string) error    { return o.note("retry", name) }

func (o *orders) Skip(_ context.Context, _ commands.Request, name string, at event.Position, reason string) (event.Position, error) {
	return 77, o.note("skip", name, at, reason)
}

// registry is a server on a registry of projections that the test writes by hand.
type registry struct {
	t    *testing.T
	pool *pgxpool.Pool
	url  string

	orders *orders
}

func startRegistry(t *testing.T) *registry {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), pgtest.Template(t, "migrated", migrations.Up))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	a := api.New(api.Config{Credentials: []api.Credential{{Authenticator: people{
		"operator": {Operator: true}, "clerk": {Ledger: actor.Write, Marketplace: actor.Write, Messaging: actor.Write, Audit: actor.Write},
	}}}})
	r := &registry{t: t, pool: pool, orders: &orders{}}
	routes := &opshttp.Routes{
		API: a, Registry: &opsview.Projections{DB: pool, Versions: map[string]int{"books": 2, "users": 1}}, Builds: r.orders,
		Captured: map[string]opshttp.Captured{"mail": drawer{}},
	}
	routes.Projections()
	routes.Parked()
	routes.Outbox()
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

func (r *registry) operator() *apitest.Client { return apitest.New(r.t, r.url, "operator") }

func (r *registry) sql(text string, args ...any) {
	r.t.Helper()
	_, err := r.pool.Exec(r.t.Context(), text, args...)
	require.NoError(r.t, err)
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

func TestOnlyOperatorsSeeAndChangeProjections(t *testing.T) {
	t.Parallel()
	r := startRegistry(t)
	requests := [][2]string{
		{"GET", "/ops/projections"}, {"GET", "/ops/projections/books"}, {"GET", "/ops/projections/books/progress"}, {"GET", "/ops/parked"},
		{"GET", "/ops/outbox?port=mail"}, {"POST", "/ops/parked/books/retry"}, {"POST", "/ops/parked/books/skip"},
	}
	for _, verb := range []string{"rebuild", "pause", "resume", "cancel", "accept", "rollback", "retry", "skip", "throttle"} {
		requests = append(requests, [2]string{"POST", "/ops/projections/books/" + verb})
	}
	for _, q := range requests {
		apitest.New(t, r.url, "clerk").Do(q[0], q[1], nil).Problem(403, "Not enough permissions")
		apitest.New(t, r.url, "").Do(q[0], q[1], nil).Problem(401, "Not authenticated")
	}
	require.Empty(t, r.orders.taken())
}

func TestProjectionIsShown(t *testing.T) {
	t.Parallel()
	r := startRegistry(t)
	var all []opsview.Projection
	r.operator().GET("/ops/projections").Status(200).JSON(&all)
	require.Equal(t, []opsview.Projection{
		{Name: "books", Version: 2, State: "building"}, {Name: "users", Version: 1, State: "building"},
	}, all)

	r.log(10)
	r.generation("books", 3, 1, `live = true, position = 10`) // another program's version
	r.generation("books", 4, 2, `live = true, position = 10, rate = 1000`)
	r.generation("users", 1, 1, `live = true, position = 4`)
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
	r.generation("books", 1, 2, `live = true, position = 10`)
	require.Nil(t, r.books().Build)
	r.generation("books", 2, 2, `throttle = 500`)
	limit := 500
	want := opsview.Build{Generation: 2, Phase: "requested", Throttle: &limit, Differences: []opsview.Difference{}}
	require.Equal(t, want, *r.books().Build)

	eta := 3.0 + 4 // the fill, and as long as a whole fill for the phases after it
	r.set("books", 2, `phase = 'filling', throttle = null, total = 8, position = 2, rate = 2`)
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
	r.sql(`insert into projection.partition (name, generation, nth, position) values ('books', 2, 0, 8), ('books', 2, 1, 4)`)
	require.Equal(t, event.Position(4), r.books().Build.Done, "the position of the slowest part")
	r.set("books", 2, `position = 10, phase = 'catching up'`)
	b := r.books().Build
	require.Equal(t, event.Position(10), b.Done)
	require.InDelta(t, 100, b.Percent, 0)
	require.NotNil(t, b.ETASeconds, "the phases after the fill")

	r.set("books", 2, `phase = 'differs', differences = '[{"table":"row","count":3,"rows":[{"where":"log","row":{"id":7}}]}]'`)
	require.Equal(t, "row", r.books().Build.Differences[0].Table)
	require.JSONEq(t, `{"id":7}`, string(r.books().Build.Differences[0].Rows[0].Row))

	r.set("books", 1, `live = false, keep_until = now() + interval '1 hour'`)
	r.set("books", 2, `live = true, building = false, phase = null`)
	r.generation("books", 3, 2, `scratch = true`)
	r.generation("books", 4, 2, `scratch = true, keep_until = now()`) // being dropped
	now := r.books()
	require.Nil(t, now.Build)
	require.Equal(t, 2, now.Generation)
	require.Equal(t, 1, now.Kept.Generation)
	require.Equal(t, event.Position(10), now.Kept.Position)
	require.WithinDuration(t, time.Now().Add(time.Hour), now.Kept.Until, time.Minute)
}

func TestEmptyLogIsFilledAtOnce(t *testing.T) {
	t.Parallel()
	r := startRegistry(t)
	r.generation("books", 1, 2, `phase = 'filling'`)
	require.InDelta(t, 100, r.books().Build.Percent, 0)
	require.Nil(t, r.books().Build.ETASeconds, "unknown without a rate")
}

func TestParkedFollowersAreListed(t *testing.T) {
	t.Parallel()
	r := startRegistry(t)
	r.operator().GET("/ops/parked").Status(200).Body(`[]`)
	r.log(5)
	for i, set := range []string{`live = true, error_position = 3`, `keep_until = now(), error_position = 4`, `scratch = true`,
		`error_position = null`} {
		r.generation("books", i+1, 2, set+`, error = 'bad', error_at = '2026-03-01T10:00:00Z', error_program = '1.4'`)
	}
	r.generation("books", 7, 1, `live = true, error = 'of an older program'`)
	r.generation("users", 1, 1, `live = true`)
	r.sql(`insert into reactor.checkpoint (name, store_id, position, error, error_position, error_at) values
		('accounts', gen_random_uuid(), 4, 'no', 5, now()), ('well', gen_random_uuid(), 5, null, null, null)`)
	var all []opsview.Parked
	r.operator().GET("/ops/parked").Status(200).JSON(&all)
	short := make([]string, len(all))
	for i, p := range all {
		short[i] = fmt.Sprint(p.Name, " ", p.Kind, " ", p.Version, " ", p.Generation, " ", p.Position, " ", p.Stream, " ", p.Type,
			" ", p.EventID != nil)
	}
	require.Equal(t, []string{
		"books build 2 4 0   false", "books kept 2 2 4 bank-7 BankRowAdded true", "books projection 2 1 3 bank-7 BankRowAdded true",
		"accounts reactor 0 0 5 bank-7 BankRowAdded true",
	}, short)
	var id uuid.UUID
	require.NoError(t, r.pool.QueryRow(t.Context(), `select id from log.event where position = 3`).Scan(&id))
	require.Equal(t, id.String(), *all[2].EventID)
	require.Equal(t, "bad", all[2].Error)
	require.Equal(t, "1.4", all[2].Program)
	require.Equal(t, time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC), all[2].Since.UTC())
}

func TestRebuildIsRequestedAndEstimated(t *testing.T) {
	t.Parallel()
	r := startRegistry(t)
	r.generation("books", 1, 2, `live = true`)
	const path = "/ops/projections/books/rebuild"
	operator := r.operator()
	var now opsview.Projection
	operator.POST(path, nil).Status(202).JSON(&now)
	require.Equal(t, "books", now.Name)
	require.Equal(t, 1, now.Generation)
	operator.POST(path, `{}`).Status(202)
	operator.POST(path, `{"throttle":500,"partitions":4,"accept_differences":true,"keep_seconds":90}`).Status(202)
	operator.POST(path, `{"keep_seconds":0}`).Status(202)
	operator.POST(path+"?dry_run=true", nil).Status(200).Body(`{"events":10,"rate":4,"seconds":2.5,"bytes":8192}`)
	require.Equal(t, []string{
		"rebuild books {0 0 false -1ns}", "rebuild books {0 0 false -1ns}", "rebuild books {500 4 true 1m30s}", "rebuild books {0 0 false 0s}",
		"estimate books",
	}, r.orders.taken())

	for body, wrong := range map[string][2]string{
		`{"throtle":500}`: {"throtle", "unknown field"}, `{"throttle":0}`: {"throttle", "must be at least 1"},
		`{"partitions":65}`: {"partitions", "must be at most 64"}, `{"keep_seconds":-1}`: {"keep_seconds", "must be at least 0"},
	} {
		operator.POST(path, body).Problem(422, "Validation error", wrong[0], wrong[1])
	}
	operator.POST(path+"?dryrun=true", nil).Status(422)
	require.Empty(t, r.orders.taken())
	r.orders.refuse(projections.ErrBuildRuns)
	operator.POST(path, nil).Problem(409, "The projection is being rebuilt already")
	r.orders.refuse(errors.New("secret: away"))
	operator.POST(path+"?dry_run=true", nil).Problem(500, "Internal error")
}

func TestEachOrderRespondsWithTheProjection(t *testing.T) {
	t.Parallel()
	r := startRegistry(t)
	r.generation("users", 3, 1, `live = true`)
	for verb, body := range map[string]string{
		"pause": "", "resume": "", "cancel": "", "accept": "", "rollback": "", "retry": "",
		"throttle": `{"events_per_second":100}`, "skip": `{"position":5,"reason":" a test row "}`,
	} {
		path := "/ops/projections/users/" + verb
		var now opsview.Projection
		a := r.operator().POST(path, body).Status(200).JSON(&now)
		require.Equal(t, 3, now.Generation)
		asked := strings.TrimSpace(verb + " users " + map[string]string{"throttle": "100", "skip": "5 a test row"}[verb])
		require.Equal(t, []string{asked}, r.orders.taken())
		require.Equal(t, map[string]string{"skip": "77"}[verb], a.Header("Bahi-Position"))

		r.orders.refuse(fault.New(fault.Conflict, "Not now"))
		r.operator().POST(path, body).Problem(409, "Not now")
		r.operator().POST("/ops/projections/banks/"+verb, body).Problem(404, "Projection not found")
		r.orders.refuse(nil)
		r.operator().POST("/ops/projections/banks/"+verb, body).Problem(404, "Projection not found")
		require.Empty(t, r.orders.taken())
	}
	r.operator().POST("/ops/projections/users/throttle", `{"events_per_second":null}`).Status(200)
	require.Equal(t, []string{"throttle users 0"}, r.orders.taken())
	r.operator().POST("/ops/projections/users/throttle", `{}`).Problem(422, "Validation error", "events_per_second", "is required")
	r.operator().POST("/ops/projections/users/throttle", `{"events_per_second":0}`).Status(422)
	r.operator().POST("/ops/projections/banks/rebuild", nil).Problem(404, "Projection not found")
	r.operator().POST("/ops/projections/banks/rebuild?dry_run=true", nil).Problem(404, "Projection not found")
	r.operator().GET("/ops/projections/banks").Problem(404, "Projection not found")
	r.operator().GET("/ops/projections/banks/progress").Problem(404, "Projection not found")
	require.Empty(t, r.orders.taken())
}

func TestParkedFollowersAreRetriedAndSkipped(t *testing.T) {
	t.Parallel()
	r := startRegistry(t)
	r.operator().POST("/ops/parked/accounts/retry", nil).Status(200).Body(`[]`)
	a := r.operator().POST("/ops/parked/accounts/skip", `{"position":5,"reason":"गलत"}`).Status(200).Body(`[]`)
	require.Equal(t, "77", a.Header("Bahi-Position"))
	require.Equal(t, []string{"retry accounts", "skip accounts 5 गलत"}, r.orders.taken())
	r.orders.refuse(projections.ErrNotParked)
	r.operator().POST("/ops/parked/accounts/retry", nil).Problem(409, "The projection is not parked")
	r.operator().POST("/ops/parked/accounts/skip", `{"position":5,"reason":"x"}`).Problem(409, "The projection is not parked")
	r.orders.refuse(nil)
	for body, wrong := range map[string][2]string{
		`{"position":5}`: {"reason", "is required"}, `{"position":5,"reason":""}`: {"reason", "must not be empty"},
		`{"position":5,"reason":" "}`: {"reason", "must not be empty"}, `{"reason":"x"}`: {"position", "is required"},
		`{"position":0,"reason":"x"}`:                                {"position", "must be at least 1"},
		`{"position":5,"reason":"` + strings.Repeat("x", 501) + `"}`: {"reason", "at most 500 characters"},
	} {
		for _, path := range []string{"/ops/parked/books/skip", "/ops/projections/books/skip"} {
			r.operator().POST(path, body).Problem(422, "Validation error", wrong[0], wrong[1])
		}
	}
	require.Empty(t, r.orders.taken())
}
