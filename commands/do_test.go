package commands

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
)

// both renames one thing if another one has a name.
func both(_ *node, runs *int, between func()) func(context.Context, *Tx) error {
	return func(ctx context.Context, tx *Tx) error {
		*runs++
		other, err := Load(ctx, tx, things, "other")
		if err != nil {
			return err
		}
		if other.State.Gone {
			return errNoThing
		}
		if *runs == 1 && between != nil {
			between()
		}
		_, err = Decide(ctx, tx, things, "1", nameThing{Name: other.State.Name})
		return err
	}
}

func TestADecisionOnSeveralRecordsIsOneTransaction(t *testing.T) {
	t.Parallel()
	all := nodes(t, 2)
	n := all[0]
	n.make(t, "1", "a")
	req := as(t, keyed("k", "x"))
	decide := func(ctx context.Context, tx *Tx) error {
		if _, err := Decide(ctx, tx, things, "1", nameThing{Name: "b"}); err != nil {
			return err
		}
		_, err := DecideNew(ctx, tx, things, called("2"), always[thing](makeThing{Name: "c"}))
		return err
	}
	out, err := Do(t.Context(), n.Handler, req, things, decide)
	require.NoError(t, err)
	require.Equal(t, "1", out.ID, "the first record that was decided")
	require.Equal(t, []string{"ThingMade", "RequestAccepted", "ThingNamed", "ThingMade"}, n.log(t))
	require.EqualValues(t, 4, out.Position, "the end of the transaction")
	require.Equal(t, 1, event.More(n.stream(t, "thing-1")[1].Meta))
	require.Zero(t, event.More(n.stream(t, "thing-2")[0].Meta))
	for _, n := range all {
		again, err := Do(t.Context(), n.Handler, req, things, decide)
		require.NoError(t, err)
		out.Replayed = true
		require.Equal(t, out, again)
	}
}

func TestWhatADecisionReadIsStillTrueWhereItLands(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]struct {
		cmd  event.Command[thing]
		runs int
		want error
	}{
		"nothing happens":         {nil, 1, nil},
		"the record read changes": {nameThing{Name: "new"}, 2, nil},
		"the record read ends":    {endThing{}, 2, errNoThing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := nodes(t, 2)
			all[0].make(t, "1", "a")
			all[0].make(t, "other", "b")
			runs := 0
			out, err := Do(t.Context(), all[0].Handler, as(t), things, both(all[0], &runs, func() {
				if change.cmd != nil {
					_, err := Handle(t.Context(), all[1].Handler, as(t), things, "other", change.cmd)
					require.NoError(t, err)
				}
			}))
			require.ErrorIs(t, err, change.want)
			require.Equal(t, change.runs, runs)
			if change.want == nil {
				other, err := Load(t.Context(), all[1].Fresh(), things, "other")
				require.NoError(t, err)
				require.Equal(t, other.State.Name, out.State.Name)
			}
		})
	}
}

