package projections

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/ledger/book"
)

// named returns a version of a projection that records names, each changed by transform, and their lengths.
func named(version int, name func(string) string) *Projection {
	return Define("seen", version, `
create table seen (position bigint not null, name text not null, length int not null);
create table note (position bigint not null, version int not null);
`, On(func(b *Batch, e event.Recorded[book.AccountOpened]) {
		b.Exec(`insert into seen (position, name, length) values ($1, $2, $3)`, int64(e.Position), name(e.Data.Name), version*len(e.Data.Name))
		b.Exec(`insert into note (position, version) values ($1, $2)`, int64(e.Position), version)
	})).Comparable(map[string]string{"seen": "position, name"})
}

func same(name string) string { return name }

func TestCommonColumnsOfANewVersionAreCompared(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	old := named(1, same)
	r.add(t, "Ant", "Bee")
	before := r.serve(t, old)
	before.reached("seen", 2)

	wrong := named(2, func(string) string { return "Wasp" })
	require.ErrorIs(t, r.build(wrong).Run(t.Context()), ErrDiffers)
	differences, err := r.build(wrong).Differences(t.Context())
	require.NoError(t, err)
	require.Len(t, differences, 1)
	require.Equal(t, "seen", differences[0].Table)
	require.EqualValues(t, 4, differences[0].Count)
	require.JSONEq(t, `{"position":1,"name":"Ant"}`, string(differences[0].Rows[0].Row))
	require.JSONEq(t, `{"position":1,"name":"Wasp"}`, string(differences[0].Rows[1].Row))
	require.NoError(t, r.build(wrong).Cancel(t.Context()))

	next := named(2, same)
	require.NoError(t, r.build(next).Run(t.Context()), "undeclared columns may differ")
	after := r.serve(t, next)
	r.add(t, "Cat")
	require.Equal(t, 1, before.reached("seen", 3).Generation)
	require.Equal(t, 2, after.reached("seen", 3).Generation)
	before.stop()
	r.add(t, "Dog")
	after.reached("seen", 4)
	after.stop()
	require.Equal(t, 1, r.serve(t, old).reached("seen", 4).Generation, "the old program keeps its tables")
	r.exact(t, old)
	r.exact(t, next)
}

// The old program may be stopped before the new tables' position: they are compared at that position.
func TestNewVersionIsComparedWithAStoppedOne(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add(t, "Ant", "Bee")
	require.NoError(t, r.build(named(1, same)).Run(t.Context()))
	r.add(t, "Cat")
	late := named(2, func(name string) string {
		if name == "Bee" {
			return "Wasp"
		}
		return name
	})
	require.ErrorIs(t, r.build(late).Run(t.Context()), ErrDiffers)
	require.NoError(t, r.build(late).Cancel(t.Context()))
	unlike := named(2, same).Comparable(nil)
	require.NoError(t, r.build(unlike).Run(t.Context()), "no columns are declared")
	require.EqualValues(t, 3, r.live(t, unlike).Position)
}

func TestOperatorDropsTablesOfAnotherVersion(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	old, next := named(1, same), named(2, same)
	r.add(t, "Ant")
	before := r.serve(t, old)
	before.reached("seen", 1)
	require.NoError(t, r.build(next).Run(t.Context()))
	require.ErrorIs(t, r.build(next).Drop(t.Context(), 2), ErrInUse)
	require.ErrorContains(t, r.build(next).Drop(t.Context(), 7), "seen has no generation 7")
	before.stop()
	require.NoError(t, r.build(next).Drop(t.Context(), 1))
	require.Equal(t, []string{"seen_g2"}, r.schemas(t))
	r.add(t, "Bee")
	require.Equal(t, 3, r.serve(t, old).reached("seen", 2).Generation, "the old program rebuilds its tables")
	r.exact(t, old)
}
