package history_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/prove/history"
	"bahi/internal/test/apptest"
)

// make prove records longer histories of more nodes, with more faults.
func TestAHistoryUnderKillsHasNoAnomaly(t *testing.T) {
	t.Parallel()
	program, err := apptest.Binary()
	require.NoError(t, err)
	postgres, err := history.StartPostgres(t.Context(), "", nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, postgres.Stop()) }()
	h, err := history.Record(context.WithoutCancel(t.Context()), postgres, history.Settings{
		Seed: 1, Length: 8 * time.Second, Nodes: 1, Log: "postgres", Clients: 4, Faults: []string{"kill", "pgkill", "cut"},
		Program: program, Folder: t.TempDir(), Report: func(fault string) { t.Log(fault) },
	})
	require.NoError(t, err)
	checked := h.Check(t.TempDir())
	require.Empty(t, checked.Anomalies)
	require.Zero(t, checked.Undecided)
	require.NotZero(t, checked.Calls)
	t.Logf("%d calls, %d of unknown outcome, %d parts", checked.Calls, checked.Unknown, checked.Parts)
}

func TestMain(m *testing.M) { apptest.Main(m) }
