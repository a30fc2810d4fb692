package pgtest

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

func connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close(context.WithoutCancel(t.Context()))) })
	return conn
}

func TestDatabasesAreEmptyAndApart(t *testing.T) {
	t.Parallel()
	one, two := connect(t, DB(t)), connect(t, DB(t))
	_, err := one.Exec(t.Context(), `create table mine (v int)`)
	require.NoError(t, err)
	_, err = two.Exec(t.Context(), `create table mine (v int)`)
	require.NoError(t, err, "the other database has no such table")
}

func TestTemplateWaitsForAConnectionThatMigrateLeftBehind(t *testing.T) {
	t.Parallel()
	var left *pgx.Conn
	url := Template(t, "left", func(ctx context.Context, url string) (err error) {
		left, err = pgx.Connect(ctx, url)
		time.AfterFunc(100*time.Millisecond, func() { _ = left.Close(context.WithoutCancel(ctx)) })
		return err
	})
	connect(t, url)
}

func TestDatabaseIsDroppedWithItsTest(t *testing.T) {
	t.Parallel()
	var url string
	t.Run("user", func(t *testing.T) {
		url = DB(t)
		// The connection that the test left open does not keep the database.
		conn, err := pgx.Connect(t.Context(), url)
		require.NoError(t, err)
		require.NoError(t, conn.Ping(t.Context()))
	})
	_, err := pgx.Connect(t.Context(), url)
	require.ErrorContains(t, err, "does not exist")
}

func TestDatabasesOfDeadProcessesAreSwept(t *testing.T) {
	t.Parallel()
	s := shared(t)
	dead := "test_4194305_1" // above the largest process number
	require.NoError(t, s.create(t.Context(), dead, "template1"))
	mine := DB(t)
	require.NoError(t, s.sweep(t.Context()))
	connect(t, mine)
	_, err := pgx.Connect(t.Context(), s.url(dead))
	require.ErrorContains(t, err, "does not exist")
}

func TestSharedClusterDoesNotSyncAndAPrivateOneDoes(t *testing.T) {
	t.Parallel()
	private := Cluster(t)
	for url, want := range map[string]string{DB(t): "off off 1000", private.URL(): "on on 400"} {
		var got string
		require.NoError(t, connect(t, url).QueryRow(t.Context(), `select concat_ws(' ', current_setting('fsync'),
			current_setting('synchronous_commit'), current_setting('max_connections'))`).Scan(&got))
		require.Equal(t, want, got)
	}
}
