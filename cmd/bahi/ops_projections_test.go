package main_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/http/api/apitest"
	"bahi/http/ops"
	"bahi/internal/app"
	opsviews "bahi/readmodels/ops"
)

// projection asks how a projection is.
func (o *office) projection(name string) (p opsviews.Projection) {
	o.t.Helper()
	o.operator().GET("/ops/projections/" + name).Status(200).JSON(&p)
	return p
}

// order asks for something to be done to the books, and answers how it is then.
func (o *office) order(verb, body string) (p opsviews.Projection) {
	o.t.Helper()
	o.operator().POST("/ops/projections/books/"+verb, body).Status(200).JSON(&p)
	return p
}

// toldUntil reads what is told of a rebuild up to one that is as wanted, or up to its end.
func toldUntil(t *testing.T, stream *apitest.Stream, wanted func(opsviews.Build) bool) (end ops.End) {
	t.Helper()
	for {
		var data json.RawMessage
		name, _ := stream.Next(&data)
		if name == "end" {
			require.NoError(t, json.Unmarshal(data, &end))
			return end
		}
		var b opsviews.Build
		require.Equal(t, "progress", name)
		require.NoError(t, json.Unmarshal(data, &b))
		if wanted(b) {
			return end
		}
	}
}

func TestAProjectionIsRebuiltOverHTTP(t *testing.T) {
	t.Parallel()
	o := start(t)
	clerk := o.clerk(home)
	account := open(clerk, "HDFC")
	fillOnce(clerk, account, 100)
	o.sys.Books.Wait() // for what follows on the answer
	before := balances(clerk, ledger(account))
	var all []opsviews.Projection
	o.operator().GET("/ops/projections").Status(200).JSON(&all)
	require.Len(t, all, len(app.AllProjections()))
	was := o.projection("books")
	require.Equal(t, "live", was.State)
	require.Nil(t, was.Build)
	require.Equal(t, event.Position(o.head()), was.Head)

	var estimate opsviews.Estimate
	var tried struct {
		Times, Events int
		Answer        string
	}
	require.Eventually(t, func() bool { // what counts them may be late by a moment, and cannot tell anything before it has one
		a := o.operator().POST("/ops/projections/books/rebuild?dry_run=true", nil)
		tried.Times++
		tried.Events, tried.Answer = len(slices.Collect(o.events(0))), a.Text
		if a.Response.StatusCode != http.StatusOK {
			return false
		}
		a.JSON(&estimate)
		return int(estimate.Events) == tried.Events
	}, time.Minute, 20*time.Millisecond, "%+v, %+v", &estimate, &tried)
	require.Positive(t, estimate.Rate)
	require.Positive(t, estimate.Bytes)
	require.Nil(t, o.projection("books").Build, "nothing has begun")

	// At an event a second there is time to look.
	var now opsviews.Projection
	o.operator().POST("/ops/projections/books/rebuild", `{"throttle":1,"keep_seconds":3600}`).Status(202).JSON(&now)
	require.Greater(t, now.Build.Generation, was.Generation)
	o.operator().POST("/ops/projections/books/rebuild", nil).Problem(409, "The projection is being rebuilt already")
	stream := o.operator().Stream("/ops/projections/books/progress")
	toldUntil(t, stream, func(b opsviews.Build) bool { return b.Phase == "filling" && b.Done > 0 && b.Done < b.Total })
	require.True(t, o.order("pause", "").Build.Paused)
	toldUntil(t, stream, func(b opsviews.Build) bool { return b.Paused })
	require.Equal(t, "live", o.projection("books").State)
	o.order("resume", "")
	require.Nil(t, o.order("throttle", `{"events_per_second":null}`).Build.Throttle)
	end := toldUntil(t, stream, func(opsviews.Build) bool { return false })
	require.Equal(t, ops.End{State: "live", Generation: now.Build.Generation}, end)

	now = o.projection("books")
	require.Nil(t, now.Build)
	require.Equal(t, was.Generation, now.Kept.Generation)
	require.Equal(t, before, balances(clerk, ledger(account)))
	o.operator().POST("/ops/projections/books/cancel", nil).Problem(409, "The projection is not being rebuilt")
	o.operator().POST("/ops/projections/users/rollback", nil).Problem(409, "No earlier generation is kept to go back to")
}

