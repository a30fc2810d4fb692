package projections

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBuildReportsLostParts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add(t, "a")
	p := seen("seen", nil)
	build := r.build(p)
	require.NoError(t, build.Request(t.Context()))
	r.exec(t, `update projection.generation set phase = 'filling'`)
	r.exec(t, `create schema seen_g1; create table seen_g1.seen (position bigint not null, name text not null)`)
	require.ErrorContains(t, build.Join(t.Context()), "has lost its parts")
}
