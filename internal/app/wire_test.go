package app_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	endian "encoding/binary"
	"encoding/hex"
	"fmt"
	"log/slog"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"bahi/domain"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/eventstore"
	"bahi/internal/app"
	"bahi/internal/cli"
	"bahi/internal/test/apptest"
	"bahi/internal/test/pgtest"
	"bahi/internal/test/worktest"
	"bahi/migrations"
	"bahi/projections"
	"bahi/providers/blob"
)

func TestStateOfAProjectionAndItsCause(t *testing.T) {
	t.Parallel()
	full := (&pgconn.PgError{Severity: "ERROR", Code: "53100", Message: "could not extend file"}).Error()
	unknown := "event Karigars at position 7: " + projections.ErrUnknownType.Error()
	for _, c := range []struct {
		status       projections.Status
		paused       bool
		state, cause string
	}{
		{projections.Status{}, false, "building", ""},
		{projections.Status{Ready: true, Generation: 1}, false, "live", ""},
		{projections.Status{Ready: true, Generation: 1}, true, "paused", ""},
		{projections.Status{Ready: true, Generation: 1, Error: full}, false, "waiting", "the database's disk is full"},
		{projections.Status{Error: full}, false, "building", "the database's disk is full"},
		{projections.Status{Ready: true, Generation: 1, Error: unknown, Parked: true}, false, "parked", unknown},
		{
			projections.Status{Ready: true, Generation: 1, Error: "event BankRowAdded at position 7: cannot read asha@example.com", Parked: true},
			false,
			"parked", "event BankRowAdded at position 7 cannot be applied",
		},
		{projections.Status{Ready: true, Generation: 1, Error: "connect to db.internal"}, false, "waiting",
			"retrying; the log of the process has the cause"},
	} {
		require.Equal(t, c.state, app.StateOf(c.status, c.paused), "%+v", c.status)
		require.Equal(t, c.cause, app.CauseOf(c.status), "%+v", c.status)
	}
}

func TestAFullDiskIsNamed(t *testing.T) {
	t.Parallel()
	full := &pgconn.PgError{Code: "53100"}
	require.Equal(t, fault.Unavailable, app.Classify(fmt.Errorf("append: %w", full)).Kind)
	require.Contains(t, app.Classify(fmt.Errorf("%w: %w", eventstore.ErrUnavailable, full)).Error(), "disk is full")
	require.Equal(t, ": the database's disk is full", app.PublicCause(full))
}

func TestAStoreOfBlobsThatIsAwayIsUnavailable(t *testing.T) {
	t.Parallel()
	require.Equal(t, fault.Unavailable, app.Classify(fmt.Errorf("put blob a.png: %w", blob.ErrUnavailable)).Kind)
}

// Debian's Postgres compiles queries, which takes longer than our queries run.
func TestQueriesAreNotCompiled(t *testing.T) {
	t.Parallel()
	url := apptest.Database(t)
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	pgtest.Exec(t, conn, `do $$ begin execute format('alter database %I set jit = on', current_database()); end $$`)
	require.NoError(t, conn.Close(t.Context()))

	sys, err := apptest.Settings(t, url).OpenBooks(t.Context(), false)
	require.NoError(t, err)
	t.Cleanup(sys.Close)
	jit := pgtest.Value[string](t, sys.Pool, `show jit`)
	require.Equal(t, "off", jit)
}

func TestALargeHeapIsCollectedAsOftenAsGoDoes(t *testing.T) {
	t.Parallel()
	for _, of := range []struct {
		live    uint64
		percent int
	}{{0, 300}, {10 << 20, 300}, {32 << 20, 300}, {40 << 20, 225}, {64 << 20, 150}, {96 << 20, 100}, {1 << 40, 100}} {
		require.Equal(t, of.percent, app.GCPercentOf(of.live), "%d bytes", of.live)
	}
}

