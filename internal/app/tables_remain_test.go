package app_test

import (
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"bahi/domain/access/session"
	"bahi/domain/access/user"
	"bahi/domain/event"
	"bahi/internal/app"
	"bahi/internal/pgcluster"
	"bahi/internal/test/apptest"
	"bahi/internal/test/pgtest"
	"bahi/internal/test/worktest"
	"bahi/projections"
)

// files returns the file of each table in these schemas; a rewrite changes it.
func files(t *testing.T, database, schemas string) map[string]int64 {
	t.Helper()
	conn := pgtest.Connect(t, database)
	rows, _ := conn.Query(t.Context(), `
		select n.nspname || '.' || c.relname, pg_relation_filenode(c.oid)::bigint from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where c.relkind = 'r' and n.nspname ~ $1`, schemas)
	found := map[string]int64{}
	var (
		table string
		file  int64
	)
	_, err := pgx.ForEachRow(rows, []any{&table, &file}, func() error {
		found[table] = file
		return nil
	})
	require.NoError(t, err)
	require.NotEmpty(t, found, schemas)
	return found
}

func TestScrubRewritesEveryTableWithPersonalValues(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	diary := projections.Define("diary", 1, `create table page (id uuid, email text)`,
		projections.On(func(b *projections.Batch, e event.Recorded[user.Registered]) {
			b.Exec(`insert into page values ($1, $2)`, e.StreamID(), e.Data.Email)
		}))
	hours := projections.Define("hours", 1, `create table hour (id uuid)`,
		projections.On(func(b *projections.Batch, e event.Recorded[session.SignedIn]) {
			b.Exec(`insert into hour values ($1)`, e.StreamID())
		}))
	require.True(t, diary.Personal())
	require.False(t, hours.Personal())
	o.Person("asha@example.com")
	all := append(app.AllProjections(), diary, hours)
	for _, p := range []*projections.Projection{diary, hours} {
		require.NoError(t, o.Sys.Build(p).Run(t.Context()))
	}
	const schemas = `^(diary|hours|users|workspaces|books)_g1$`
	before := files(t, o.Database, schemas)
	var (
		denied []string
		err    error
	)
	// retries, as its job does
	for tries := 0; tries == 0 || tries < 20 && err != nil && strings.Contains(err.Error(), "lock timeout"); tries++ {
		denied, err = app.Remains{System: o.Sys, Projections: all}.Scrub(t.Context())
	}
	require.NoError(t, err)
	require.Empty(t, denied)
	for table, file := range files(t, o.Database, schemas) {
		people := !strings.HasPrefix(table, "hours") && !strings.HasPrefix(table, "books")
		require.Equal(t, people, file != before[table], table)
	}
}

// another starts a Postgres with a role that is no superuser.
func another(t *testing.T) *pgcluster.Cluster {
	t.Helper()
	c := pgtest.Cluster(t)
	conn := pgtest.Connect(t, c.URL())
	pgtest.Exec(t, conn, `create role modest login`)
	// Its private cluster authenticates by the operating system's user, and only the superuser.
	file := pgtest.Value[string](t, conn, `show ident_file`)
	known := worktest.File(t, file)
	require.NoError(t, os.WriteFile(file, append(known, "bahi /.* modest\n"...), 0o600))
	pgtest.Exec(t, conn, `select pg_reload_conf()`)
	return c
}

// books makes a database for the role, and returns the URLs of the superuser and of the role.
func books(t *testing.T, c *pgcluster.Cluster, name string, owning bool) (database, asRole string) {
	t.Helper()
	server := &apptest.Server{T: t, Database: c.URL()}
	server.Sql(`create database ` + name)
	if owning {
		server.Sql(`alter database ` + name + ` owner to modest`)
	}
	u, err := url.Parse(c.URL())
	require.NoError(t, err)
	u.Path = "/" + name
	database = u.String()
	query := u.Query()
	query.Set("user", "modest")
	u.RawQuery = query.Encode()
	server.Database = database
	server.Sql(`grant create on schema public to modest; grant create on database ` + name + ` to modest`)
	require.Eventually(t, func() bool {
		conn, err := pgx.Connect(t.Context(), u.String())
		if err == nil {
			require.NoError(t, conn.Close(t.Context()))
		}
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	return database, u.String()
}

func TestErasureInAnExternalPostgresReportsDeniedSteps(t *testing.T) {
	t.Parallel()
	c := another(t)
	for whose, owning := range map[string]bool{"theirs": false, "ours": true} {
		t.Run("the database is "+whose, func(t *testing.T) {
			t.Parallel()
			database, asRole := books(t, c, whose, owning)
			data := t.TempDir()
			cmd := apptest.Command(t, data, "serve").With("DATABASE_URL="+asRole, "BAHI_DELETION_GRACE=1ms")
			p := apptest.Serve(t, cmd)
			p.Ready()
			o := apptest.Visited(p, data)
			asha := o.Person("asha@example.com")
			const schemas = `^(account|vault|river|users_g1|workspaces_g1)$`
			before, statistic := files(t, database, schemas), files(t, database, `^pg_catalog$`)["pg_catalog.pg_statistic"]

			asha.POST(apptest.Me+"/delete-request", nil).Status(200)
			const kept = `level=WARN msg="Postgres may keep values of erased people until it overwrites them" denied=`
			p.Until(func(said, _ string) bool {
				return strings.Contains(said, `msg="user erased" user=`+asha.User.ID) && strings.Contains(said, kept)
			})
			require.NotContains(t, p.Text(), "scrubbed Postgres of erased users")
			for table, file := range files(t, database, schemas) {
				require.NotEqual(t, before[table], file, table)
			}
			require.Equal(t, owning, files(t, database, `^pg_catalog$`)["pg_catalog.pg_statistic"] != statistic)

			o.WaitJobs("scrub_tables")
			done := o.Jobs("kind=scrub_tables")
			require.Len(t, done, 1)
			require.Equal(t, "completed", done[0].State)
			if done[0].Attempt != 1 { // a lock held for too long leads to a retry; a missing permission does not
				require.Contains(t, *done[0].LastError, "lock timeout")
			}
			require.NotNil(t, done[0].Report)
			for _, may := range []string{"pg_read_all_stats", "pg_checkpoint", "pg_switch_wal"} {
				require.Contains(t, *done[0].Report, may)
				require.Contains(t, p.Text(), may)
			}
			require.Equal(t, !owning, strings.Contains(*done[0].Report, "does not own the database"))
			require.NotContains(t, *done[0].Report, "write account.")
		})
	}
}
