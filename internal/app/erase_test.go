package app_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
	"bahi/internal/test/pgtest"
)

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
	data := pgtest.Dir(t)
	apptest.EndCluster(t, data)
	serving := func() *apptest.Process {
		cmd := apptest.Command(t, data, "serve").With("BAHI_DELETION_GRACE=1ms", "BAHI_ADMIN_EMAIL=office@example.org", "BAHI_LOG_LEVEL=DEBUG",
			"BAHI_LIMIT_AUTH=1000/1m", "BAHI_LIMIT_USERS_PICTURE=1000/1m")
		p := apptest.Serve(t, cmd)
		p.Ready()
		return p
	}
	p := serving()
	l := apptest.Live(t, p, data)
	require.Equal(t, "03-01 12.5", l.Books())
	require.Contains(t, l.Members(l.Asha.Workspace), "Brandywine")
	// A rebuild leaves the previous tables, and both tables' values in the planner's statistics.
	rebuild(t, data)
	apptest.Cluster(t, data, func(url string) {
		conn := pgtest.Connect(t, url)
		pgtest.Exec(t, conn, `analyze`)
		kept := strings.Join(append(l.Known.InFiles(data), l.Known.InDatabase(url)...), "\n")
		for _, text := range append(apptest.Addresses[:], "Zéphyrine", "Quillfeather", "Brandywine", "9765401234", "the stored picture") {
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

		require.Empty(t, l.Known.InDatabase(url))
		require.Empty(t, l.Known.InFiles(data))
	})
	require.Empty(t, l.Known.In("the server's log", []byte(p.Text())))
	require.Contains(t, l.Mailed("office@example.org", "An account is to be deleted", 1), l.Id)
	l.Person.GET("/api/v1/users/me").Status(401)
	members := l.Members(l.Workspace)
	require.NotContains(t, members, l.Id)
	require.NotContains(t, l.Members(l.Asha.Workspace), l.Id)
	require.Equal(t, "03-01 12.5", l.Books(), "the books stay")

	l.Anonymous().POST("/api/v1/auth/email-change/undo", map[string]string{"token": l.Undo}).Problem(400, "Invalid or expired undo token")

	rebuild(t, data)
	require.Equal(t, members, l.Members(l.Workspace))
	require.Equal(t, "03-01 12.5", l.Books())
	apptest.Healthy(t, apptest.Command(t, data, "doctor", "users", "workspaces", "books"))
	p.Stop()
	require.Empty(t, l.Known.InFiles(data), "nothing is left after the shutdown")

	again := apptest.Visited(serving(), data)
	require.Equal(t, apptest.Addresses[2], again.Person(apptest.Addresses[2]).Me().Email, "the address is free")
	again.Bearer(again.SignIn("asha@example.org", apptest.GoodPassword).Access).POST("/api/v1/workspaces/"+l.Asha.Workspace+"/invitations",
		fmt.Sprintf(`{"email":%q,"permissions":{"ledger":"read"}}`, apptest.Addresses[2])).Status(201)
	again.Mailed(apptest.Addresses[2], apptest.InviteSubject, 1)
}
