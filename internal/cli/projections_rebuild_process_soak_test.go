//go:build soak

package cli_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
	"bahi/projections/ledgerproj"
)

// busy is a database with servers, clients that write as fast as they can, and readers that check that every acknowledged write is there.
type busy struct {
	t        *testing.T
	conn     *pgx.Conn // for queries of the registry
	database string
	load     *apptest.Load
	looking  *apptest.FreshnessCheckers
	head     int64 // at least
}

// longLog is the number of events in a log before a rebuild begins.
const longLog = 3000

func newBusy(t *testing.T, database, url string, seed uint64) *busy {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close(context.WithoutCancel(t.Context())) })
	l := &busy{t: t, conn: conn, database: database, load: apptest.NewLoad(t, url, seed), looking: apptest.NewWitnesses(t, 3, url)}
	// More clients keep two processors so busy that tables lag seconds behind the log: Postgres does not sync here.
	l.load.Clients = l.load.Clients[:4]
	l.load.Fill(longLog)
	l.head = longLog
	return l
}

// begin starts the writers and readers; end stops them.
func (l *busy) begin() (end func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(l.t.Context()))
	var all sync.WaitGroup
	all.Go(func() { l.load.Run(ctx) })
	all.Go(func() { l.looking.Run(ctx) })
	stop := sync.OnceFunc(func() {
		cancel()
		all.Wait()
	})
	l.t.Cleanup(stop)
	return stop
}

// command returns a bahi command on the database.
func (l *busy) command(args ...string) *apptest.Cmd {
	cmd := apptest.Command(l.t, l.t.TempDir(), args...)
	cmd.Env = append(cmd.Env, "DATABASE_URL="+l.database)
	return cmd
}

// generation is a row of the registry.
type generation struct {
	Generation int
	Version    int
	Live       bool
	Kept       bool
	Phase      string
	Position   int64
	Total      int64
}

func (l *busy) generations(version int) []generation {
	l.t.Helper()
	rows, _ := l.conn.Query(l.t.Context(), `select generation, version, live, keep_until is not null as kept, coalesce(phase, '') as phase,
		position, total
		from projection.generation where name = 'books' and version = $1 and not scratch order by generation`, version)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByName[generation])
	require.NoError(l.t, err)
	return all
}

// live returns the live generation.
func (l *busy) live(version int) generation {
	l.t.Helper()
	for _, g := range l.generations(version) {
		if g.Live {
			return g
		}
	}
	return generation{}
}

// watch polls the newest generation until a condition holds, and checks that it never goes back.
func (l *busy) watch(before generation, wanted func(generation) bool) generation {
	l.t.Helper()
	late := time.Now().Add(4 * time.Minute)
	for range time.Tick(2 * time.Millisecond) {
		all := l.generations(before.Version)
		require.NotEmpty(l.t, all)
		now := all[len(all)-1]
		require.Equal(l.t, before.Generation, now.Generation, "the same build continues")
		require.GreaterOrEqual(l.t, now.Position, before.Position, "a build keeps its progress")
		if before = now; wanted(now) {
			break
		}
		require.True(l.t, time.Now().Before(late), "%+v does not meet the condition", now)
	}
	return before
}

// building waits until the registry has a build.
func (l *busy) building(version int) (g generation) {
	l.t.Helper()
	require.Eventually(l.t, func() bool {
		all := l.generations(version)
		if len(all) > 0 {
			g = all[len(all)-1]
		}
		return len(all) > 0 && !g.Live && !g.Kept
	}, time.Minute, 2*time.Millisecond)
	return g
}

