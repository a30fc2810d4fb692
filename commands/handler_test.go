package commands

import (
	"context"
	"encoding/json"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/fault"
)

func TestACommandGivesUpOnAStreamThatNeverHoldsStill(t *testing.T) {
	t.Parallel()
	all := nodes(t, 2)
	all[0].make(t, "1", "start")
	n := 0
	all[0].store.Set(func() {
		all[0].store.Appending = func(context.Context, string) error {
			n++
			_, err := Handle(t.Context(), all[1].Handler, as(t), things, "1", nameThing{Name: strconv.Itoa(n)})
			return err
		}
	})
	_, err := Handle(t.Context(), all[0].Handler, as(t), things, "1", nameThing{Name: "mine"})
	require.ErrorIs(t, err, ErrBusy)
	require.Equal(t, maxTries, n)
}

func TestANodeWithAnOldCacheAnswersAsTheLogHasIt(t *testing.T) {
	t.Parallel()
	all := nodes(t, 2)
	a, b := all[0], all[1]
	for _, id := range []string{"there", "same", "match", "gone"} {
		a.make(t, id, "x")
		b.catchUp()
		_, err := Load(t.Context(), b.Cached(), things, id)
		require.NoError(t, err)
	}
	_, err := Load(t.Context(), b.Cached(), things, "new")
	require.NoError(t, err, "the node remembers that there is none")

	a.make(t, "new", "x")
	_, err = Handle(t.Context(), b.Handler, as(t), things, "new", nameThing{Name: "y"})
	require.NoError(t, err, "no 404 for a record that another node has just created")

	a.make(t, "newer", "x")
	_, err = Create(t.Context(), b.Handler, as(t), things, called("newer"), makeThing{Name: "y"})
	require.ErrorIs(t, err, errThing)

	_, err = Handle(t.Context(), a.Handler, as(t), things, "gone", endThing{})
	require.NoError(t, err)
	_, err = Handle(t.Context(), b.Handler, as(t), things, "gone", nameThing{Name: "y"})
	require.ErrorIs(t, err, errNoThing)

	// A command may change nothing on an outdated state and still change the newest one.
	_, err = Handle(t.Context(), a.Handler, as(t), things, "same", nameThing{Name: "y"})
	require.NoError(t, err)
	out, err := Handle(t.Context(), b.Handler, as(t), things, "same", nameThing{Name: "x"})
	require.NoError(t, err)
	require.True(t, out.Changed)
	require.Equal(t, "x", out.State.Name)
	require.EqualValues(t, 2, out.Revision)

	_, err = Handle(t.Context(), a.Handler, as(t), things, "match", nameThing{Name: "y"})
	require.NoError(t, err)
	seen := func(r *Request) { r.IfMatch = new(int64(0)) }
	_, err = Handle(t.Context(), b.Handler, as(t, seen), things, "match", nameThing{Name: "x"})
	require.ErrorIs(t, err, ErrStale, "also where nothing would change")
	dry := func(r *Request) { r.DryRun = true }
	_, err = Handle(t.Context(), b.Handler, as(t, seen, dry), things, "match", nameThing{Name: "z"})
	require.ErrorIs(t, err, ErrStale, "also where nothing is appended")
	out, err = Handle(t.Context(), b.Handler, as(t, dry), things, "match", endThing{})
	require.NoError(t, err)
	require.Equal(t, thing{Name: "y", Gone: true}, out.State)
}

func TestIfMatchWantsTheNewestRevision(t *testing.T) {
	t.Parallel()
	n := nodes(t, 1)[0]
	n.make(t, "1", "a")
	match := func(r int64) Request { return as(t, func(q *Request) { q.IfMatch = &r }) }
	out, err := Handle(t.Context(), n.Handler, match(0), things, "1", nameThing{Name: "b"})
	require.NoError(t, err)
	require.EqualValues(t, 1, out.Revision)
	for _, old := range []int64{0, 2, -1} {
		_, err = Handle(t.Context(), n.Handler, match(old), things, "1", nameThing{Name: "c"})
		require.ErrorIs(t, err, ErrStale)
	}
	_, err = Handle(t.Context(), n.Handler, match(1), things, "2", nameThing{Name: "c"})
	require.ErrorIs(t, err, errNoThing, "a missing record is reported first")
	_, err = Create(t.Context(), n.Handler, match(0), things, func(context.Context) (string, error) {
		t.Error("a refusal needs no id")
		return "", nil
	}, makeThing{Name: "c"})
	require.ErrorIs(t, err, ErrStale)
	require.Equal(t, []string{"ThingMade", "ThingNamed"}, n.log(t))
}

