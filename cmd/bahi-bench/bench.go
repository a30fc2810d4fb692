package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"bahi/internal/app"
	"bahi/internal/bench"
	"bahi/internal/cli/screen"
	"bahi/internal/pgcluster"
)

type benchCommand struct {
	Bahi    string        `default:"bin/bahi" placeholder:"FILE" help:"The program to measure."`
	JSON    string        `placeholder:"FILE" help:"Write the figures to this file as JSON."`
	Quick   bool          `help:"Short rounds and few rows: under a minute, but rough."`
	Only    []string      `placeholder:"NAME" enum:"${parts}" help:"Measure only these figures. Of ${about_parts}."`
	Rows    int           `placeholder:"N" help:"Events of the log to rebuild, and rows of the long ledgers. 1000000, with --quick 50000."`
	Round   time.Duration `placeholder:"TIME" help:"Duration of a round. 1s, with --quick 500ms."`
	Rounds  int           `placeholder:"N" help:"Number of rounds, whose median counts. 9, with --quick 3."`
	Sustain time.Duration `placeholder:"TIME" help:"Duration of the sustained posting of rows of one day. 60s, with --quick 5s."`
	Filled  string        `placeholder:"DIR" help:"For evening: the data folder of an installation that bahi demo has filled, and that is stopped. Without it, a new one is filled with --rows events."`
	Dir     string        `placeholder:"DIR" help:"Parent of the temporary folder. By default the system's."`
	Profile string        `placeholder:"DIR" help:"Measure nothing, but write CPU profiles of appends, requests, rebuild and conversations, with the server inside this process, and list the statements that took most of Postgres's time."`

	HandWritten string `hidden:"" placeholder:"ADDRESS" help:"Serve the hand-written ledger at this address, on the database DATABASE_URL."`
}

// benchmark is a running benchmark.
type benchmark struct {
	benchCommand

	dir     string // temporary
	cluster *pgcluster.Cluster
	filled  *pgcluster.Cluster // of --filled; nil: not started
	limits  *bench.Limits
	report  *bench.Report
}

// Run measures, prints a table and writes JSON. A missed goal is not an error. After an error, the table has what was measured before.
func (c benchCommand) Run(ctx context.Context) (err error) {
	if c.HandWritten != "" {
		return serveHandWritten(ctx, c.HandWritten, os.Getenv("DATABASE_URL"))
	}
	began := time.Now()
	b := &benchmark{benchCommand: c.complete()}
	b.report = &bench.Report{Date: began.UTC().Truncate(time.Second), Version: app.Version, Quick: b.Quick, Rows: b.Rows}
	if err := b.open(ctx); err != nil {
		return errors.Join(err, b.close())
	}
	defer func() { err = errors.Join(err, b.close()) }()
	if b.Profile != "" {
		return b.profiles(ctx)
	}
	failed := b.runParts(ctx)
	if failed != nil && len(b.report.Figures) == 0 {
		return failed
	}
	b.report.Seconds = time.Since(began).Seconds()
	fmt.Println()
	if err := b.report.Table(os.Stdout); err != nil {
		return errors.Join(failed, err)
	}
	fmt.Printf("\n%d of %d goals missed; %s; Postgres %s on %s; %s, %d cores; %.0f seconds\n", b.report.Missed(), len(b.report.Figures),
		b.report.Version, b.report.Machine.Postgres, b.report.Machine.FileSystem, b.report.Machine.Processor, b.report.Machine.Cores, b.report.Seconds)
	if b.JSON == "" || failed != nil {
		return failed
	}
	return b.report.Write(b.JSON)
}

// complete sets the defaults that depend on --quick.
func (c benchCommand) complete() benchCommand {
	rows, round, rounds, sustain := 1_000_000, time.Second, 9, time.Minute
	if c.Quick {
		rows, round, rounds, sustain = 50_000, time.Second/2, 3, 5*time.Second
	}
	if c.Rows == 0 {
		c.Rows = rows
	}
	if c.Round == 0 {
		c.Round = round
	}
	if c.Sustain == 0 {
		c.Sustain = sustain
	}
	if c.Rounds == 0 {
		c.Rounds = rounds
	}
	return c
}