func TestARebuildIsRolledBackOverHTTP(t *testing.T) {
	t.Parallel()
	s := testSettings(t, testDatabase(t))
	s.Keep = time.Hour
	o := startAs(t, s)
	clerk := o.clerk(home)
	account := open(clerk, "HDFC")
	post(clerk, account, deposit("2025-03-01", "1"))
	was := o.projection("books").Generation
	o.operator().POST("/ops/projections/books/rebuild", nil).Status(202)
	toldUntil(t, o.operator().Stream("/ops/projections/books/progress"), func(opsviews.Build) bool { return false })
	next := o.projection("books").Generation
	require.Greater(t, next, was)

	row := post(clerk, account, deposit("2025-03-02", "2"))
	now := o.order("rollback", "")
	require.Equal(t, was, now.Generation)
	require.Equal(t, next, now.Kept.Generation)
	require.Equal(t, "03-01 1, 03-02 3", balances(clerk, ledger(account)), "what was read before has followed")
	clerk.DELETE(at(account, row.ID)).Status(204)
	require.Equal(t, next, o.order("rollback", "").Generation, "and there is a way forth again")
	require.Equal(t, "03-01 1", balances(clerk, ledger(account)))
}

func TestARebuildIsCancelledOverHTTP(t *testing.T) {
	t.Parallel()
	o := start(t)
	clerk := o.clerk(home)
	account := open(clerk, "HDFC")
	fillOnce(clerk, account, 100)
	was, before := o.projection("books"), balances(clerk, ledger(account))
	o.operator().POST("/ops/projections/books/rebuild", `{"throttle":1}`).Status(202) // which takes minutes
	stream := o.operator().Stream("/ops/projections/books/progress")
	toldUntil(t, stream, func(b opsviews.Build) bool { return b.Phase == "filling" })
	require.Nil(t, o.order("cancel", "").Build)
	end := toldUntil(t, stream, func(opsviews.Build) bool { return false })
	require.Equal(t, ops.End{State: "cancelled", Generation: was.Generation}, end)
	require.Equal(t, before, balances(clerk, ledger(account)))
}

func TestAPausedProjectionIsReportedAndAnswersAreStale(t *testing.T) {
	t.Parallel()
	o := start(t)
	clerk := o.clerk(home)
	account := open(clerk, "HDFC")
	post(clerk, account, deposit("2025-03-01", "1"))
	require.Equal(t, "03-01 1", balances(clerk, ledger(account)))
	readiness(t, o.stranger())
	require.Equal(t, "paused", o.order("pause", "").State)
	state := func() string {
		var ready struct {
			Ready       bool
			Projections []struct{ Name, State string }
		}
		lenient(t, readiness(t, o.stranger()), &ready)
		require.True(t, ready.Ready)
		return ready.Projections[0].Name + " " + ready.Projections[0].State
	}
	require.Equal(t, "books paused", state())
	wrote := clerk.POST(ledger(account), deposit("2025-03-02", "2")).Status(201).Header("Bahi-Position")
	require.Equal(t, `110 - "Response is Stale"`, clerk.GET(ledger(account)).Status(200).Header("Warning"))
	late := o.projection("books")
	require.NotEqual(t, new(uint64), late.LagEvents)
	require.Positive(t, late.LagSeconds)

	require.Equal(t, "live", o.order("resume", "").State)
	clerk.With("Bahi-Min-Position", wrote).GET("/banks").Status(200)
	require.Eventually(t, func() bool { return state() == "books live" }, time.Minute, 5*time.Millisecond)
	o.operator().POST("/ops/projections/books/resume", nil).Problem(409, "The projection is not paused")
}