func TestAForeignStreamLooksAbsentAndIsNeverWrittenTo(t *testing.T) {
	t.Parallel()
	n := nodes(t, 1)[0]
	n.make(t, "1", "a")
	foreign := as(t, func(r *Request) { r.Workspace = stranger })
	_, err := Handle(t.Context(), n.Handler, foreign, things, "1", nameThing{Name: "mine"})
	require.ErrorIs(t, err, errNoThing)
	_, err = Create(t.Context(), n.Handler, foreign, things, called("1"), makeThing{Name: "mine"})
	refused := new(fault.Error)
	require.ErrorAs(t, err, &refused)
	require.Equal(t, fault.NotFound, refused.Kind)
	_, err = Handle(t.Context(), n.Handler, as(t, func(r *Request) { r.Workspace, r.Key = stranger, "k" }), things, "1", endThing{})
	require.ErrorIs(t, err, errNoThing)
	require.Equal(t, []string{"ThingMade"}, n.log(t))
}

func TestADryRunAppendsNothingAndUsesNothingUp(t *testing.T) {
	t.Parallel()
	n := nodes(t, 1)[0]
	dry := as(t, keyed("k", "x"), func(r *Request) { r.DryRun = true })
	never := func(context.Context) (string, error) {
		t.Error("a dry run needs no id")
		return "", nil
	}
	out, err := Create(t.Context(), n.Handler, dry, things, never, makeThing{Name: "a"})
	require.NoError(t, err)
	require.Equal(t, Outcome[thing]{State: thing{Name: "a"}, Revision: -1, Changed: true}, out)
	require.Empty(t, n.log(t))

	n.make(t, "1", "a")
	out, err = Handle(t.Context(), n.Handler, dry, things, "1", endThing{})
	require.NoError(t, err)
	require.True(t, out.State.Gone)
	require.EqualValues(t, 0, out.Revision)
	_, err = Handle(t.Context(), n.Handler, dry, things, "2", endThing{})
	require.ErrorIs(t, err, errNoThing)
	require.Equal(t, []string{"ThingMade"}, n.log(t))

	out, err = Handle(t.Context(), n.Handler, as(t, keyed("k", "x")), things, "1", endThing{})
	require.NoError(t, err)
	require.False(t, out.Replayed, "the key is still usable")
}

func TestEventsTellWhoCausedThemAndWhy(t *testing.T) {
	t.Parallel()
	n := nodes(t, 1)[0]
	_, err := Create(t.Context(), n.Handler, as(t, keyed("k", "x"), func(r *Request) { r.Reason = "a typing error" }), things,
		called("1"), makeThing{Name: "a"})
	require.NoError(t, err)
	_, err = n.Numbers(t.Context(), "row", 1)
	require.NoError(t, err)
	want := event.Meta{
		Schema: 1, Workspace: workspace, Actor: "user:7", OccurredAt: n.clock.Now(), RequestID: "r1", CorrelationID: "c1",
		Reason: "a typing error",
	}
	require.Equal(t, []string{"RequestAccepted", "ThingMade", "NumbersReserved"}, n.log(t))
	for e, err := range n.store.ReadAll(t.Context(), 0, false) {
		require.NoError(t, err)
		var meta event.Meta
		require.NoError(t, json.Unmarshal(e.Meta, &meta))
		if e.Type == "RequestAccepted" {
			require.Equal(t, 1, meta.More)
			meta.More = 0
		}
		if e.Type == "NumbersReserved" {
			want = event.Meta{Schema: 1, Actor: "system:numbers", OccurredAt: n.clock.Now()}
		}
		require.Equal(t, want, meta, e.Type)
	}
}

func TestTheOutcomeTellsWhereTheStreamStands(t *testing.T) {
	t.Parallel()
	n := nodes(t, 1)[0]
	n.make(t, "1", "a")
	out, err := Handle(t.Context(), n.Handler, as(t), things, "1", nameThing{Name: "b"})
	require.NoError(t, err)
	last := n.stream(t, "thing-1")[1]
	want := Outcome[thing]{
		ID: "1", State: thing{Name: "b"}, Revision: 1, Position: last.Position, At: last.At, CreatedAt: n.stream(t, "thing-1")[0].At,
		Changed: true,
	}
	require.Equal(t, want, out)
	n.make(t, "2", "a")
	want.Position, err = n.store.Head(t.Context())
	require.NoError(t, err)
	out, err = Handle(t.Context(), n.Handler, as(t), things, "1", nameThing{Name: "b"})
	require.NoError(t, err)
	want.Changed = false
	require.Equal(t, want, out, "a decision without events is valid up to the head")
}
