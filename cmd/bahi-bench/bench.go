// Command bahi-bench measures bahi against the limits of this machine.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/jackc/pgx/v5"

	"bahi/internal/app"
	"bahi/internal/cli/progress"
	"bahi/internal/pgcluster"
	"bahi/internal/test/bench"
	"bahi/internal/test/starter"
)

type benchCommand struct {
	Bahi    string        `default:"bin/bahi" placeholder:"FILE" help:"The program to measure."`
	JSON    string        `placeholder:"FILE" help:"Write the figures to this file as JSON."`
	Quick   bool          `help:"Short rounds and few rows, for rough figures."`
	Only    []string      `placeholder:"NAME" enum:"${scenarios}" help:"Measure only these scenarios. All: ${about}."`
	Rows    int           `placeholder:"N" help:"Events of the log to rebuild. 1000000, with --quick 50000."`
	Round   time.Duration `placeholder:"TIME" help:"Duration of a round. 1s, with --quick 500ms."`
	Rounds  int           `placeholder:"N" help:"Number of rounds, whose median counts. 9, with --quick 3."`
	Sustain time.Duration `placeholder:"TIME" help:"Duration of the runs for the lag and for bytes. 15s, with --quick 5s."`
	Dir     string        `placeholder:"DIR" help:"Parent of the temporary folder. By default the system's."`
	Profile string        `placeholder:"DIR" help:"Run the server in this process and write a CPU profile of each scenario."`

	HandWritten string `hidden:"" placeholder:"ADDRESS" help:"Serve the hand-written ledger at this address, on the database DATABASE_URL."`
}

// benchmark is a running benchmark.
type benchmark struct {
	benchCommand

	dir     string // temporary
	cluster *pgcluster.Cluster
	limits  *bench.Limits
	report  *bench.Report
	servers int // started so far
}

// Run measures, prints a table and writes JSON. A missed goal is not an error. After an error, the table has the earlier figures.
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
	failed := b.runScenarios(ctx)
	if failed != nil && len(b.report.Figures) == 0 {
		return failed
	}
	b.report.Seconds = time.Since(began).Seconds()
	fmt.Println()
	if err := b.report.Table(os.Stdout); err != nil {
		return errors.Join(failed, err)
	}
	fmt.Printf("\n%d of %d goals missed; %s; Postgres %s on %s; %s, %d cores; %.0f seconds\n", b.report.Missed(), len(b.report.Figures),
		b.report.Version, b.report.Machine.Postgres, b.report.Machine.FileSystem, b.report.Machine.Processor, b.report.Machine.Cores,
		b.report.Seconds)
	if b.JSON == "" || failed != nil {
		return failed
	}
	return b.report.Write(b.JSON)
}

// complete sets the defaults that depend on --quick.
func (c benchCommand) complete() benchCommand {
	rows, round, rounds, sustain := 1_000_000, time.Second, 9, 15*time.Second
	if c.Quick {
		rows, round, rounds, sustain = 50_000, time.Second/2, 3, 5*time.Second
	}
	c.Rows, c.Sustain = cmp.Or(c.Rows, rows), cmp.Or(c.Sustain, sustain)
	c.Round, c.Rounds = cmp.Or(c.Round, round), cmp.Or(c.Rounds, rounds)
	return c
}

