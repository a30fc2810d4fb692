//go:build soak

package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
	"bahi/internal/test/pgtest"
	"bahi/internal/test/worktest"
	"bahi/projections/ledgerproj"
)

// nextBooks is the version of the books in the program of nextVersion.
var nextBooks = ledgerproj.Books.Version + 1

// nextVersion builds a future version of the program: its books have another version, with one more column in the rows.
func nextVersion(t *testing.T) string {
	t.Helper()
	return overlaid(t, map[string][]string{
		"../../projections/ledgerproj/books.sql": {
			"  recorded_at   timestamptz not null,", "  recorded_at   timestamptz not null,\n  weekday       int generated always as " +
				"(extract(isodow from date)) stored,",
			"-- after fill\n", "-- after fill\n\ncreate index row_version_weekday_idx on row_version (account_id, weekday);",
		},
		"../../projections/ledgerproj/books.go": {
			fmt.Sprintf(`Define("books", %d,`, ledgerproj.Books.Version), fmt.Sprintf(`Define("books", %d,`, nextBooks),
			".PartitionedBy(partOf)", `.PartitionedBy(partOf).Comparable(map[string]string{
				"account": "*", "total": "*", "balance_history": "*",
				"row_version": "row_id, from_position, to_position, account_id, date, in_entries, out_entries, in_cash, out_cash, revision, deleted",
			})`,
		},
	})
}

func TestANewVersionIsBuiltBesideTheOldOneUnderLoad(t *testing.T) {
	t.Parallel()
	newer := nextVersion(t)
	random := rand.New(rand.NewPCG(8, 9))
	for range apptest.Rounds(t, 1) {
		database := apptest.Database(t)
		cmd := apptest.Command(t, t.TempDir(), "serve").With("DATABASE_URL=" + database)
		old := apptest.Serve(t, cmd)
		old.Ready()
		l := newBusy(t, database, old.URL, random.Uint64())
		end := l.begin()
		next := func(args ...string) *apptest.Cmd {
			cmd := l.command(args...)
			cmd.Program = newer
			return cmd
		}

		// The new program builds its tables; it dies, and another process takes over.
		shell := apptest.Launch(t, next("projections", "build", "--throttle", strconv.Itoa(l.slowly(random))))
		g := l.killed(random, l.building(nextBooks), shell.End)
		if !g.Live { // on a busy machine the build may end before the kill
			require.Zero(t, l.live(nextBooks), "the build is not live yet")
		}
		building := apptest.Launch(t, next("projections", "build"))
		l.watch(g, func(g generation) bool { return g.Live })
		<-building.Done
		require.Zero(t, building.Status, building.Text())
		require.Equal(t, 1, l.live(ledgerproj.Books.Version).Generation, "the old program still reads its own tables")
		apptest.Healthy(t, next("doctor", "books"))
		apptest.Healthy(t, l.command("doctor", "books"))

		// Both serve one database.
		beside := apptest.Serve(t, next("serve"))
		beside.Ready()
		l.looking.At(old.URL, beside.URL)
		l.looking.After(t.Context(), 100)
		l.looking.At(beside.URL, old.URL)
		l.looking.After(t.Context(), 100)
		position := old.Client().GET("/banks").Status(200).Header("Bahi-Position")
		for _, path := range []string{"/banks", apptest.Ledger(l.load.Accounts[0]), apptest.Ledger(l.load.Accounts[1]),
			apptest.Ledger(l.looking.All[0].Account)} {
			path += "?known_at=" + position
			require.Equal(t, old.Client().GET(path).Status(200).Text, beside.Client().GET(path).Status(200).Text, path)
		}

		// The new version was a mistake: the old one continues.
		l.looking.At(old.URL)
		beside.Stop()
		require.NotContains(t, beside.Text(), "status=50")
		l.looking.After(t.Context(), 50)
		out, wrong, status := apptest.Execute(t, l.command("projections", "list"))
		require.Equal(t, 0, status, wrong)
		require.Regexp(t, fmt.Sprintf(`(?m)^books +%d +%d +live .* of another version of the program$`, nextBooks, g.Generation), out)
		out, wrong, status = apptest.Execute(t, l.command("projections", "drop", "books", strconv.Itoa(g.Generation)))
		require.Equal(t, 0, status, wrong)
		require.Equal(t, fmt.Sprintf("books: generation %d is dropped\n", g.Generation), out)
		require.Empty(t, l.generations(nextBooks))
		end()
		l.load.Verify()
		apptest.Healthy(t, l.command("doctor"))
		require.NotContains(t, old.Text(), "status=50")
		t.Logf("%d writes were acknowledged, %d reads, %d of them stale", l.load.Answered.Load(), l.looking.Reads.Load(), l.looking.Stale.Load())
		old.Stop()
	}
}

// overlaid builds the program with edited files, without touching the source tree. edited has old and new texts by file.
func overlaid(t *testing.T, edited map[string][]string) string {
	t.Helper()
	dir := t.TempDir()
	replaced := map[string]string{}
	for file, edits := range edited {
		path, err := filepath.Abs(file)
		require.NoError(t, err)
		text := worktest.File(t, path)
		for i := 0; i < len(edits); i += 2 {
			require.Equal(t, 1, strings.Count(string(text), edits[i]), "%s has %q once", file, edits[i])
			text = []byte(strings.Replace(string(text), edits[i], edits[i+1], 1))
		}
		replaced[path] = filepath.Join(dir, filepath.Base(file))
		require.NoError(t, os.WriteFile(replaced[path], text, 0o600))
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600))
	path := filepath.Join(dir, "bahi")
	require.NoError(t, apptest.GoBuild(path, "v1-test", "-overlay", filepath.Join(dir, "overlay.json")))
	return path
}

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
	conn := pgtest.Connect(t, database)
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
	return apptest.Command(l.t, l.t.TempDir(), args...).With("DATABASE_URL=" + l.database)
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
	rows, _ := l.conn.Query(l.t.Context(), `select generation, version, status = 'live' as live, status = 'kept' as kept, status as phase,
		position, total
		from projection.generation where name = 'books' and version = $1 and status <> 'scratch' order by generation`, version)
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
	head := pgtest.Value[int](l.t, l.conn, `select max(position) from log.event`)
	return head/2 + random.IntN(head/2)
}
