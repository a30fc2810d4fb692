package app_test

import (
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"bahi/http/api"
	"bahi/internal/test/apptest"
	"bahi/reactors/feedreact"
)

// measured returns the metrics of projections, by projection and name.
func measured(t *testing.T, metrics *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := metrics.Gather()
	require.NoError(t, err)
	require.NotEmpty(t, families)
	by := map[string]float64{}
	for _, f := range families {
		name, of := strings.CutPrefix(f.GetName(), "bahi_projection_")
		if !of {
			continue
		}
		for _, m := range f.GetMetric() {
			by[m.GetLabel()[0].GetValue()+" "+name] = m.GetGauge().GetValue()
		}
	}
	return by
}

func TestEveryMetricIsInTheTableOfTheDocs(t *testing.T) {
	t.Parallel()
	sys, err := apptest.Settings(t, apptest.Database(t)).Open(t.Context(), true)
	require.NoError(t, err)
	defer sys.Close()
	metrics := prometheus.NewRegistry()
	sys.Register(metrics)
	feedreact.New(feedreact.Config{Store: sys.Store, Pool: sys.Pool, Log: sys.Log}).Register(metrics)
	_, err = sys.Api(apptest.OperatorKey, api.Limiting{}, metrics, nil)
	require.NoError(t, err)

	found := make(chan *prometheus.Desc)
	go func() {
		defer close(found)
		metrics.Describe(found)
	}()
	var registered []string
	for d := range found {
		name := regexp.MustCompile(`fqName: "(\w+)"`).FindStringSubmatch(d.String())[1]
		if strings.HasPrefix(name, "bahi_") {
			registered = append(registered, name)
		}
	}
	text, err := os.ReadFile("../../docs/monitoring.md")
	require.NoError(t, err)
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(bahi_\\w+)` \\|").FindAllStringSubmatch(string(text), -1) {
		documented = append(documented, row[1])
	}
	require.ElementsMatch(t, registered, documented)
}

// No process works on the projections here, so the registry stays as the test writes it.
func TestMetricsReportProjectionsUntilTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	s := apptest.Settings(t, apptest.Database(t))
	sys, err := s.Open(t.Context(), true)
	require.NoError(t, err)
	defer sys.Close()
	var logs strings.Builder
	sys.Log = slog.New(slog.NewTextHandler(&logs, nil))
	metrics := prometheus.NewRegistry()
	sys.Register(metrics)
	conn, err := pgx.Connect(t.Context(), s.DatabaseURL)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	sql := func(text string) {
		_, err := conn.Exec(t.Context(), text)
		require.NoError(t, err)
	}
	sql(`insert into log.event (position, revision, recorded_at, id, open_ended, stream, type, data, meta)
		select n, n, now() - interval '1 minute', gen_random_uuid(), false, 'follower-users', 'EventSkipped', json_build_object('version',
			version), '{}'
		from generate_series((select log.head()) + 1, (select log.head()) + 3) n, projection.generation where name = 'users' and live`)
	sql(`insert into projection.generation (name, generation, version, ddl_sha256, store_id, phase, total, position, rate)
		select name, 90, version, '', store_id, 'filling', 50, 20, 4 from projection.generation where name = 'users' and live`)
	sql(`update projection.generation set error = 'bad' where name = 'books' and live`)
	sql(`update projection.generation set paused = true where name = 'workspaces' and live`)

	got := measured(t, metrics)
	head, err := sys.Store.Head(t.Context())
	require.NoError(t, err)
	for name, want := range map[string]float64{
		"users skipped": 3, "users build_done": 20, "users build_total": 50, "users build_rate": 4, "users parked": 0, "users paused": 0,
		"users position": float64(head) - 3, "users lag_events": 3, "books skipped": 0, "books parked": 1, "books paused": 0,
		"workspaces paused": 1, "workspaces parked": 0,
	} {
		require.Contains(t, got, name)
		require.InDelta(t, want, got[name], 0, name)
	}
	require.InDelta(t, 60, got["users lag_seconds"], 30)
	require.NotContains(t, got, "books build_done", "no rebuild is running")

	sys.Pool.Close()
	require.Empty(t, measured(t, metrics), "the other metrics remain")
	require.Contains(t, logs.String(), "collecting projection metrics failed")
}