// runScenarios runs those that --only names, or all.
func (b *benchmark) runScenarios(ctx context.Context) error {
	for _, s := range scenarios {
		if len(b.Only) > 0 && !slices.Contains(b.Only, s.name) {
			continue
		}
		run := func() error { return s.run(b, ctx) }
		if b.Profile != "" {
			run = func() error {
				return profiled(filepath.Join(b.Profile, s.name+".pprof"), func() error { return s.run(b, ctx) })
			}
		}
		if err := run(); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// open starts the cluster and prepares it for pgbench.
func (b *benchmark) open(ctx context.Context) (err error) {
	b.sayf("starting an embedded Postgres")
	if b.dir, err = os.MkdirTemp(b.Dir, "bahi-bench-"); err != nil {
		return err
	}
	if err := os.Chmod(b.dir, 0o711); err != nil { //nolint:gosec // as root, another user runs Postgres in it
		return err
	}
	if b.cluster, err = b.startCluster(ctx, "cluster"); err != nil {
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

func (b *benchmark) startCluster(ctx context.Context, name string) (*pgcluster.Cluster, error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return pgcluster.Start(ctx, pgcluster.Options{Dir: filepath.Join(b.dir, name), Log: log})
}

func (b *benchmark) close() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*app.StopTimeout)
	defer cancel()
	if b.cluster != nil {
		err = b.cluster.Stop(ctx)
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
	if err := execute(ctx, b.cluster.URL(), `create database `+pgx.Identifier{name}.Sanitize()); err != nil {
		return "", fmt.Errorf("create the database %s: %w", name, err)
	}
	u, err := url.Parse(b.cluster.URL())
	if err != nil {
		return "", err
	}
	u.Path = "/" + name
	return u.String(), nil
}

// execute runs a statement on a connection of its own.
func execute(ctx context.Context, url, sql string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // the connection is discarded
	_, err = conn.Exec(ctx, sql)
	return err
}

// onDatabase opens a system in this process on a database, without running projections.
func (b *benchmark) onDatabase(ctx context.Context, url string, use func(*app.System) error) error {
	s := b.settings(url)
	sys, err := s.Open(ctx, false)
	if err != nil {
		return err
	}
	defer sys.Close()
	return use(sys)
}

// data returns the data folder of the measured systems.
func (b *benchmark) data() string { return filepath.Join(b.dir, "data") }

func (b *benchmark) settings(database string) app.Settings {
	return app.Settings{
		Data: b.data(), DatabaseURL: database, MasterKey: starter.MasterKey, Timezone: "Asia/Kolkata", Connections: defaultConnections,
		ReadWait: defaultReadWait, LogLevel: slog.LevelWarn, LogFormat: "text",
	}
}

// The defaults of serve.
const (
	defaultConnections = 24
	defaultReadWait    = 500 * time.Millisecond
)

// round measures once.
type round func() (bench.Sample, error)

// figure describes a value that a scenario measures.
type figure struct {
	name, title string
	number      bench.Number
	goal        *bench.Goal
	unit        string // replaces the number's unit; empty: the number's unit
}

// compare measures alternately with a limit, and adds figures to the report. If the limit has no such number, the
// figure has no comparison.
func (b *benchmark) compare(ctx context.Context, what string, limit, measured round, figures ...figure) error {
	limits, found, err := b.interleave(ctx, figures[0].title, limit, measured)
	if err != nil {
		return err
	}
	for _, f := range figures {
		b.conclude(f, found, what, limits)
	}
	return nil
}

// interleave is [bench.Interleave] with a progress bar. It begins with a checkpoint of Postgres, so that none runs during the rounds.
func (b *benchmark) interleave(ctx context.Context, what string, limit, measured round) (limits, found bench.Series, err error) {
	b.sayf("%s: %d rounds", what, b.Rounds)
	if err := execute(ctx, b.cluster.URL(), `checkpoint`); err != nil {
		return nil, nil, err
	}
	bar := progress.NewBar(os.Stderr, what, "measurements")
	defer bar.End()
	return bench.Interleave(b.Rounds, func(done, total int) { bar.Show(int64(done), int64(total)) }, limit, measured)
}

// conclude adds a figure to the report.
func (b *benchmark) conclude(f figure, found bench.Series, what string, limit bench.Series) {
	of := bench.Figure{Name: f.name, Title: f.title, Unit: f.number.Unit, Goal: f.goal}
	if f.unit != "" {
		of.Unit = f.unit
	}
	against := limit.By(f.number)
	if bench.Median(against) == 0 {
		what, against = "", nil
	}
	b.report.Figures = append(b.report.Figures, of.Conclude(found.By(f.number), what, against))
}

// value adds a figure that was measured once.
func (b *benchmark) value(name, title, unit string, goal *bench.Goal, value float64) {
	f := bench.Figure{Name: name, Title: title, Unit: unit, Goal: goal}
	b.report.Figures = append(b.report.Figures, f.Conclude([]float64{value}, "", nil))
}

// inserts measures pgbench's INSERT.
func (b *benchmark) inserts(ctx context.Context, clients int) round {
	return func() (bench.Sample, error) { return b.limits.Inserts(ctx, clients) }
}

const (
	insert1  = "pgbench INSERT, 1 client"
	insert64 = "pgbench INSERT, 64 clients"
)

// scenario is a line of the table of scenarios.
type scenario struct {
	name, of string
	run      func(*benchmark, context.Context) error
}

// scenarios are in the order in which they run.
var scenarios = []scenario{
	{"store", "appends to the log", (*benchmark).appends},
	{"post", "rows, one a request", onLedger((*benchmark).posts)},
	{"bulk", "rows, 100 a request", onLedger((*benchmark).bulks)},
	{"beside", "rows with an Idempotency-Key, beside a lock and beside bulks", onLedger((*benchmark).disturbed)},
	{"handwritten", "rows, balances and pages beside a hand-written ledger", onLedger((*benchmark).handWritten)},
	{"bytes", "bytes of a row in tables and in the WAL", onLedger((*benchmark).bytes)},
	{"lag", "lag of the books at 512 clients", onLedger((*benchmark).lag)},
	{"idle", "memory and processor of a server without requests", onServer((*benchmark).idle)},
	{"nodes", "two nodes on one database", onLedger((*benchmark).nodes)},
	{"journal", "a journal in the EventStoreDB that EVENTSTORE_TEST_URL names, or in a gateway", onLedger((*benchmark).journal)},
	{"rebuild", "rebuilds of the books", (*benchmark).rebuilds},
	{"register", "registrations", onServer((*benchmark).registrations)},
	{"enquiries", "public enquiries", onServer((*benchmark).enquiries)},
	{"import", "imports of a catalog", onServer((*benchmark).catalog)},
	{"contacts", "imports of contacts, and rows of another workspace beside them", onLedger((*benchmark).contacts)},
	{"send", "texts sent and messages that come in", onServer((*benchmark).messages)},
}

// scenarioNames returns the names of scenarios for the command line's help and checks.
func scenarioNames() kong.Vars {
	var names, about []string
	for _, s := range scenarios {
		names, about = append(names, s.name), append(about, s.name+": "+s.of)
	}
	return kong.Vars{"scenarios": strings.Join(names, ","), "about": strings.Join(about, "; ")}
}

// profiled runs a scenario and writes the CPU profile of this process. The server runs in this process.
func profiled(path string, run func() error) error {
	file, err := os.Create(filepath.Clean(path))
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // pprof reports an incomplete profile
	if err := pprof.StartCPUProfile(file); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	return run()
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bahi-bench:", err)
		os.Exit(1)
	}
}

func run() error {
	app.TuneCollector()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var c benchCommand
	kong.Parse(&c, kong.Name("bahi-bench"), kong.Description("Measure bahi against the limits of this machine."), kong.UsageOnError(),
		scenarioNames(), kong.ConfigureHelp(kong.HelpOptions{Compact: true}))
	return c.Run(ctx)
}