// open starts the cluster and prepares it for pgbench.
func (b *benchmark) open(ctx context.Context) (err error) {
	b.sayf("starting a private cluster")
	if b.dir, err = os.MkdirTemp(b.Dir, "bahi-bench-"); err != nil {
		return err
	}
	if err := os.Chmod(b.dir, 0o711); err != nil { //nolint:gosec // as root, another user runs Postgres in it
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	options := pgcluster.Options{Dir: filepath.Join(b.dir, "cluster"), Log: log}
	if b.Profile != "" {
		options.Settings = statementSettings
	}
	if b.cluster, err = pgcluster.Start(ctx, options); err != nil {
		return err
	}
	if b.report.Machine, err = bench.Describe(ctx, b.cluster.URL(), b.dir); err != nil {
		return err
	}
	b.limits = &bench.Limits{Command: b.cluster.Programs().Command, Dir: b.dir, Round: b.Round}
	if b.limits.URL, err = b.database(ctx, "limits"); err != nil {
		return err
	}
	return b.limits.Prepare(ctx)
}

func (b *benchmark) close() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*app.StopWithin)
	defer cancel()
	for _, c := range []*pgcluster.Cluster{b.cluster, b.filled} {
		if c != nil {
			err = errors.Join(err, c.Stop(ctx))
		}
	}
	if b.dir != "" {
		err = errors.Join(err, os.RemoveAll(b.dir))
	}
	return err
}

// sayf prints the next step on standard error; standard output has only the table.
func (b *benchmark) sayf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...)
}

// database creates an empty database.
func (b *benchmark) database(ctx context.Context, name string) (string, error) {
	conn, err := pgx.Connect(ctx, b.cluster.URL())
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx) //nolint:errcheck // the connection is discarded
	if _, err := conn.Exec(ctx, `create database `+pgx.Identifier{name}.Sanitize()); err != nil {
		return "", fmt.Errorf("create the database %s: %w", name, err)
	}
	u, err := url.Parse(b.cluster.URL())
	if err != nil {
		return "", err
	}
	u.Path = "/" + name
	return u.String(), nil
}

// settle writes a checkpoint, so that none falls into a round by chance.
func (b *benchmark) settle(ctx context.Context) error { return checkpoint(ctx, b.cluster) }

func checkpoint(ctx context.Context, cluster *pgcluster.Cluster) error {
	conn, err := pgx.Connect(ctx, cluster.URL())
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // the connection is discarded
	_, err = conn.Exec(ctx, `checkpoint`)
	return err
}

// system assembles Bahi in this process, on a database of the cluster.
func (b *benchmark) system(ctx context.Context, database string) (*app.System, error) {
	s := b.settings(database)
	return s.Open(ctx, false)
}

// onDatabase returns a system on a new database.
func (b *benchmark) onDatabase(ctx context.Context, name string) (*app.System, error) {
	url, err := b.database(ctx, name)
	if err != nil {
		return nil, err
	}
	return b.system(ctx, url)
}

// data returns the data folder of the measured systems.
func (b *benchmark) data() string { return cmp.Or(b.Filled, filepath.Join(b.dir, "data")) }

func (b *benchmark) settings(database string) app.Settings {
	return app.Settings{
		Data: b.data(), DatabaseURL: database, Timezone: "Asia/Kolkata", Connections: defaultConnections, ReadWait: defaultReadWait,
		LogLevel: slog.LevelWarn, LogFormat: "text",
	}
}

// The defaults of serve.
const (
	defaultConnections = 24
	defaultReadWait    = 500 * time.Millisecond
)

// interleave is [bench.Interleave] with a progress bar.
func (b *benchmark) interleave(ctx context.Context, what string, limit func() (bench.Sample, error), others ...func() (bench.Sample, error)) (bench.Series, []bench.Series, error) {
	b.sayf("%s: %d rounds", what, b.Rounds)
	if err := b.settle(ctx); err != nil {
		return nil, nil, err
	}
	bar := screen.NewBar(os.Stderr, what, "measurements")
	defer bar.End()
	return bench.Interleave(b.Rounds, func(done, total int) { bar.Show(int64(done), int64(total)) }, limit, others...)
}

// conclude adds a figure to the report.
func (b *benchmark) conclude(f bench.Figure, rounds []float64, limit string, against []float64) {
	b.report.Figures = append(b.report.Figures, f.Conclude(rounds, limit, against))
}