func TestTracesAreFoundInTheirForms(t *testing.T) {
	t.Parallel()
	x := apptest.NewTraces(t)
	x.Know("Zéphyrine@Example.org")
	for _, text := range []string{
		"<Zéphyrine@Example.org>", "zéphyrine@example.org", "ZÉPHYRINE@EXAMPLE.ORG", "?q=z%C3%A9phyrine%40example.org&",
		apptest.InUTF16(endian.LittleEndian, "to zéphyrine@example.org"), apptest.InUTF16(endian.BigEndian, "ZÉPHYRINE@EXAMPLE.ORG"),
		base64.StdEncoding.EncodeToString([]byte("mailto:zéphyrine@example.org")),
		base64.URLEncoding.EncodeToString([]byte("x:Zéphyrine@Example.org,")),
		`\x` + hex.EncodeToString([]byte("zéphyrine@example.org")),
		hex.EncodeToString(hashOf("zéphyrine@example.org")), string(hashOf("zéphyrine@example.org")),
	} {
		require.NotEmpty(t, x.In("", []byte("before "+text+" behind")), "%q", text)
	}
	require.Empty(t, x.In("", []byte("Zephyrine at example.org")))
}

func hashOf(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

// The start that creates tokens of webhooks prints them. A later one, even of another node, stores them in its data folder and logs where.
func TestTokensOfWebhooksArePrintedOnce(t *testing.T) {
	t.Parallel()
	database := pgtest.Template(t, "migrated", migrations.Up) // no node has started on it
	start := func() (said string, token []byte) {
		var out bytes.Buffer
		with := apptest.Settings(t, database) // each start has a new data folder
		with.Shell.Err, with.LogLevel = &out, slog.LevelInfo
		sys, err := with.Open(t.Context(), true)
		require.NoError(t, err)
		defer sys.Close()
		sys.SayTokens()
		token = worktest.File(t, filepath.Join(with.Data, "keys", "social.token"))
		return out.String(), bytes.TrimSpace(token)
	}
	first, made := start()
	require.Equal(t, 4, strings.Count(first, "The token of the "))
	require.Contains(t, first, string(made))
	later, kept := start()
	require.Equal(t, made, kept)
	require.NotContains(t, later, string(kept))
	require.Contains(t, later, "webhook tokens of an earlier start")
	require.Contains(t, later, "social")
}

func TestMain(m *testing.M) { apptest.Main(m, cli.Run) }

// released has one line for each released version of each projection: name, version and hash. A change of the DDL or of the event types
// requires a new version with a new line; old lines stay. The hashes of versions 1 cover the DDL alone.
const released = "../../projections/testdata/released.txt"

func TestDDLChangesOnlyWithTheVersion(t *testing.T) {
	t.Parallel()
	text := worktest.File(t, released)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	newest := map[string]int{}
	for _, line := range lines {
		var (
			name, hash string
			version    int
		)
		_, err := fmt.Sscan(line, &name, &version, &hash)
		require.NoError(t, err, line)
		require.Greater(t, version, newest[name], "%s: versions must increase", name)
		newest[name] = version
	}
	var missing []string
	for _, p := range app.AllProjections() {
		if line := fmt.Sprintf("%s %d %s", p.Name, p.Version, p.Hash()); !slices.Contains(lines, line) {
			missing = append(missing, line)
			continue
		}
		require.Equal(t, newest[p.Name], p.Version, "the released version of %s must be the newest", p.Name)
	}
	require.Empty(t, missing, "the DDL or the event types are not those of these versions: raise the version, and add to %s:\n%s",
		released, strings.Join(missing, "\n"))
}

// A projection with values of a subject must fold the event that ends the subject; otherwise its tables keep the values.
func TestEveryProjectionThatFoldsPersonalFieldsFoldsTheirEnd(t *testing.T) {
	t.Parallel()
	subjects := map[string][]event.SubjectType{}
	for _, k := range domain.Catalogue.Kinds() {
		subjects[k.Category()] = k.Subjects()
	}
	for _, p := range app.AllProjections() {
		ended := map[event.SubjectType]bool{}
		for _, name := range p.Types() {
			of, known := domain.Catalogue.Lookup(name)
			if !known { // of a ledger that does not exist yet
				continue
			}
			if ending, ok := reflect.TypeAssert[event.ErasureTrigger](reflect.Zero(of.Go)); ok {
				category, _ := event.SplitStream(ending.Erases("1").Subject)
				ended[event.SubjectType(category)] = true
			}
		}
		for _, name := range p.Types() {
			of, known := domain.Catalogue.Lookup(name)
			if !known || !event.HoldsSealed(of.Go) {
				continue
			}
			for _, s := range subjects[of.Category] {
				if !ended[s] {
					t.Errorf("projection %s folds %s, which has values of %s, and no event that erases these: its tables would keep them", p.Name, name, s)
				}
			}
		}
	}
}
