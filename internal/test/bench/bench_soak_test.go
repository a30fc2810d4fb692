//go:build soak

package bench_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/bench"
	"bahi/internal/test/worktest"
)

// TestBenchMeasuresEveryFigure runs the real benchmark, but so briefly that its numbers mean nothing.
func TestBenchMeasuresEveryFigure(t *testing.T) {
	t.Parallel()
	programs, figures := t.TempDir(), filepath.Join(t.TempDir(), "bench.json")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", programs+"/", "bahi/cmd/bahi", "bahi/cmd/bahi-bench")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	temporary, err := os.MkdirTemp("", "bahi-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(temporary)) })
	require.NoError(t, os.Chmod(temporary, 0o711)) // as root, another user runs Postgres in it

	out, err = exec.CommandContext(t.Context(), filepath.Join(programs, "bahi-bench"), "--bahi="+filepath.Join(programs, "bahi"),
		"--quick", "--rows=2000", "--round=50ms", "--rounds=1", "--sustain=200ms", "--dir="+temporary, "--json="+figures).CombinedOutput()
	require.NoError(t, err, "%s", out)

	text := worktest.File(t, figures)
	var report bench.Report
	require.NoError(t, json.Unmarshal(text, &report))
	names := map[string]bench.Figure{}
	for _, f := range report.Figures {
		require.Positive(t, f.Measured, f.Name)
		require.Equal(t, f.Goal != nil, f.Reached != nil, f.Name)
		require.Contains(t, string(out), f.Title)
		names[f.Name] = f
	}
	for _, name := range []string{
		"store_appends_1", "store_appends_busy", "single_p50", "post", "bulk",
		"post_key", "single_key_p50", "post_beside_lock", "post_beside_bulk_p99",
		"handwritten_1", "handwritten_1_processor", "handwritten_256", "handwritten_64_processor_of_anchor", "balance", "page_15", "mix",
		"bytes_disk", "bytes_wal", "bytes_of_anchor_disk", "lag_512", "idle_memory", "nodes", "journal_post_64",
		"rebuild", "rebuild_live", "rebuild_memory", "rebuild_five", "register", "enquiries", "import", "contacts", "fairness_p99",
		"inbound", "send",
	} {
		require.Contains(t, names, name)
	}
	require.Len(t, report.Figures, len(names))
	require.Equal(t, "on", report.Machine.Settings["fsync"])
	require.Equal(t, "on", report.Machine.Settings["synchronous_commit"])
	require.Positive(t, report.Machine.Cores)
	left, err := os.ReadDir(temporary)
	require.NoError(t, err)
	require.Empty(t, left, "the cluster is removed")
}
