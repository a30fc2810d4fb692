package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"bahi/domain/ledger/bank"
	"bahi/internal/app"
	"bahi/internal/bench"
	"bahi/internal/cli/serve"
)

// statementSettings enable pg_stat_statements.
var statementSettings = map[string]string{
	"shared_preload_libraries": "pg_stat_statements", "pg_stat_statements.track": "all", "pg_stat_statements.track_planning": "on",
}

// profiled is the duration of each profiled load.
const profiled = 3 * time.Second

// profiles writes CPU profiles. The server runs inside this process, so a profile includes the client: look below
// net/http.(*conn).serve and the appender.
func (b *benchmark) profiles(ctx context.Context) error {
	if err := os.MkdirAll(b.Profile, 0o755); err != nil { //nolint:gosec // meant for everybody
		return err
	}
	for _, part := range []struct {
		name string
		of   []string // figures
		run  func(context.Context) error
	}{
		{"store", []string{"store"}, b.profileAppends}, {"post", []string{"post", "bulk"}, b.profileRequests},
		{"rebuild", []string{"rebuild", "page", "balance"}, b.profileBooks}, {"talk", []string{"send", "inbound"}, b.profileTalk},
		{"enquiries", []string{"enquiries"}, b.profileMarket}, {"demo", []string{"evening"}, b.profileDemo},
	} {
		if !slices.ContainsFunc(part.of, b.wanted) {
			continue
		}
		if err := part.run(ctx); err != nil {
			return fmt.Errorf("profile %s: %w", part.name, err)
		}
	}
	return nil
}

func (b *benchmark) profile(ctx context.Context, name string, run func() (bench.Sample, error)) error {
	b.sayf("profiling %s", name)
	conn, err := pgx.Connect(ctx, b.cluster.URL())
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // the connection is discarded
	if _, err := conn.Exec(ctx, `create extension if not exists pg_stat_statements; select pg_stat_statements_reset()`); err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(b.Profile, name+".pprof")) //nolint:gosec // the operator chooses the folder
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // closed below on success
	if err := pprof.StartCPUProfile(file); err != nil {
		return err
	}
	s, err := run()
	pprof.StopCPUProfile()
	if err != nil {
		return err
	}
	b.sayf("%s: %.0f a second, p99 %s, lag p99 %s", name, s.Rate, s.P99, s.Lag)
	if err := file.Close(); err != nil {
		return err
	}
	return b.statements(ctx, conn, name)
}

// statements writes the statements that took most of Postgres's time.
func (b *benchmark) statements(ctx context.Context, conn *pgx.Conn, name string) error {
	rows, _ := conn.Query(ctx, `
		select format('%s ms in %s calls, %s us each, %s ms planning, %s rows: %s', round(total_exec_time), calls,
			round(1000 * total_exec_time / greatest(calls, 1)), round(total_plan_time), rows, left(regexp_replace(query, '\s+', ' ', 'g'), 300))
		from pg_stat_statements order by total_exec_time + total_plan_time desc limit 25`)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.Profile, name+".statements"), []byte(strings.Join(lines, "\n")+"\n"), 0o644) //nolint:gosec // meant for everybody
}

func (b *benchmark) profileAppends(ctx context.Context) error {
	sys, err := b.onDatabase(ctx, "store")
	if err != nil {
		return err
	}
	defer sys.Close()
	a := &appender{store: sys.Store}
	if err := b.profile(ctx, "appends-1", func() (bench.Sample, error) { return a.run(ctx, 1, spreadOver, profiled) }); err != nil {
		return err
	}
	return b.profile(ctx, "appends-256", func() (bench.Sample, error) { return a.run(ctx, 256, spreadOver, profiled) })
}

// inside returns a function that runs serve in this process; more are further settings.
func (b *benchmark) inside(database string, more ...string) func(context.Context, *server) (func() error, error) {
	return func(ctx context.Context, s *server) (func() error, error) {
		ctx, cancel := context.WithCancel(ctx)
		ended := make(chan error, 1)
		c := serve.Command{Settings: b.settings(database), Addr: s.address, OperatorSettings: app.OperatorSettings{AdminKey: operatorKey}}
		c.OutsideSettings.WebhookToken = chatToken
		c.Shell.Env = more
		go func() { ended <- c.Run(ctx) }()
		return sync.OnceValue(func() error {
			cancel()
			return <-ended
		}), nil
	}
}

