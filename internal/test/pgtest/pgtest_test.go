package pgtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
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

func migrate(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, `create table seeded (v int); insert into seeded values (1)`)
	return errors.Join(err, conn.Close(ctx))
}

func TestDatabasesAreEmptyAndApart(t *testing.T) {
	t.Parallel()
	one, two := connect(t, DB(t)), connect(t, DB(t))
	_, err := one.Exec(t.Context(), `create table mine (v int)`)
	require.NoError(t, err)
	_, err = two.Exec(t.Context(), `create table mine (v int)`)
	require.NoError(t, err, "the other database has no such table")
}

// rounds distinguishes the rounds of go test -count: a template lives as long as its process.
var rounds atomic.Int32

func TestTemplateIsMigratedOnceAndCopiedForEach(t *testing.T) {
	t.Parallel()
	name := fmt.Sprintf("once %d", rounds.Add(1))
	var runs atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			url := Template(t, name, func(ctx context.Context, url string) error {
				runs.Add(1)
				return migrate(ctx, url)
			})
			conn, err := pgx.Connect(t.Context(), url)
			if err == nil {
				_, err = conn.Exec(t.Context(), `update seeded set v = v + 1; do $$ begin assert (select v from seeded) = 2; end $$`)
				err = errors.Join(err, conn.Close(t.Context()))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, runs.Load())
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
