package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/internal/test/journaltest"
	"bahi/internal/test/pgtest"
)

// queued appends in the background. It returns once the queue has `waiting` appends.
func queued(ctx context.Context, t *testing.T, s *Store, waiting int, r eventstore.Transaction) <-chan eventstore.Result {
	t.Helper()
	answer := make(chan eventstore.Result, 1)
	go func() { answer <- s.AppendEach(ctx, []eventstore.Transaction{r})[0] }()
	queueHas(t, s, waiting)
	return answer
}

func queueHas(t *testing.T, s *Store, waiting int) {
	t.Helper()
	require.Eventually(t, func() bool { return len(s.appender.queue) == waiting }, time.Minute, time.Millisecond)
}

// held returns a store whose first append waits for the lock, so the next appends form one group.
func held(t *testing.T, url string) (s *Store, first <-chan eventstore.Result, unlock func()) {
	t.Helper()
	s = newStore(t, url)
	must(t, s, "taken-1", makes(1)...)
	unlock = lock(t, url)
	first = queued(t.Context(), t, s, 0, eventstore.To("first-1", eventstore.Any, makes(1)...))
	waitersForLock(t, url, 1)
	return s, first, unlock
}

// Go's decoder accepts the payload, and Postgres does not.
func TestAppendThatPostgresRefusesDoesNotFailItsGroup(t *testing.T) {
	t.Parallel()
	url := newLog(t)
	conn := connect(t, url)
	sql(t, url, `alter database `+pgx.Identifier{conn.Config().Database}.Sanitize()+` set max_stack_depth = '100kB'`)
	deep := made(uuid.New())
	deep.Data = []byte(strings.Repeat("[", 9000) + strings.Repeat("]", 9000))
	s, first, unlock := held(t, url)
	before := queued(t.Context(), t, s, 1, eventstore.To("good-1", eventstore.NoStream, makes(3)...))
	refused := queued(t.Context(), t, s, 2, eventstore.To("deep-1", eventstore.NoStream, makes(1)[0], deep))
	after := queued(t.Context(), t, s, 3, eventstore.To("good-2", eventstore.Any, makes(1)...))
	unlock()
	require.NoError(t, (<-first).Err)
	require.NoError(t, (<-before).Err)
	require.ErrorIs(t, (<-refused).Err, eventstore.ErrBadEvent)
	require.NoError(t, (<-after).Err)
	require.Len(t, wholeLog(t, s), 2+3+1)
}

func TestFullQueueBlocksCallers(t *testing.T) {
	t.Parallel()
	s, first, unlock := held(t, newLog(t))
	results := make(chan eventstore.Result, 2*maxWaiting)
	var all sync.WaitGroup
	for range maxWaiting {
		r := eventstore.To("queue-"+uuid.NewString(), eventstore.NoStream, makes(1)...)
		all.Go(func() { results <- s.AppendEach(t.Context(), []eventstore.Transaction{r})[0] })
	}
	queueHas(t, s, maxWaiting)

	ctx, cancel := context.WithCancel(t.Context())
	outside := queued(ctx, t, s, maxWaiting, eventstore.To("outside-1", eventstore.NoStream, makes(1)...))
	later := queued(t.Context(), t, s, maxWaiting, eventstore.To("later-1", eventstore.NoStream, makes(1)...))
	cancel()
	require.ErrorIs(t, (<-outside).Err, context.Canceled)
	require.Empty(t, later)

	unlock()
	require.NoError(t, (<-first).Err)
	require.NoError(t, (<-later).Err)
	all.Wait()
	for range maxWaiting {
		require.NoError(t, (<-results).Err)
	}
	log := wholeLog(t, s)
	require.Len(t, log, maxWaiting+3)
	for _, e := range log {
		require.NotEqual(t, "outside-1", e.Stream)
	}
}

