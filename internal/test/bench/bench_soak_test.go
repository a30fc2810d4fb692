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
)

// TestBenchMeasuresEveryFigure runs the real benchmark, but so small that its numbers mean nothing.
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

	text, err := os.ReadFile(figures)
	require.NoError(t, err)
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
		"store_appends_1", "store_appends_64", "store_appends_256", "store_appends_busy",
		"post", "post_p99", "post_lag_p99", "post_one", "post_one_p99", "post_one_lag_p99", "bulk", "bulk_p99",
		"post_key", "single_key_p50", "post_beside_lock", "post_beside_bulk_p99",
		"handwritten_1", "handwritten_1_processor", "handwritten_16", "handwritten_64", "handwritten_64_processor_of_anchor",
		"rebuild", "page", "page_one_day", "edit", "edit_newest_page", "balance", "balance_known_at",
		"verify", "verify_sha256", "proof_p99", "post_with_tree", "nodes", "nodes_p99",
		"shop_64", "shop_64_lag_p99", "shop_64_lag_trend", "shop_512", "shop_512_lag_p99", "shop_512_lag_trend", "shop_audited",
		"mix", "mix_read_p99", "single_p50", "page_15",
		"party_post", "party_post_p99", "party_post_lag_p99", "party_page", "party_edit", "party_edit_newest_page", "karigars", "summary", "summary_flat",
		"workshop_rebuild", "sheet_pdf", "sheet_pdf_memory", "sheet_csv", "sheet_csv_memory", "sheet_xlsx", "sheet_xlsx_memory",
		"webhook", "webhook_p99", "rules", "drafts", "gateway_served", "gateway_served_cpu", "gateway_official", "gateway_adapter", "gateway_appends_1", "gateway_appends_64",
		"ingest", "ingest_memory", "answer_p99", "answer_tried_p99", "overhead", "talks_post", "talks", "recall", "recall_others",
		"retrieve_1000", "retrieve_1000_p99", "retrieve_50000", "retrieve_50000_p99", "retrieve_500000", "retrieve_500000_p99",
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
