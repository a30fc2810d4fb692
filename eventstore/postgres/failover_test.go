package postgres

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
)

// loseTail deletes a log's newest events and cuts all connections, as a failover to a replica that lags behind does.
func loseTail(t testing.TB, url string, count int) {
	t.Helper()
	admin := connect(t, url)
	_, err := admin.Exec(t.Context(), `delete from log.event where position > (select max(position) - $1 from log.event)`, count)
	require.NoError(t, err)
	_, err = admin.Exec(t.Context(), `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()
		and pid <> pg_backend_pid()`)
	require.NoError(t, err)
}

func TestLogThatLosesItsNewestEvents(t *testing.T) {
	t.Parallel()
	losing(t, func(t testing.TB) (suite, func(int)) {
		url := newLog(t)
		return suite{Open: func(t testing.TB) (eventstore.Store, func()) {
			s := newStore(t, url)
			return s, s.Close
		}}, func(count int) { loseTail(t, url, count) }
	})
}

// An asynchronous replica that lacks the newest events takes over. Positions continue without a gap, and readers
// get none of the lost events.
func TestLaggingReplicaTakesOver(t *testing.T) {
	t.Parallel()
	url := newLog(t)
	s := newStore(t, url)
	for n := range 40 {
		done, err := s.Append(t.Context(), eventstore.To(fmt.Sprintf("row-%d", n), eventstore.NoStream, made(uuid.New())))
		require.NoError(t, err)
		require.EqualValues(t, n+1, done.Position)
	}
	loseTail(t, url, 5)
	require.Eventually(t, func() bool {
		_, known := s.tail.after(33, new(int))
		return !known
	}, time.Minute, time.Millisecond, "the lost events remain in the tail")

	got := make(chan []event.Stored)
	go func() {
		var all []event.Stored
		for at := event.Position(30); at < 42; { // the pool's first connections are broken
			for batch, err := range s.Subscribe(t.Context(), at) {
				if all = append(all, batch.Events...); err == nil {
					at = batch.UpTo
				}
				if err != nil || at >= 42 {
					break
				}
			}
			if t.Context().Err() != nil {
				break
			}
		}
		got <- all
	}()
	for n := 40; n < 47; n++ {
		done, err := s.Append(t.Context(), eventstore.To(fmt.Sprintf("row-%d", n), eventstore.NoStream, made(uuid.New())))
		require.NoError(t, err)
		require.EqualValues(t, n-4, done.Position)
	}
	all := <-got
	s.pool.Reset()
	require.Equal(t, wholeLog(t, s)[30:], all)
}

// A state read from lost events is not trusted, even if the log has other events at their positions by now.
func TestExpectationsOfLostEventsAreLookedUp(t *testing.T) {
	t.Parallel()
	url := newLog(t)
	s := newStore(t, url)
	must(t, s, "row-1", made(uuid.New()))
	for range calm + 3 {
		must(t, s, "row-2", made(uuid.New()))
	}
	lost := must(t, s, "row-1", made(uuid.New()))
	loseTail(t, url, 1)
	for range 2 * calm { // now as many as were there
		_, err := s.Append(t.Context(), eventstore.To("row-2", eventstore.Any, made(uuid.New())))
		require.NoError(t, err)
		x := eventstore.To("row-1", 1, made(uuid.New()))
		x.AsOf = lost.Position
		_, err = s.Append(t.Context(), x)
		var wrong *eventstore.WrongRevision
		require.ErrorAs(t, err, &wrong)
		require.Zero(t, wrong.Actual)
	}
}

// A subscriber that reads from the database recognizes the replaced event by its id, even if no connection was lost.
func TestFollowerDetectsAnotherEventAtItsPosition(t *testing.T) {
	t.Parallel()
	url := newLog(t)
	s, other := newStore(t, url), newStore(t, url)
	for range 20 {
		must(t, s, "row-1", made(uuid.New()))
	}
	there, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		for batch, err := range s.Subscribe(t.Context(), 0) {
			switch {
			case err != nil:
				ended <- err
			case batch.UpTo == 20:
				close(there)
			case batch.UpTo > 20:
				ended <- fmt.Errorf("it received the successors of another event: %d", batch.UpTo)
				return
			}
		}
	}()
	<-there
	_, err := connect(t, url).Exec(t.Context(), `delete from log.event where position > 18`)
	require.NoError(t, err)
	for range 4 {
		must(t, other, "row-2", made(uuid.New()))
	}
	require.ErrorIs(t, <-ended, eventstore.ErrTailLost)
}
