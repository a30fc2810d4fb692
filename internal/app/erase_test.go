package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
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
	"bahi/internal/test/feedtest"
	"bahi/internal/test/pgtest"
	"bahi/internal/test/worktest"
	"bahi/projections"
)

const (
	hookToken   = "a token of the gateway"
	herAddress  = "zephyrine.quill@example.org"
	herPhone    = "919765401234"
	herQuestion = "Marmalade-coloured bangles, please"
	herMessage  = "Is my quintessential nosepin ready"
	herItem     = "quandong"
	herOrder    = herItem + " 250 gm for Xylocarpa"
	herWork     = "Harpsichordist of the house"
)

// everywhere makes one person a user, a buyer, a contact of a company, a contact of a channel and a sender of orders. It returns the user
// to whose company the person wrote.
func everywhere(t *testing.T, o *apptest.Server) (seller apptest.Person) {
	t.Helper()
	seller = o.Person("seller@example.com")
	o.Person(herAddress).PUT(apptest.Me, `{"first_name":"Zéphyrine","last_name":"Brandywine","phone":"+`+herPhone+`"}`).Status(200)
	var company struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(seller.POST("/api/v1/companies", `{"name":"Asha Mills"}`).Status(201).Text), &company))
	o.Anonymous().POST("/api/v1/enquiries", fmt.Sprintf(`{"to_company_id":%q,"user_name":"Zéphyrine Brandywine","user_email":%q,`+
		`"user_phone":"+%s","message":%q}`,
		company.ID, herAddress, herPhone, herQuestion)).Status(201)
	o.Anonymous().POST("/api/v1/contacts", fmt.Sprintf(`{"first_name":"Zéphyrine","last_name":"Brandywine","email":%q,"phone":"+%s",`+
		`"company_id":%q,"designation":%q}`,
		herAddress, herPhone, company.ID, herWork)).Status(201)
	var channel struct{ ID int64 }
	made := seller.POST("/api/channels", `{"name":"Sales","type":"chat","settings":{"dialect":"envelope_v2","appName":"Mills"}}`).Status(201)
	require.NoError(t, json.Unmarshal([]byte(made.Text), &channel))
	o.Operator().POST(fmt.Sprintf("/ops/channels/%d/confirm", channel.ID), "").Status(200)
	call := o.Anonymous().With("X-Gateway-Token", hookToken)
	call.POST("/api/webhooks/gateway/incoming_msg", fmt.Sprintf(
		`{"app":"Mills","version":2,"type":"message","payload":{"id":"m1","source":%q,"type":"text","payload":{"text":%q},`+
			`"sender":{"name":"Zéphyrine Brandywine"}}}`, herPhone, herMessage)).Status(200)
	call.POST("/gateway_incoming_webhook", fmt.Sprintf(
		`{"type":"message","timestamp":%d,"payload":{"id":"o1","source":%q,"type":"text","payload":{"text":%q}}}`, time.Now().UnixMilli(),
		herPhone, herOrder)).Status(200)
	require.Eventually(t, func() bool {
		return strings.Contains(seller.GET("/api/contacts").Text, "Brandywine") && strings.Contains(o.Operator().GET("/order-drafts").Text,
			"Xylocarpa") &&
			!strings.Contains(seller.GET("/api/v1/enquiries").Text, `"status":"queued"`)
	}, time.Minute, 200*time.Millisecond) // the limit allows it that often
	return seller
}

// rebuild rebuilds the tables in which the person and the books are.
func rebuild(t *testing.T, data string) {
	t.Helper()
	for {
		_, wrong, status := apptest.Execute(t, apptest.Command(t, data, "projections", "rebuild", "users", "workspaces", "books"))
		if strings.Contains(wrong, "the projection is busy with a long transaction") {
			continue // a batch of the server took ten seconds, as on a busy machine; the command continues where it was
		}
		require.Equal(t, 0, status, wrong)
		return
	}
}