func (b *benchmark) profileRequests(ctx context.Context) error {
	url, err := b.database(ctx, "http")
	if err != nil {
		return err
	}
	s, err := b.serve(ctx, url, b.inside(url))
	if err != nil {
		return err
	}
	defer s.stop() //nolint:errcheck // the measurement is complete
	accounts, err := s.openAccounts(ctx)
	if err != nil {
		return err
	}
	w, err := s.watch(ctx)
	if err != nil {
		return err
	}
	defer w.close(ctx)
	load := bench.Load{Address: s.address, Clients: 1, For: profiled, Requests: s.postings(accounts)}
	if err := b.profile(ctx, "post-1", func() (bench.Sample, error) { return measureLag(ctx, w, load) }); err != nil {
		return err
	}
	load.Clients = postClients
	if err := b.profile(ctx, "post", func() (bench.Sample, error) { return measureLag(ctx, w, load) }); err != nil {
		return err
	}
	return b.profile(ctx, "bulk", b.bulk(ctx, s, w, accounts))
}

func (b *benchmark) profileDemo(ctx context.Context) error {
	url, err := b.database(ctx, "demo")
	if err != nil {
		return err
	}
	return b.profile(ctx, "demo", func() (bench.Sample, error) {
		_, err := b.fillDemo(ctx, url)
		return bench.Sample{}, err
	})
}

func (b *benchmark) profileBooks(ctx context.Context) error {
	url, err := b.database(ctx, "books")
	if err != nil {
		return err
	}
	if err := b.profileFold(ctx, url); err != nil {
		return err
	}
	s, err := b.serve(ctx, url, b.inside(url))
	if err != nil {
		return err
	}
	defer s.stop() //nolint:errcheck // the measurement is complete
	for name, path := range map[string]string{
		"balance": "/bank/1", "balance-known-at": fmt.Sprintf("/bank/1?known_at=%d", b.Rows/2), "page": "/bank-ledger/1?page_size=50&page=2",
	} {
		load := bench.Load{Address: s.address, Clients: readClients, For: profiled, Requests: [][]byte{bench.Request("GET", path, s.key, "")}}
		if err := b.profile(ctx, name, func() (bench.Sample, error) { return load.Run(ctx) }); err != nil {
			return err
		}
	}
	return nil
}

func (b *benchmark) profileFold(ctx context.Context, url string) error {
	sys, err := b.system(ctx, url)
	if err != nil {
		return err
	}
	defer sys.Close()
	m, err := newLogMaker(ctx, sys, b.Rows)
	if err != nil {
		return err
	}
	if err := m.mixed(ctx, 1, b.Rows, func(int64, int64) {}, bank.Ledger); err != nil {
		return err
	}
	if err := m.end(); err != nil {
		return err
	}
	if err := b.profile(ctx, "read", func() (bench.Sample, error) { return b.read(ctx, sys.Store) }); err != nil {
		return err
	}
	return b.profile(ctx, "rebuild", func() (bench.Sample, error) { return b.fold(ctx, sys) })
}

// profileMarket profiles enquiries, imports and feeds.
func (b *benchmark) profileMarket(ctx context.Context) error {
	return b.inMarket(ctx, b.inside, func(m *marketplace) error {
		form, body, err := m.spreadsheet()
		if err != nil {
			return err
		}
		for _, part := range []struct {
			name string
			run  func() (bench.Sample, error)
		}{
			{"enquiries", func() (bench.Sample, error) {
				return bench.Load{Address: m.server.address, Clients: postClients, For: profiled, Requests: m.asked(0)}.Run(ctx)
			}},
			{"import", func() (bench.Sample, error) {
				return timed(importRows, func() error { return m.imported(ctx, form, body) })
			}},
			{"feed", func() (bench.Sample, error) { return timed(m.large(), func() error { return m.fed(ctx) }) }},
		} {
			if err := b.profile(ctx, part.name, part.run); err != nil {
				return err
			}
		}
		return nil
	})
}
