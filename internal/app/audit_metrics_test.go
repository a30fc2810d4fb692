package app_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
	"bahi/internal/test/audittest"
)

// auditMeasured returns the metrics of checkpoints.
func auditMeasured(t *testing.T, metrics *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := metrics.Gather()
	require.NoError(t, err)
	by := map[string]float64{}
	for _, f := range families {
		name, of := strings.CutPrefix(f.GetName(), "bahi_audit_")
		for _, m := range f.GetMetric() {
			key := name
			for _, l := range m.GetLabel() {
				key += " " + l.GetValue()
			}
			if of {
				by[key] = m.GetGauge().GetValue() + m.GetCounter().GetValue() // it is one of the two
			}
		}
	}
	return by
}

func TestMetricsReportUnsignedEventsAndMissingCopies(t *testing.T) {
	t.Parallel()
	with := apptest.Settings(t, apptest.Database(t))
	safe := t.TempDir()
	with.AuditCopies = []string{safe, "log"}
	with.AuditWitness, with.AuditWitnessKey = "http://127.0.0.1:1", audittest.New(t, 0).Key.Public()
	sys, err := with.Open(t.Context(), true)
	require.NoError(t, err)
	defer sys.Close()
	sys.Log = slog.New(slog.DiscardHandler)
	metrics := prometheus.NewRegistry()
	sys.Register(metrics)
	write := func() {
		t.Helper()
		_, err := sys.Pool.Exec(t.Context(), `insert into log.event (position, revision, recorded_at, id, open_ended, stream, type, data, meta)
			select log.head() + 1, 0, now() - interval '1 minute', gen_random_uuid(), false, 'note-' || log.head(), 'Noted', '{}', '{}'`)
		require.NoError(t, err)
	}

	write()
	got := auditMeasured(t, metrics)
	require.InDelta(t, 60, got["unsigned_seconds"], 30)
	require.Len(t, got, 7)

	// A file has the name of the folder for copies.
	folder := filepath.Join(safe, "bahi-"+sys.Store.ID().String())
	require.NoError(t, os.WriteFile(folder, nil, 0o600))
	require.NoError(t, sys.SignAll(t.Context()))
	require.Equal(t, map[string]float64{
		"unsigned_seconds": 0, "outlet_failures_total witness": 1, "outlet_failing witness": 1, "outlet_failures_total copies-1": 1,
		"outlet_failing copies-1":        1,
		"outlet_failures_total copies-2": 0, "outlet_failing copies-2": 0,
	}, auditMeasured(t, metrics))

	require.NoError(t, os.Remove(folder))
	write()
	require.NoError(t, sys.SignAll(t.Context()))
	got = auditMeasured(t, metrics)
	require.Equal(t, []float64{0, 1, 0, 2, 1}, []float64{
		got["unsigned_seconds"], got["outlet_failures_total copies-1"], got["outlet_failing copies-1"], got["outlet_failures_total witness"],
		got["outlet_failing witness"],
	})

	sys.Pool.Close()
	got = auditMeasured(t, metrics)
	require.NotContains(t, got, "unsigned_seconds", "the database is away")
	require.Contains(t, got, "outlet_failing witness")
}
