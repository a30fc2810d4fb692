package cli_test

import (
	"image/color"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/access/user"
	"bahi/internal/app"
	"bahi/internal/cli/backup"
	"bahi/internal/test/apptest"
	"bahi/internal/test/pgtest"
	"bahi/internal/test/worktest"
)

func TestBackupUnderLoadIsOneSnapshot(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk := o.Clerk(apptest.Home)
	o.Sql(`insert into knowledge.chunk (source_id, ordinal, bot_id, text, words) values (1, 0, 1, 'open until eight', '')`)
	account := apptest.Open(clerk, "HDFC")
	apptest.Post(clerk, account, apptest.Deposit("2025-03-01", "1"))
	before := o.Head()
	stop := make(chan struct{})
	var writing sync.WaitGroup
	for range 4 {
		writing.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if status := clerk.POST(apptest.Ledger(account), apptest.Deposit("2025-03-01", "1")).Response.StatusCode; status != http.StatusCreated {
					t.Errorf("a row got status %d during the backup", status)
					return
				}
			}
		})
	}
	dir := filepath.Join(t.TempDir(), "monday", "backup")
	out, wrong := apptest.Done(t, o.Database, "backup", dir)
	during := o.Head()
	close(stop)
	writing.Wait()
	apptest.Post(clerk, account, apptest.Deposit("2025-03-01", "1"))
	require.Contains(t, out, " events of the log "+o.Sys.Store.ID().String()+", 2 files, ")
	require.Contains(t, wrong, "The master key (id ")

	m, err := backup.OpenBackup(dir)
	require.NoError(t, err)
	require.GreaterOrEqual(t, int64(m.Head), before)
	require.LessOrEqual(t, int64(m.Head), during)
	copied := pgtest.DB(t)
	out, wrong = apptest.Done(t, copied, "restore", dir)
	require.Contains(t, out, strconv.FormatUint(uint64(m.Head), 10)+" events of the log "+o.Sys.Store.ID().String()+" are there again, as of ")
	require.Contains(t, wrong, "WARNING: no list of erasures was given.")
	every, _ := tables(t, o.Database)
	restored, known := tables(t, copied)
	require.Equal(t, every, restored)
	require.Equal(t, "open until eight", known, "what bots know is made once, when a file comes")
	out, _ = apptest.Done(t, copied, "doctor", "books")
	require.Contains(t, out, "at position "+strconv.FormatUint(uint64(m.Head), 10))

	want := slices.Collect(o.Events(0))
	c := apptest.StartOn(t, copied)
	got := slices.Collect(c.Events(0))
	require.Len(t, got, int(m.Head))
	require.Equal(t, want[:m.Head], got)
	rows := 0
	for _, e := range got {
		if e.Type == "BankRowAdded" {
			rows++
		}
	}
	banks := apptest.ClerkBanks(c.Operator().With("Bahi-Workspace", apptest.Home).GET("/banks").Status(200))
	require.Equal(t, strconv.Itoa(rows), banks[0].Balance.String())
	next := c.Operator().With("Bahi-Workspace", apptest.Home).POST(apptest.Ledger(account), apptest.Deposit("2025-03-01", "1")).Status(201)
	require.Greater(t, c.Head(), int64(m.Head))
	require.Equal(t, strconv.FormatInt(c.Head(), 10), next.Header("Bahi-Position"))
}

// tables returns the names of the tables outside projections, and what bots know.
func tables(t *testing.T, database string) (names []string, known string) {
	t.Helper()
	conn := pgtest.Connect(t, database)
	require.NoError(t, conn.QueryRow(t.Context(), `
		select array_agg(schemaname || '.' || tablename order by schemaname, tablename), (select text from knowledge.chunk) from pg_tables
		where schemaname not in ('pg_catalog', 'information_schema') and schemaname !~ '_g[0-9]+$'`).Scan(&names, &known))
	return names, known
}

// lost empties a data folder, except for the master key.
func lost(t *testing.T, data string) {
	t.Helper()
	entries, err := os.ReadDir(data)
	require.NoError(t, err)
	for _, e := range entries {
		if e.Name() != "keys" {
			require.NoError(t, os.RemoveAll(filepath.Join(data, e.Name())))
		}
	}
}