// killed waits until the build is at a random position, calls kill, and returns the generation at that time.
func (l *busy) killed(random *rand.Rand, g generation, kill func()) generation {
	l.t.Helper()
	g = l.watch(g, func(g generation) bool { return g.Total > 0 })
	target := 1 + random.Int64N(g.Total)
	g = l.watch(g, func(g generation) bool { return g.Position >= target || g.Phase != "filling" && g.Phase != "requested" })
	if g.Phase == "catching up" || g.Phase == "indexing" { // it may be in any of the following phases
		<-time.After(time.Duration(random.IntN(100)) * time.Millisecond)
	}
	kill()
	all := l.generations(g.Version)
	now := all[len(all)-1]
	require.GreaterOrEqual(l.t, now.Position, g.Position)
	l.t.Logf("killed at %d of %d events, %s", now.Position, now.Total, now.Phase)
	return now
}

// slowly returns a throttle with which filling takes a second or two.
func (l *busy) slowly(random *rand.Rand) int {
	l.t.Helper()
	var head int
	require.NoError(l.t, l.conn.QueryRow(l.t.Context(), `select max(position) from log.event`).Scan(&head))
	return head/2 + random.IntN(head/2)
}

func TestRebuildUnderLoadSurvivesKillsAndRollback(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 9))
	for nth := range apptest.Rounds(t, 1) { // each with a log of its own, to keep it short
		rebuildUnderLoad(t, random, nth)
	}
}

// rebuildUnderLoad rebuilds the books twice and kills the builder.
func rebuildUnderLoad(t *testing.T, random *rand.Rand, nth int) {
	database := apptest.Database(t)
	serving := func() *apptest.Process {
		cmd := apptest.Program(t, t.TempDir(), "serve", "--keep-generation", "5m")
		cmd.Env = append(cmd.Env, "DATABASE_URL="+database)
		p := apptest.Serve(t, cmd)
		p.Ready()
		return p
	}
	p := serving()
	l := newBusy(t, database, p.URL, random.Uint64())
	end := l.begin()
	for _, byShell := range []bool{true, false} {
		was := l.live(ledgerproj.Books.Version)
		var g generation
		if byShell { // a command builds, and the server takes over
			shell := apptest.Launch(t, l.command("projections", "rebuild", "books", "--throttle", strconv.Itoa(l.slowly(random))).AsProcess(t))
			g = l.killed(random, l.building(ledgerproj.Books.Version), shell.End)
		} else { // the server builds, and the next one takes over
			p.Client().POST("/ops/projections/books/rebuild",
				map[string]any{"throttle": l.slowly(random), "partitions": 1 + random.IntN(3)}).Status(202)
			l.looking.MayBeAway.Store(true)
			g = l.killed(random, l.building(ledgerproj.Books.Version), p.Kill)
			end()
			require.NotRegexp(t, `status=50[^3]`, p.Text(), "only writes that the books could not follow got a 503")
			p = serving()
			l.load.At(p.URL)
			l.looking.At(p.URL)
			l.looking.MayBeAway.Store(false)
			end = l.begin()
		}
		l.watch(g, func(g generation) bool { return g.Live })
		require.NotContains(t, p.Text(), "starts over")
		apptest.Healthy(t, l.command("doctor", "books"))

		l.looking.After(t.Context(), 50)
		if byShell == (nth%2 == 0) {
			rollback := l.command("projections", "rollback", "books")
			rollback.Env = append(rollback.Env, "BAHI_ADDR="+strings.TrimPrefix(p.URL, "http://"))
			out, wrong, status := apptest.Execute(t, rollback)
			require.Equal(t, 0, status, wrong)
			require.Equal(t, fmt.Sprintf("books: generation %d is live again\n", was.Generation), out)
		} else {
			p.Client().POST("/ops/projections/books/rollback", nil).Status(200)
		}
		require.Equal(t, was.Generation, l.live(ledgerproj.Books.Version).Generation)
		l.looking.After(t.Context(), 50)
	}
	end()
	l.load.Verify()
	require.Zero(t, l.load.Away.Load())
	require.NotRegexp(t, `status=50[^3]`, p.Text(), "only writes that the books could not follow got a 503")
	apptest.Healthy(t, l.command("doctor"))
	t.Logf("%d writes were acknowledged, %d reads, %d of them stale", l.load.Answered.Load(), l.looking.Reads.Load(), l.looking.Stale.Load())
	p.Stop()
}