func TestAParkedEventIsShownAndSkippedWithAReason(t *testing.T) {
	t.Parallel()
	o := start(t)
	clerk := o.clerk(home)
	account := open(clerk, "HDFC")
	post(clerk, account, deposit("2025-03-01", "1"))
	clerk.GET("/banks").Status(200)
	o.operator().GET("/ops/parked").Status(200).Body(`[]`)
	o.park()
	row := post(clerk, account, deposit("2025-03-02", "2"))
	var parked []opsviews.Parked
	require.Eventually(t, func() bool {
		o.operator().GET("/ops/parked").Status(200).JSON(&parked)
		return len(parked) == 1
	}, time.Minute, 5*time.Millisecond)
	p := parked[0]
	require.Equal(t, []string{"books", "projection", "BankRowAdded"}, []string{p.Name, p.Kind, p.Type})
	require.Equal(t, event.Position(o.head()), p.Position)
	require.Contains(t, p.Error, "parked_for_a_test")
	require.Equal(t, app.Version, p.Program)
	require.NotNil(t, p.EventID)
	require.NotEmpty(t, p.Stream)
	require.Equal(t, "parked", o.projection("books").State)

	o.sql(`alter table books_g1.row_version drop constraint parked_for_a_test`)
	skip := func(at event.Position, reason string) *apitest.Answer {
		return o.operator().POST("/ops/projections/books/skip", map[string]any{"position": at, "reason": reason})
	}
	skip(p.Position, "").Problem(422, "Validation error", "reason", "must not be empty")
	skip(p.Position-1, "another one").Problem(409, "The projection is not parked")
	before := o.head()
	a := skip(p.Position, "a test").Status(200)
	require.Len(t, slices.Collect(o.events(before)), 1)
	require.Equal(t, strconv.FormatInt(o.head(), 10), a.Header("Bahi-Position"))
	require.Eventually(t, func() bool { return o.projection("books").State == "live" }, time.Minute, 5*time.Millisecond)
	require.Equal(t, 1, o.projection("books").Skipped)
	o.operator().GET("/ops/parked").Status(200).Body(`[]`)
	clerk.With("Bahi-Min-Position", a.Header("Bahi-Position")).GET("/banks").Status(200)
	require.Equal(t, "03-01 1", balances(clerk, ledger(account)), "row %d was passed over", row.ID)
	skip(p.Position, "again").Problem(409, "The projection is not parked")
	o.operator().POST("/ops/projections/books/retry", nil).Problem(409, "The projection is not parked")
}

func TestOnlyAnOperatorSeesProjections(t *testing.T) {
	t.Parallel()
	o := start(t)
	asha := o.person("asha@example.com")
	paths := [][2]string{
		{"GET", "/ops/projections"}, {"GET", "/ops/projections/books"}, {"GET", "/ops/projections/books/progress"}, {"GET", "/ops/parked"},
		{"POST", "/ops/parked/books/retry"}, {"POST", "/ops/parked/books/skip"},
	}
	for _, verb := range []string{"rebuild", "pause", "resume", "cancel", "accept", "throttle", "rollback", "retry", "skip"} {
		paths = append(paths, [2]string{"POST", "/ops/projections/books/" + verb})
	}
	for _, r := range paths {
		asha.Do(r[0], r[1], nil).Problem(403, "Not enough permissions")
		o.stranger().Do(r[0], r[1], nil).Problem(401, "Not authenticated")
	}
	for _, name := range []string{"bank", "books_g1", uuid.NewString(), "accounts"} { // the last is a reactor
		o.operator().GET("/ops/projections/"+name).Problem(404, "Projection not found")
		o.operator().POST("/ops/projections/"+name+"/rebuild", nil).Problem(404, "Projection not found")
		o.operator().POST("/ops/projections/"+name+"/retry", nil).Problem(404, "Projection not found")
	}
	o.operator().POST("/ops/parked/bank/retry", nil).Problem(404, "Projection not found")
	o.operator().POST("/ops/parked/bank/skip", `{"position":1,"reason":"x"}`).Problem(404, "Projection not found")
	for _, projection := range []string{"books", "users"} {
		require.Nil(t, o.projection(projection).Build)
	}
}
