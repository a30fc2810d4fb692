package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReactorsAreListedAndReplayedOnlyByName(t *testing.T) {
	t.Parallel()
	o := start(t)
	out, _, status := attached(t, o, "reactors", "list")
	require.Equal(t, 0, status)
	require.Contains(t, out, "REACTOR")
	_, wrong, status := attached(t, o, "reactors", "replay", "nonsense", "--after", "0")
	require.Equal(t, 1, status)
	require.Contains(t, wrong, `bahi: there is no reactor "nonsense"`)
	_, wrong, status = attached(t, o, "reactors", "replay", "nonsense")
	require.NotEqual(t, 0, status)
	require.Contains(t, wrong, "--after")
	_, wrong, status = attached(t, o, "reactors", "retry", "nonsense")
	require.Equal(t, 1, status)
	require.Contains(t, wrong, `bahi: there is no reactor "nonsense"`)
}