func TestErasedUserLeavesNoTrace(t *testing.T) {
	t.Parallel()
	broker, data := feedtest.Start(t), pgtest.Dir(t)
	apptest.EndCluster(t, data)
	serving := func() *apptest.Process {
		cmd := apptest.Command(t, data, "serve").With("BAHI_DELETION_GRACE=1ms", "BAHI_ADMIN_EMAIL=office@example.org", "BAHI_LOG_LEVEL=DEBUG",
			"BAHI_SCRUB_EVERY=1ms", "BAHI_LIMIT_AUTH=1000/1m", "BAHI_LIMIT_USERS_PICTURE=1000/1m", "FEED_URL="+broker.Address,
			"GATEWAY_WEBHOOK_TOKEN="+hookToken, "GATEWAY_ALLOWED_PHONES="+herPhone)
		p := apptest.Serve(t, cmd)
		p.Ready()
		return p
	}
	p := serving()
	l := apptest.Live(t, p, data)
	require.Equal(t, "03-01 12.5", l.Books())
	require.Contains(t, l.Members(l.Asha.Workspace), "Brandywine")
	seller := everywhere(t, l.Server)
	hers := []string{herAddress, "Brandywine", herPhone[2:], herQuestion, herMessage, herOrder, herItem, "Xylocarpa", herWork}
	l.Known.Know(hers...)
	// A rebuild leaves the previous tables, and both tables' values in the planner's statistics.
	rebuild(t, data)
	apptest.Cluster(t, data, func(url string) {
		conn := pgtest.Connect(t, url)
		pgtest.Exec(t, conn, `analyze`)
		kept := strings.Join(append(l.Known.InFiles(data), l.Known.InDatabase(url)...), "\n")
		for _, text := range append(append(hers, apptest.Addresses[:]...), "Zéphyrine", "Quillfeather", "the stored picture") {
			require.Contains(t, kept, ": "+text+"\n", "the search finds kept values")
		}
		require.Contains(t, kept, "pg_catalog.pg_statistic: "+apptest.Addresses[2])
		require.NotContains(t, kept, apptest.Marker, "the picture's metadata are never stored")
	})

	// A long transaction sees the old state of the tables.
	apptest.Cluster(t, data, func(url string) {
		reader := pgtest.Connect(t, url)
		pgtest.Exec(t, reader, `begin isolation level repeatable read; select count(*) from pg_class`)
		l.Person.POST("/api/v1/users/me/delete-request", nil).Status(200)
		p.Until(func(said, _ string) bool {
			return strings.Contains(said, `msg="erasure waits for older transactions to end"`)
		})
		pgtest.Exec(t, reader, `rollback`)
		p.Until(func(said, _ string) bool {
			return strings.Contains(said, `msg="user erased" user=`+l.Id) && strings.Contains(said, `msg="scrubbed Postgres of erased users"`)
		})
		// The operator erases a person of whom an address and a phone are known.
		l.Operator().POST("/ops/erasures", fmt.Sprintf(`{"email":%q,"phone":"+%s"}`, herAddress, herPhone)).Status(202)
		p.Until(func(said, _ string) bool { return strings.Count(said, `msg="user erased"`) == 2 })
		var left []string
		require.Eventually(t, func() bool {
			left = append(l.Known.InFiles(data), l.Known.InDatabase(url)...)
			return len(left) == 0
		}, 2*time.Minute, 500*time.Millisecond, "%q", &left)
	})
	require.Empty(t, l.Known.In("the server's log", []byte(p.Text())))
	require.Contains(t, l.Mailed("office@example.org", "An account is to be deleted", 1), l.Id)
	l.Person.GET("/api/v1/users/me").Status(401)
	members := l.Members(l.Workspace)
	require.NotContains(t, members, l.Id)
	require.NotContains(t, l.Members(l.Asha.Workspace), l.Id)
	require.Equal(t, "03-01 12.5", l.Books(), "the books stay")
	l.Bearer(l.SignIn("seller@example.com", apptest.GoodPassword).Access).GET("/api/v1/enquiries").Status(200).Contains(`"status":"pending"`)
	seller.GET("/api/contacts").Status(200)
	for _, m := range broker.Messages("BAHI", broker.Count("BAHI")) {
		require.Empty(t, l.Known.In("the feed's topic", m.Data()))
	}
	backup := filepath.Join(t.TempDir(), "backup")
	_, wrong, status := apptest.Execute(t, apptest.Command(t, data, "backup", backup))
	require.Zero(t, status, wrong)
	require.Empty(t, l.Known.InFiles(backup))
	url := pgtest.DB(t)
	_, wrong, status = apptest.Execute(t, apptest.Command(t, t.TempDir(), "restore", backup).With("DATABASE_URL="+url))
	require.Zero(t, status, wrong)
	require.Empty(t, l.Known.InDatabase(url), "a backup after it has nothing either")

	l.Anonymous().POST("/api/v1/auth/email-change/undo", map[string]string{"token": l.Undo}).Problem(400, "Invalid or expired undo token")

	rebuild(t, data)
	require.Equal(t, members, l.Members(l.Workspace))
	require.Equal(t, "03-01 12.5", l.Books())
	apptest.Healthy(t, apptest.Command(t, data, "doctor"))
	p.Stop()
	require.Empty(t, l.Known.InFiles(data), "nothing is left after the shutdown")

	again := apptest.Visited(serving(), data)
	require.Equal(t, apptest.Addresses[2], again.Person(apptest.Addresses[2]).Me().Email, "the address is free")
	again.Bearer(again.SignIn("asha@example.org", apptest.GoodPassword).Access).POST("/api/v1/workspaces/"+l.Asha.Workspace+"/invitations",
		fmt.Sprintf(`{"email":%q,"permissions":{"ledger":"read"}}`, apptest.Addresses[2])).Status(201)
	again.Mailed(apptest.Addresses[2], apptest.InviteSubject, 1)
}

