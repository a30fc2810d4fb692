//go:build soak

package cli_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
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
			".Parted(partOf)", `.Parted(partOf).Comparable(map[string]string{
				"account": "*", "total": "*", "posting": "*", "bulk": "*",
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
		cmd := apptest.Command(t, t.TempDir(), "serve")
		cmd.Env = append(cmd.Env, "DATABASE_URL="+database)
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
		text, err := os.ReadFile(path)
		require.NoError(t, err)
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
