package app_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"bahi/http/api"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/internal/test/audittest"
	"bahi/internal/test/feedtest"
	"bahi/internal/test/pgtest"
	"bahi/internal/test/worktest"
	"bahi/reactors/feedreact"
	"bahi/readmodels/opsview"
)

// measured returns the metrics whose names begin with a prefix, by the rest of the name and the labels.
func measured(t *testing.T, metrics *prometheus.Registry, prefix string) map[string]float64 {
	t.Helper()
	families, err := metrics.Gather()
	require.NoError(t, err)
	require.NotEmpty(t, families)
	by := map[string]float64{}
	for _, f := range families {
		name, of := strings.CutPrefix(f.GetName(), prefix)
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
	text := worktest.File(t, "../../docs/monitoring.md")
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
	conn := pgtest.Connect(t, s.DatabaseURL)
	sql := func(text string) {
		pgtest.Exec(t, conn, text)
	}
	sql(`insert into log.event (position, revision, recorded_at, id, open_ended, stream, type, data, meta)
		select n, n, now() - interval '1 minute', gen_random_uuid(), false, 'follower-users', 'EventSkipped', json_build_object('version',
			version), '{}'
		from generate_series((select log.head()) + 1, (select log.head()) + 3) n, projection.generation where name = 'users' and status = 'live'`)
	sql(`insert into projection.generation (name, generation, version, ddl_sha256, store_id, status, total, position, rate)
		select name, 90, version, '', store_id, 'filling', 50, 20, 4 from projection.generation where name = 'users' and status = 'live'`)
	sql(`update projection.generation set error = 'bad' where name = 'books' and status = 'live'`)
	sql(`update projection.generation set paused = true where name = 'workspaces' and status = 'live'`)

	const prefix = "bahi_projection_"
	got := measured(t, metrics, prefix)
	head, err := sys.Store.Head(t.Context())
	require.NoError(t, err)
	for name, want := range map[string]float64{
		"skipped users": 3, "build_done users": 20, "build_total users": 50, "build_rate users": 4, "parked users": 0, "paused users": 0,
		"position users": float64(head) - 3, "lag_events users": 3, "skipped books": 0, "parked books": 1, "paused books": 0,
		"paused workspaces": 1, "parked workspaces": 0,
	} {
		require.Contains(t, got, name)
		require.InDelta(t, want, got[name], 0, name)
	}
	require.InDelta(t, 60, got["lag_seconds users"], 30)
	require.NotContains(t, got, "build_done books", "no rebuild is running")

	sys.Pool.Close()
	require.Empty(t, measured(t, metrics, prefix), "the other metrics remain")
	require.Contains(t, logs.String(), "collecting projection metrics failed")
}

func TestMetricsReportUnsignedEventsAndMissingCopies(t *testing.T) {
	t.Parallel()
	with := apptest.Settings(t, apptest.Database(t))
	safe := t.TempDir()
	var said bytes.Buffer
	with.AuditCopies, with.Shell.Err, with.LogLevel = []string{safe, "log"}, &said, slog.LevelInfo
	with.AuditWitness, with.AuditWitnessKey = "http://127.0.0.1:1", audittest.New(t, 0).Key.Public()
	sys, err := with.Open(t.Context(), true)
	require.NoError(t, err)
	defer sys.Close()
	sys.Log = slog.New(slog.DiscardHandler)
	metrics := prometheus.NewRegistry()
	sys.Register(metrics)
	write := func() {
		t.Helper()
		pgtest.Exec(t, sys.Pool, `insert into log.event (position, revision, recorded_at, id, open_ended, stream, type, data, meta)
			select log.head() + 1, 0, now() - interval '1 minute', gen_random_uuid(), false, 'note-' || log.head(), 'Noted', '{}', '{}'`)
	}
	const prefix = "bahi_audit_"

	write()
	got := measured(t, metrics, prefix)
	require.InDelta(t, 60, got["unsigned_seconds"], 30)
	require.Len(t, got, 7)

	// A file has the name of the folder for copies.
	folder := filepath.Join(safe, "bahi-"+sys.Store.ID().String())
	require.NoError(t, os.WriteFile(folder, nil, 0o600))
	require.NoError(t, sys.SignAll(t.Context()))
	require.Equal(t, map[string]float64{
		"unsigned_seconds": 0, "publisher_failures_total witness": 1, "publisher_failing witness": 1, "publisher_failures_total copies-1": 1,
		"publisher_failing copies-1": 1, "publisher_failures_total copies-2": 0, "publisher_failing copies-2": 0,
	}, measured(t, metrics, prefix))

	require.NoError(t, os.Remove(folder))
	write()
	require.NoError(t, sys.SignAll(t.Context()))
	require.Equal(t, map[string]float64{
		"unsigned_seconds": 0, "publisher_failures_total witness": 2, "publisher_failing witness": 1, "publisher_failures_total copies-1": 1,
		"publisher_failing copies-1": 0, "publisher_failures_total copies-2": 0, "publisher_failing copies-2": 0,
	}, measured(t, metrics, prefix))

	require.FileExists(t, filepath.Join(folder, "newest"))
	require.Equal(t, 2, strings.Count(said.String(), "msg=checkpoint size="), "the program's log has both")

	sys.Pool.Close()
	got = measured(t, metrics, prefix)
	require.NotContains(t, got, "unsigned_seconds", "the database is away")
	require.Contains(t, got, "publisher_failing witness")
}

// logged is an event of the log.
type logged struct {
	ID, Stream, Type, Data string
	Position               int64
}

func loggedIn(t *testing.T, database string) []logged {
	t.Helper()
	conn := pgtest.Connect(t, database)
	rows, _ := conn.Query(t.Context(), `select id::text, stream, type, data::text, position from log.event order by position`)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[logged])
	require.NoError(t, err)
	return all
}