func TestNumbersAreMadeOnceAndOnlyIfNothingIsRefused(t *testing.T) {
	t.Parallel()
	all := nodes(t, 2)
	all[0].make(t, "other", "b")
	runs, made := 0, 0
	newID := func(context.Context) (string, error) {
		made++
		return "new", nil
	}
	out, err := Do(t.Context(), all[0].Handler, as(t), things, func(ctx context.Context, tx *Tx) error {
		runs++
		if _, err := Load(ctx, tx, things, "other"); err != nil {
			return err
		}
		if _, err := DecideNew(ctx, tx, things, newID, always[thing](makeThing{Name: "x"})); err != nil {
			return err
		}
		if runs == 1 {
			_, err := Handle(ctx, all[1].Handler, as(t), things, "other", nameThing{Name: "moved"})
			return err
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, "new", out.ID)
	require.Equal(t, []int{2, 1}, []int{runs, made})

	_, err = Do(t.Context(), all[0].Handler, as(t), things, func(ctx context.Context, tx *Tx) error {
		_, err := DecideNew(ctx, tx, things, newID, always[thing](nameThing{Name: "of nothing"}))
		return err
	})
	require.ErrorIs(t, err, errNoThing)
	require.Equal(t, 1, made, "the command was refused")
}

// After a batch of commands, their states equal the log's, without a read.
func TestCommandsThatAreHandledTogether(t *testing.T) {
	t.Parallel()
	all := nodes(t, 2)
	n, other := all[0], all[1]
	done, err := HandleEach(t.Context(), n.Handler, as(t), things,
		[]StreamCommand[thing]{Begins("1", makeThing{Name: "a"}), Begins("2", makeThing{Name: "b"})})
	require.NoError(t, err)
	other.catchUp()
	_, err = Handle(t.Context(), other.Handler, as(t), things, "2", nameThing{Name: "faster"})
	require.NoError(t, err)

	ones := []StreamCommand[thing]{
		{Loaded: done[0].Loaded, ID: "1", Command: nameThing{Name: "c"}}, {Loaded: done[1].Loaded, ID: "2", Command: nameThing{Name: "d"}},
		{Loaded: done[0].Loaded, ID: "1", Command: nameThing{Name: "a"}},
	}
	done, err = HandleEach(t.Context(), n.Handler, as(t), things, ones)
	require.NoError(t, err)
	require.Equal(t, []bool{true, false, false}, []bool{done[0].Changed, done[1].Changed, done[2].Changed},
		"another process was first, and there are no events")
	require.Equal(t, []string{"c", "b", "a"}, []string{done[0].State.Name, done[1].State.Name, done[2].State.Name})

	metrics := prometheus.NewRegistry()
	n.Register(metrics)
	found, err := metrics.Gather()
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, "bahi_append_conflicts_total", found[0].GetName())
	require.Equal(t, "thing", found[0].GetMetric()[0].GetLabel()[0].GetValue())
	require.InDelta(t, 1, found[0].GetMetric()[0].GetCounter().GetValue(), 0)

	entry, cached := n.cache.get("thing-1")
	require.True(t, cached)
	fresh, err := Load(t.Context(), other.Fresh(), things, "1")
	require.NoError(t, err)
	fresh.asOf = known{}
	require.Equal(t, fresh, done[0].Loaded)
	require.Equal(t, fresh, entry.loaded)
	n.catchUp()
	l, err := Load(t.Context(), n.Cached(), things, "2")
	require.NoError(t, err)
	require.Equal(t, "faster", l.State.Name)

	require.NoError(t, HandleAll(t.Context(), n.Handler, as(t), things, ones[1:2]), "it is decided on the newer state")
	l, err = Load(t.Context(), n.Fresh(), things, "2")
	require.NoError(t, err)
	require.Equal(t, "d", l.State.Name)

	_, err = HandleEach(t.Context(), n.Handler, as(t), things,
		[]StreamCommand[thing]{Begins("3", makeThing{Name: "e"}), {Loaded: fresh, ID: "1", Command: makeThing{Name: "f"}}})
	require.ErrorIs(t, err, errThing)
	require.Empty(t, n.stream(t, "thing-3"), "all are decided before any is written")
}

// What a caller has read from a table is checked by the append.
func TestCommandsThatAreHandledTogetherCheckWhatTheCallerRead(t *testing.T) {
	t.Parallel()
	all := nodes(t, 2)
	n, other := all[0], all[1]
	for _, id := range []string{"read", "moves", "there"} {
		n.make(t, id, "a")
	}
	reads := n.Reads()
	_, err := Handle(t.Context(), other.Handler, as(t), things, "moves", nameThing{Name: "b"})
	require.NoError(t, err)
	begins := func(id string, reads Reads) StreamCommand[thing] {
		return StreamCommand[thing]{Loaded: Loaded[thing]{Revision: -1}, ID: id, Command: makeThing{Name: "b"}, Reads: reads}
	}
	done, err := HandleEach(t.Context(), n.Handler, as(t), things, []StreamCommand[thing]{
		begins("1", reads.And("thing-read", 0)), begins("2", reads.And("thing-read", 0).And("thing-moves", 0)),
		begins("3", reads.And("thing-read", 0).And("thing-moves", 1)), begins("there", reads.And("thing-read", 0)),
	})
	require.NoError(t, err)
	require.Equal(t, []bool{true, false, true, false}, []bool{done[0].Changed, done[1].Changed, done[2].Changed, done[3].Changed})
}

// walk is an aggregate that remembers the positions of its steps.
type walk []event.Position

type stepped struct{}

func (stepped) Evolve(w walk) walk                      { return w }
func (stepped) EvolveAt(w walk, at event.Position) walk { return append(slices.Clip(w), at) }

var walks = event.NewKind("walk", event.Of[stepped]("Stepped", 1))

// steps is a command that decides several steps.
type steps int

func (n steps) Decide(walk) (events []event.Event[walk], err error) {
	for range n {
		events = append(events, stepped{})
	}
	return events, nil
}

func places(events []event.Stored) (all walk) {
	for _, e := range events {
		all = append(all, e.Position)
	}
	return all
}

func TestEventsOfOneAppendHaveTheLogsPositions(t *testing.T) {
	t.Parallel()
	n := nodes(t, 1)[0]
	out, err := Handle(t.Context(), n.Handler, as(t), walks, "1", steps(3))
	require.NoError(t, err)
	want := places(n.stream(t, "walk-1"))
	require.Equal(t, want, out.State)
	require.Equal(t, want[2], out.Position)
	cached, err := Load(t.Context(), n.Cached(), walks, "1")
	require.NoError(t, err)
	require.Equal(t, want, cached.State, "the cache has the same positions")
}

func TestRestsAreAsLongAsOthersWaited(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ waited, took, rest time.Duration }{
		"no wait":          {0, time.Second, 0},
		"one waited":       {time.Millisecond, 5 * time.Millisecond, 3 * time.Millisecond},
		"many waited":      {time.Second, 5 * time.Millisecond, 75 * time.Millisecond},
		"a slow step ends": {time.Minute, time.Minute, time.Second},
	} {
		require.Equal(t, c.rest, rest(c.waited, c.took), name)
	}
}

func TestWorkYieldsToThoseWhoWait(t *testing.T) {
	t.Parallel()
	const step = 10 * time.Millisecond
	h := &Handler{}
	work := func() error {
		time.Sleep(step)
		return nil
	}
	began := time.Now()
	end := h.waiting.begin()
	y := h.Yield()
	require.NoError(t, y.Do(work))
	require.NoError(t, y.Do(work))
	y.Rest(t.Context())
	require.GreaterOrEqual(t, time.Since(began), 2*(1+yields)*step, "one waited as long as the work took")
	end()
	waited := h.waiting.total()
	require.GreaterOrEqual(t, waited, 2*(1+yields)*step)
	require.LessOrEqual(t, waited, time.Since(began))
	time.Sleep(step)
	require.Equal(t, waited, h.waiting.total(), "no command waits")

	failed := errors.New("cannot")
	require.ErrorIs(t, h.Yield().Do(func() error { return failed }), failed)
}