func TestCancelledCallerReturnsAtOnce(t *testing.T) {
	t.Parallel()
	s, first, unlock := held(t, newLog(t))
	ctx, cancel := context.WithCancel(t.Context())
	gone := queued(ctx, t, s, 1, eventstore.To("gone-1", eventstore.NoStream, makes(1)...))
	stays := queued(t.Context(), t, s, 2, eventstore.To("stays-1", eventstore.NoStream, makes(1)...))
	cancel()
	require.ErrorIs(t, (<-gone).Err, context.Canceled, "while the log is still locked")
	unlock()
	require.NoError(t, (<-first).Err)
	require.NoError(t, (<-stays).Err)
	require.Len(t, wholeLog(t, s), 3)
}

func TestLockTimeoutFailsTheAppend(t *testing.T) {
	t.Parallel()
	for _, beside := range []bool{false, true} {
		url := newLog(t)
		hasty := defaultTimeouts
		hasty.lock = 50 * time.Millisecond
		s := newStoreWith(t, url, hasty)
		must(t, s, "a-1", makes(1)...)
		if beside {
			appendBeside(t, url, s)
		}
		head := len(wholeLog(t, s))
		unlock := lock(t, url)
		for i := range 3 {
			_, err := s.Append(t.Context(), eventstore.To(fmt.Sprint("b-", i), eventstore.NoStream, makes(1)...))
			require.ErrorIs(t, err, eventstore.ErrUnavailable)
		}
		unlock()
		must(t, s, "a-1", makes(1)...)
		require.Len(t, wholeLog(t, s), head+1)
	}
}

// appendBeside appends with another store, which s notices.
func appendBeside(t *testing.T, url string, s *Store) {
	t.Helper()
	must(t, newStore(t, url), "beside-1", makes(1)...)
	must(t, s, "beside-2", makes(1)...)
}

// Beside another process, a group has the appends that arrived while that process held the log's lock, even if the connection is lost
// meanwhile.
func TestAGroupIsChosenAfterTheLock(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		url := newLog(t)
		s := newStore(t, url)
		must(t, s, "a-1", makes(1)...)
		appendBeside(t, url, s)
		unlock := lock(t, url)
		first := queued(t.Context(), t, s, 1, eventstore.To("first-1", eventstore.NoStream, makes(1)...))
		waitersForLock(t, url, 1)
		second := queued(t.Context(), t, s, 2, eventstore.To("second-1", eventstore.NoStream, makes(1)...))
		if lost {
			sql(t, url, `select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and not granted
				and database = (select oid from pg_database where datname = current_database())`)
			queueHas(t, s, 0)
			waitersForLock(t, url, 1)
		}
		unlock()
		one, two := <-first, <-second
		require.NoError(t, one.Err)
		require.NoError(t, two.Err)
		require.Equal(t, one.At, two.At, "a group has one time")
		require.Equal(t, one.Position+1, two.Position)
	}
}

// A caller may append to an existing stream as if it were new.
func TestAStreamThatExistsIsNotBegunAgain(t *testing.T) {
	t.Parallel()
	url := newLog(t)
	must(t, newStore(t, url), "a-1", makes(1)...)
	s := newStore(t, url)
	var head event.Position
	for range calm + 2 {
		head = must(t, s, "b-1", makes(1)...).Position
	}
	all := []eventstore.Transaction{
		eventstore.To("c-1", eventstore.NoStream, makes(2)...), eventstore.To("a-1", eventstore.NoStream, makes(1)...),
		eventstore.To("d-1", eventstore.NoStream, makes(1)...),
	}
	for i := range all {
		all[i].AsOf = head
	}
	results := s.AppendEach(t.Context(), all)
	require.Equal(t, &eventstore.WrongRevision{Stream: "a-1", Expected: eventstore.NoStream}, results[1].Err)
	require.NoError(t, results[0].Err)
	require.NoError(t, results[2].Err)
	require.Len(t, wholeLog(t, s), 1+calm+2+3)
}

