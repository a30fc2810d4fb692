package commands

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
)

// loseTail deletes the newest events of the log and cuts all connections, as a failover to a lagging replica does.
func loseTail(t *testing.T, pool *pgxpool.Pool, count int) {
	t.Helper()
	conn, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	_, err = conn.Exec(t.Context(), `delete from log.event where position > (select max(position) - $1 from log.event)`, count)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()
		and pid <> pg_backend_pid()`)
	require.NoError(t, err)
	pool.Reset() // otherwise a test would hit the broken connections one by one
}

// soon retries an operation that may fail while connections are reopened.
func soon(t *testing.T, what string, is func() bool) {
	t.Helper()
	require.Eventually(t, is, time.Minute, 10*time.Millisecond, what)
}

func TestACommandIsNotDecidedOnWhatTheLogHasLost(t *testing.T) {
	t.Parallel()
	pool := database(t)
	n := idle(t, pool).follow(t)
	n.make(t, "1", "x")
	_, err := Handle(t.Context(), n.Handler, as(t), things, "1", nameThing{Name: "y"})
	require.NoError(t, err)
	n.make(t, "2", "x")
	n.catchUp(t)
	loseTail(t, pool, 2)
	soon(t, "it is named once more", func() bool {
		out, err := Handle(t.Context(), n.Handler, as(t), things, "1", nameThing{Name: "y"})
		return err == nil && out.Changed
	})
	soon(t, "it is made once more", func() bool {
		_, err := Create(t.Context(), n.Handler, as(t), things, called("2"), makeThing{Name: "z"})
		return err == nil
	})
	require.Equal(t, []string{"ThingMade", "ThingNamed", "ThingMade"}, n.log(t))
}

// Followers of the log may receive the loss later.
func TestAnAppendThatIsGivenALostEventsPositionMakesWhatWasKnownForgotten(t *testing.T) {
	t.Parallel()
	pool := database(t)
	n := idle(t, pool).follow(t)
	n.make(t, "1", "x")
	_, err := Handle(t.Context(), n.Handler, as(t), things, "1", nameThing{Name: "y"})
	require.NoError(t, err)
	n.catchUp(t)
	held := make(chan struct{})
	defer close(held)
	n.store.set(func() { n.store.held = held })
	loseTail(t, pool, 1)
	fed := n.cache.position()
	var done eventstore.Appended
	soon(t, "something is appended", func() bool {
		e, err := things.Encode(newEventID(), made{Name: "z"}, event.Meta{})
		require.NoError(t, err)
		done, err = n.append(t.Context(), eventstore.To("thing-2", eventstore.NoStream, e))
		return err == nil
	})
	require.Equal(t, fed, done.Position)
	soon(t, "the log is read", func() bool {
		l, err := Load(t.Context(), n.Cached(), things, "1")
		if err == nil {
			require.Equal(t, "x", l.State.Name)
		}
		return err == nil
	})
	require.Less(t, n.cache.position(), done.Position)
}

func TestNumbersWhoseReservationTheLogHasLostAreNotGivenAgain(t *testing.T) {
	t.Parallel()
	pool := database(t)
	a, b := idle(t, pool).follow(t), idle(t, pool).follow(t)
	var given []int64
	take := func(n *node) {
		soon(t, "a number is given", func() bool {
			first, err := n.Numbers(t.Context(), "row", 1)
			if err == nil {
				given = append(given, first)
			}
			return err == nil
		})
	}
	take(a)
	take(b)
	a.catchUp(t)
	loseTail(t, pool, 1)
	soon(t, "both know it", func() bool {
		a.numbers.mu.Lock()
		defer a.numbers.mu.Unlock()
		b.numbers.mu.Lock()
		defer b.numbers.mu.Unlock()
		return a.numbers.lives > 0 && b.numbers.lives > 0
	})
	for range 3 {
		take(a)
		take(idle(t, pool)) // which knows no more than the log
		take(b)
	}
	all := a.reservations(t)
	for _, n := range given[2:] {
		require.Greater(t, n, int64(16), "the numbers given to b are in use")
		covered := 0
		for _, r := range all {
			if r.First <= n && n <= r.Last {
				covered++
			}
		}
		require.Equal(t, 1, covered, "the log knows that %d was given", n)
	}
	slices.Sort(given)
	require.Len(t, slices.Compact(slices.Clone(given)), len(given), "none twice: %v", given)
}
