package esdb_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/eventstore"
	"bahi/eventstore/storetest"
)

// loseTail deletes the newest events of the log behind a server. It cuts the server's connections to it, but not the clients'.
func (s *server) loseTail(t testing.TB, count int) {
	t.Helper()
	_, err := s.pool.Exec(t.Context(), `delete from log.event where position > (select max(position) - $1 from log.event)`, count)
	require.NoError(t, err)
	conn, err := s.pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	_, err = conn.Exec(t.Context(), `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`)
	require.NoError(t, err)
	s.pool.Reset() // otherwise the server would find its broken connections one by one and report an outage for each
}

func TestLogThatLosesItsNewestEvents(t *testing.T) {
	t.Parallel()
	storetest.Losing(t, func(t testing.TB) (storetest.Suite, func(int)) {
		s := newServer(t)
		return storetest.Suite{
			OpaquePositions: true, OneStream: true, AnyRetryFound: true, ConcurrentFirsts: true, EachUntold: true,
			Open: func(t testing.TB) (eventstore.Store, func()) {
				store := s.open(t, s.address)
				return store, store.Close
			},
		}, func(count int) { s.loseTail(t, count) }
	})
}
