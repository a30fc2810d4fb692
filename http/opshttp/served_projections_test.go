package opshttp_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/http/opshttp"
	"bahi/internal/app"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/readmodels/opsview"
)

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

	var estimate opsview.Estimate
	var tried struct {
		Times, Events int
		Answer        string
	}
	require.Eventually(t, func() bool { // the collector may lag, and has no value before the first one
		a := o.Operator().POST("/ops/projections/books/rebuild?dry_run=true", nil)
		tried.Times++
		tried.Events, tried.Answer = len(slices.Collect(o.Events(0))), a.Text
		if a.Response.StatusCode != http.StatusOK {
			return false
		}
		a.JSON(&estimate)
		return int(estimate.Events) == tried.Events
	}, time.Minute, 20*time.Millisecond, "%+v, %+v", &estimate, &tried)
	require.Positive(t, estimate.Rate)
	require.Positive(t, estimate.Bytes)
	require.Nil(t, o.Projection("books").Build, "no build has started")

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