// The life of a data folder: it is empty, served and beside commands, backed up, lost and restored.
func TestRestoreOfALostMachineErasesListedUsers(t *testing.T) {
	t.Parallel()
	data, list := pgtest.Dir(t), filepath.Join(t.TempDir(), "erasures.json")
	apptest.EndCluster(t, data)
	keyed := func(args ...string) (stdout, stderr string, status int) {
		t.Helper()
		cmd := apptest.Command(t, data, args...)
		cmd.Env = append(cmd.Env, "BAHI_MASTER_KEY=", "BAHI_DELETION_GRACE=1ms", "BAHI_LIMIT_AUTH=1000/1m", "BAHI_LIMIT_USERS_PICTURE=1000/1m")
		return apptest.Execute(t, cmd)
	}
	serving := func(cmd *apptest.Cmd) *apptest.Process {
		t.Helper()
		cmd.Env = append(cmd.Env, "BAHI_MASTER_KEY=", "BAHI_DELETION_GRACE=1ms", "BAHI_LIMIT_AUTH=1000/1m", "BAHI_LIMIT_USERS_PICTURE=1000/1m")
		p := apptest.Serve(t, cmd)
		p.Ready()
		return p
	}
	dir := filepath.Join(t.TempDir(), "backup")
	// A command that only reads creates no log in a wrongly named folder.
	for _, args := range []string{"doctor", "events tail", "projections list", "audit verify --store", "user list", "backup " + dir,
		"vault erasures export " + list} {
		_, wrong, status := keyed(strings.Fields(args)...)
		require.NotZero(t, status, args)
		require.Contains(t, wrong, "no Bahi has run in the data folder "+data, args)
	}
	left, err := os.ReadDir(data)
	require.NoError(t, err)
	require.Empty(t, left)
	// A command that writes works without a log, and leaves no process running.
	_, wrong, status := keyed("apikey", "create", "--name", "till")
	require.Zero(t, status, wrong)
	require.Zero(t, apptest.Postmaster(data))

	p := serving(apptest.Program(t, data, "serve"))
	l := apptest.Live(t, p, data)
	// Beside the server, commands use its cluster and leave it running.
	pid := apptest.Postmaster(data)
	for _, args := range []string{"events tail", "projections list", "apikey list"} {
		_, wrong, status = keyed(strings.Fields(args)...)
		require.Zero(t, status, wrong)
	}
	require.Equal(t, pid, apptest.Postmaster(data))
	apptest.Upload(t, l.Asha.Client, "image/png", apptest.Painted(t, color.White, 8, 8)).Status(200)
	out, wrong, status := keyed("backup", dir)
	require.Equal(t, 0, status, wrong)
	require.NotContains(t, out, ", 2 files", "the backup has pictures")
	_, wrong, status = keyed("restore", dir)
	require.Equal(t, 1, status)
	require.Contains(t, wrong, "restore into an empty data folder")

	l.Person.POST(apptest.Me+"/delete-request", nil).Status(200)
	p.Until(func(said, _ string) bool { return strings.Contains(said, `msg="user erased"`) })
	_, wrong, status = keyed("vault", "erasures", "export", list)
	require.Equal(t, 0, status, wrong)
	text := worktest.File(t, list)
	require.Contains(t, string(text), user.Kind.Category()+"-"+l.Id)
	require.Empty(t, l.Known.In("the list", text), "the list names nobody")
	require.Less(t, p.Stop(), apptest.Promptly)
	require.Zero(t, apptest.Postmaster(data), "the cluster ends with the server")
	lost(t, data)

	out, wrong, status = keyed("restore", dir, "--erasures", list)
	require.Equal(t, 0, status, wrong)
	require.NotContains(t, wrong, "WARNING")
	require.Regexp(t, `(?s)\d+ events of the log .* are there again, as of .*\n\d+ of \d+ were erased again\n$`, out)
	require.Zero(t, apptest.Postmaster(data), "no Postgres is left running")
	require.Empty(t, l.Known.InFiles(data))
	apptest.Cluster(t, data, func(url string) { require.Empty(t, l.Known.InDatabase(url)) })

	p = serving(apptest.Command(t, data, "serve"))
	l.Server = apptest.Visited(p, data)
	l.Asha.Client = l.Bearer(l.SignIn("asha@example.org", apptest.GoodPassword).Access)
	link, err := url.Parse(*l.Asha.Me().Picture)
	require.NoError(t, err)
	l.Anonymous().GET(link.RequestURI()).Status(200)
	require.Equal(t, "03-01 12.5", l.Books())
	require.NotContains(t, l.Members(l.Workspace), l.Id)
	l.Person.At(p.URL).GET(apptest.Me).Status(401)
}

func TestPasswordsAreNotInPostgresProgramsArguments(t *testing.T) {
	t.Setenv("PGCONNECT_TIMEOUT", "7")
	for text, want := range map[string]string{
		"postgres://bahi:se%20cret@db.example.org:5433/books?" +
			"sslmode=require&pool_max_conns=9&default_query_exec_mode=exec": "postgres://bahi@db.example.org:5433/books?sslmode=require",
		"postgres:///books?host=%2Frun%2Fpg&user=bahi&" +
			"password=se%20cret&options=-c%20geqo%3Doff": "postgres:///books?host=%2Frun%2Fpg&user=bahi&options=-c%20geqo%3Doff",
		"host=db.example.org user=bahi " +
			"password='se cret' dbname=books": "host=db.example.org user=bahi  dbname=books",
	} {
		address, env, err := app.LibpqURL(text)
		require.NoError(t, err)
		require.Equal(t, want, address)
		require.Contains(t, env, "PGPASSWORD=se cret")
		require.Contains(t, env, "PGCONNECT_TIMEOUT=7")
	}
}

func TestProgramsOlderThanTheServerAreRefused(t *testing.T) {
	t.Parallel()
	db := &app.Database{Url: pgtest.DB(t)}
	_, err := db.Tools(t.Context(), slog.New(slog.DiscardHandler), 99)
	require.ErrorContains(t, err, "must be of 99 or newer: install them (on Debian: postgresql-client-99), or name their folder in "+
		"BAHI_PG_BIN")
	tools, err := db.Tools(t.Context(), slog.New(slog.DiscardHandler), 15)
	require.NoError(t, err)
	require.GreaterOrEqual(t, tools.Programs.Major, 15)
}
