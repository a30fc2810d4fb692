package commands

import (
	"context"
	"testing"

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
