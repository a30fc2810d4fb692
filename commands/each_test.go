package commands

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

// After a batch of commands, their states equal the log's, without a read.
func TestCommandsThatAreHandledTogether(t *testing.T) {
	t.Parallel()
	all := nodes(t, 2)
	n, other := all[0], all[1]
	done, err := HandleEach(t.Context(), n.Handler, as(t), things,
		[]StreamCommand[thing]{Begins("1", makeThing{Name: "a"}), Begins("2", makeThing{Name: "b"})})
	require.NoError(t, err)
	other.catchUp(t)
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
	require.EqualValues(t, 1, found[0].GetMetric()[0].GetCounter().GetValue())

	entry, cached := n.cache.get("thing-1")
	require.True(t, cached)
	fresh, err := Load(t.Context(), other.Fresh(), things, "1")
	require.NoError(t, err)
	fresh.asOf = 0
	require.Equal(t, fresh, done[0].Loaded)
	require.Equal(t, fresh, entry.loaded)
	n.catchUp(t)
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