// An ANALYZE by autovacuum holds a snapshot, and VACUUM FULL keeps the dead rows that it may see.
func TestScrubWaitsForAConcurrentAnalyze(t *testing.T) {
	t.Parallel()
	c := pgtest.Cluster(t)
	pool := pgtest.Pool(t, c.URL())
	holder := pgtest.Connect(t, c.URL())
	const name = "Ashapriya Raosaheb"
	for _, sql := range []string{
		`alter system set autovacuum = on`, `alter system set autovacuum_naptime = '1s'`, `select pg_reload_conf()`,
		`create schema account`, `create table account.person (name text)`, `insert into account.person values ('` + name + `')`,
		`create function slow(x int) returns int language plpgsql immutable as 'begin perform pg_advisory_xact_lock(42); return x; end'`,
		`create table slow (x int) with (autovacuum_analyze_threshold = 1, autovacuum_analyze_scale_factor = 0,
			autovacuum_vacuum_insert_threshold = -1)`,
		`create index on slow (slow(x))`, // an ANALYZE evaluates it
		`select pg_advisory_lock(42)`,
		`insert into slow select generate_series(1, 100)`, `select pg_stat_force_next_flush()`,
	} {
		pgtest.Exec(t, holder, sql)
	}
	require.Eventually(t, func() bool {
		return pgtest.Value[bool](t, pool, `
			select exists (select from pg_stat_activity where backend_type = 'autovacuum worker' and wait_event = 'advisory'
				and backend_xmin is not null)`)
	}, 2*time.Minute, 20*time.Millisecond)
	pgtest.Exec(t, pool, `delete from account.person`)

	said := make(told, 1)
	done := make(chan error, 1)
	sys := &app.System{Log: slog.New(slog.NewTextHandler(said, nil))}
	sys.Pool = pool
	go func() {
		_, err := app.Remains{System: sys}.Scrub(t.Context())
		done <- err
	}()
	select {
	case <-said: // it waits
	case err := <-done:
		require.NoError(t, err)
		t.Error("Scrub did not wait for the ANALYZE")
	}
	pgtest.Exec(t, holder, `select pg_advisory_unlock(42)`)
	if !t.Failed() {
		require.NoError(t, <-done)
	}
	var folder, file string
	require.NoError(t, pool.QueryRow(t.Context(),
		`select current_setting('data_directory'), pg_relation_filepath('account.person')`).Scan(&folder, &file))
	bytesOf := worktest.File(t, filepath.Join(folder, file))
	require.False(t, bytes.Contains(bytesOf, []byte(name)))
}

// told is a log that signals its first line.
type told chan struct{}

func (said told) Write(line []byte) (int, error) {
	select {
	case said <- struct{}{}:
	default:
	}
	return len(line), nil
}

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