// A postponed transaction blocks later ones on its streams, so small ones do not starve it.
func TestALargeTransactionIsNotOvertakenOnItsStreams(t *testing.T) {
	t.Parallel()
	s, first, unlock := held(t, newLog(t))
	large := eventstore.To("a-1", eventstore.NoStream, makes(maxGroupEvents+1)...)
	large.Checks = []eventstore.Check{{Stream: "b-1", Expected: eventstore.NoStream}}
	small := queued(t.Context(), t, s, 1, eventstore.To("c-1", eventstore.NoStream, makes(1)...))
	whole := queued(t.Context(), t, s, 2, large)
	later := queued(t.Context(), t, s, 3, eventstore.To("b-1", eventstore.NoStream, makes(1)...))
	beside := queued(t.Context(), t, s, 4, eventstore.To("d-1", eventstore.NoStream, makes(1)...))
	unlock()
	var at []event.Position
	for _, answer := range []<-chan eventstore.Result{first, small, beside, whole, later} {
		r := <-answer
		require.NoError(t, r.Err)
		at = append(at, r.Position)
	}
	require.True(t, slices.IsSorted(at), "%v", at)
}

// A group's commit waits. No caller has a result yet, not even one that does not write the group.
func TestAnswersWaitForTheCommit(t *testing.T) {
	t.Parallel()
	for _, with := range []bool{false, true} {
		url := newLog(t)
		sql(t, url, `
			create function wait_late() returns trigger language plpgsql as $$
			begin
			  if new.stream like 'late-%' then perform pg_advisory_xact_lock(77); end if;
			  if new.stream like 'early-%' then perform pg_advisory_xact_lock(78); end if;
			  return null;
			end $$;
			create constraint trigger wait_late after insert on log.event deferrable initially deferred
			for each row execute function wait_late()`)
		s := newStore(t, url)
		if with {
			s.Close()
			s = journaled(t, url, journaltest.New())
		}
		must(t, s, "taken-1", makes(1)...)
		holder, unlock := connect(t, url), lock(t, url)
		pgtest.Exec(t, holder, `select pg_advisory_lock(77)`)
		first := queued(t.Context(), t, s, 0, eventstore.To("first-1", eventstore.NoStream, makes(1)...))
		waitersForLock(t, url, 1)
		one := queued(t.Context(), t, s, 1, eventstore.To("late-1", eventstore.NoStream, makes(1)...))
		other := queued(t.Context(), t, s, 2, eventstore.To("late-2", eventstore.NoStream, makes(1)...))
		unlock()
		require.NoError(t, (<-first).Err)
		waitersForLock(t, url, 1)
		require.Empty(t, one)
		require.Empty(t, other)
		pgtest.Exec(t, holder, `select pg_advisory_unlock(77)`)
		require.NoError(t, (<-one).Err)
		require.NoError(t, (<-other).Err)
		require.Len(t, wholeLog(t, s), 4)

		for n := range calm + 2 { // then the appender inserts validated groups without the log's lock
			must(t, s, fmt.Sprintf("calm-%d", n), makes(1)...)
		}
		pgtest.Exec(t, holder, `select pg_advisory_lock(77), pg_advisory_lock(78)`)
		first = queued(t.Context(), t, s, 0, eventstore.To("early-1", eventstore.NoStream, makes(1)...))
		waitersForLock(t, url, 1)
		one = queued(t.Context(), t, s, 1, eventstore.To("late-1", 0, makes(1)...))
		other = queued(t.Context(), t, s, 2, eventstore.To("late-2", 0, makes(1)...))
		pgtest.Exec(t, holder, `select pg_advisory_unlock(78)`)
		require.NoError(t, (<-first).Err)
		waitersForLock(t, url, 1)
		require.Empty(t, one)
		require.Empty(t, other)
		pgtest.Exec(t, holder, `select pg_advisory_unlock(77)`)
		require.NoError(t, (<-one).Err)
		require.NoError(t, (<-other).Err)
	}
}
