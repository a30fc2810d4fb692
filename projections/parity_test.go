package projections

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDifferingBuildWaitsForAnOperator(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := seen("seen", nil)
	run := r.run(t, p)
	r.add(t, "Ant", "Bee", "Cat")
	run.reached("seen", 3)
	require.ErrorIs(t, Accept(t.Context(), r.pool, p), ErrNotDiffers)
	_, err := r.build(p).Differences(t.Context())
	require.ErrorIs(t, err, ErrNoBuild)
	r.exec(t, `update seen_g1.seen set name = 'Wasp' where position = 2`)
	r.exec(t, `insert into seen_g1.seen values (3, 'Cat')`)

	require.ErrorIs(t, r.build(p).Run(t.Context()), ErrDiffers)
	g, found := r.being(t, p)
	require.True(t, found)
	require.Equal(t, differs, g.phase())
	differences, err := r.build(p).Differences(t.Context())
	require.NoError(t, err)
	require.Equal(t, []Difference{{Table: "seen", Count: 3, Rows: []DifferentRow{
		{Where: inLog, Row: json.RawMessage(`{"position":2,"name":"Bee"}`)},
		{Where: inLive, Row: json.RawMessage(`{"position":2,"name":"Wasp"}`)},
		{Where: inLive, Row: json.RawMessage(`{"position":3,"name":"Cat"}`)},
	}}}, differences)
	require.Equal(t, []string{"Ant", "Wasp", "Cat", "Cat"}, r.names(t, "seen"), "the live tables are unchanged")
	require.ErrorIs(t, r.build(p).Run(t.Context()), ErrBuildRuns)

	r.tend(t, p)
	r.add(t, "Dog")
	soon(t, "the build follows the log while it waits", func() bool { return r.position(t, p) == 4 })
	require.ErrorIs(t, r.build(p).until(t.Context(), r.hold(t, p).conn, g), ErrDiffers, "a watching process receives the result")
	run.reached("seen", 4)
	require.Equal(t, differs, r.inPhase(t, p, differs).phase())
	require.NoError(t, Accept(t.Context(), r.pool, p))
	r.goesLive(t, p, 2)
	r.add(t, "Emu")
	run.until("seen", func(s Status) bool { return s.Generation == 2 && s.Position == 5 })
	require.Equal(t, []string{"Ant", "Bee", "Cat", "Dog", "Emu"}, r.names(t, "seen"))
	require.Empty(t, r.live(t, p).Differences)
}

// No process works on the live tables, so they do not advance.
func TestBuildIsComparedWithStoppedTables(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := seen("seen", nil)
	r.add(t, "Ant", "Bee")
	require.NoError(t, r.build(p).Run(t.Context()))
	r.add(t, "Cat")
	r.exec(t, `update seen_g1.seen set name = 'Wasp' where position = 2`)
	require.ErrorIs(t, r.build(p).Run(t.Context()), ErrDiffers)
	r.exec(t, `update seen_g1.seen set name = 'Bee' where position = 2`)
	require.NoError(t, r.build(p).Cancel(t.Context()))
	require.NoError(t, r.build(p).Run(t.Context()))
	require.Equal(t, []string{"Ant", "Bee", "Cat"}, r.names(t, "seen"))
}

// A process that ends does not accept differences.
func TestDifferencesOutliveTheProcess(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := seen("seen", nil)
	r.add(t, "Ant")
	one := r.serve(t, p)
	one.reached("seen", 1)
	r.exec(t, `update seen_g1.seen set name = 'Wasp'`)
	require.NoError(t, r.build(p).Request(t.Context()))
	one.Ask()
	r.inPhase(t, p, differs)
	one.stop()
	two := r.serve(t, p)
	r.add(t, "Bee")
	soon(t, "the build follows the log", func() bool { return r.position(t, p) == 2 })
	require.Never(t, func() bool { return r.live(t, p).Generation != 1 }, 2*tellInterval, tellInterval/2)
	two.stop()
	require.NoError(t, Accept(t.Context(), r.pool, p))
	r.serve(t, p)
	r.goesLive(t, p, 2)
	require.Equal(t, time.Duration(0), r.live(t, p).KeepFor)
	require.Equal(t, []string{"Ant", "Bee"}, r.names(t, "seen"))
}