// forwarded waits until the broker has all events of the log as messages, except the skipped ones. Some events of a bulk come after its
// response.
func forwarded(t *testing.T, broker *feedtest.NATS, database string, skipped int) (log []logged, messages []jetstream.Msg) {
	t.Helper()
	for late := time.Now().Add(time.Minute); ; {
		log = loggedIn(t, database)
		messages = broker.Messages("BAHI", len(log)-skipped)
		if len(messages) == len(log)-skipped {
			return log, messages
		}
		require.True(t, time.Now().Before(late), "%d messages of %d events", len(messages), len(log))
	}
}

func TestParkedFeedIsReportedAndSkipped(t *testing.T) {
	t.Parallel()
	broker := feedtest.Start(t, func(o *natsserver.Options) { o.MaxPayload = 4096 })
	with := apptest.Settings(t, apptest.Database(t))
	with.Outside.FeedURL = broker.Address
	o := apptest.StartAs(t, with)
	c := o.Operator()
	entries := slices.Repeat([]string{`{"description":"A pair of bangles, and the box that they come in","amount":18400}`}, 60)
	c.POST(apptest.Ledger(apptest.Open(c, "SBI")), `{"date":"2026-10-14","in_entries":[`+strings.Join(entries, ",")+`]}`).Status(201)
	require.Eventually(t, func() bool {
		return strings.Contains(c.GET("/readyz").Text, `"feed":{"state":"parked"`)
	}, takenOverTimeout, 10*time.Millisecond)
	require.Contains(t, apptest.Readiness(t, c).Text, "NATS takes messages of 4096 bytes at most (max_payload)")
	// noted a moment later
	require.Eventually(t, func() bool { return strings.Contains(c.GET("/metrics").Text, "bahi_feed_parked 1") }, time.Minute,
		10*time.Millisecond)
	require.Contains(t, o.Done(t, "feed", "status"), "parked")

	parked := apitest.Read[[]opsview.Parked](c.GET("/ops/parked").Status(200))
	require.Len(t, parked, 1)
	require.Equal(t, "feed reactor BankRowAdded", parked[0].Name+" "+parked[0].Kind+" "+parked[0].Type)
	at := fmt.Sprint(parked[0].Position)
	require.Contains(t, o.Done(t, "feed", "skip", "--position", at, "--reason", "the broker is too small"), "skips")
	log, _ := forwarded(t, broker, o.Database, 1)
	require.Contains(t, o.Done(t, "feed", "status"), "live")

	require.NoError(t, broker.JetStream().DeleteStream(t.Context(), "BAHI"))
	require.Contains(t, o.Done(t, "feed", "replay", "--from", at), "continues at position")
	require.Len(t, broker.Messages("BAHI", len(log)-int(parked[0].Position)), len(log)-int(parked[0].Position))
}
