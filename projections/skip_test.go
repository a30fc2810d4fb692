package projections

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/subscriber"
	"bahi/eventstore"
)

// skip lets a follower skip an event, as the operators' command does.
func (r *rig) skip(t *testing.T, name string, version int, at event.Position) {
	t.Helper()
	skip := subscriber.Skip{Version: version, Position: at, Type: openedName, Reason: "written by a broken import"}
	for e, err := range r.store.ReadAll(t.Context(), at+1, eventstore.Backwards) {
		require.NoError(t, err)
		skip.EventID = e.ID
		break
	}
	decided, err := skip.Decide(subscriber.State{})
	require.NoError(t, err)
	require.Len(t, decided, 1)
	e, err := subscriber.Kind.Encode(uuid.New(), decided[0], event.Meta{Actor: "user:7"})
	require.NoError(t, err)
	_, err = r.store.Append(t.Context(), eventstore.To(subscriber.Kind.Stream(name), eventstore.Any, e))
	require.NoError(t, err)
}

func TestSkipUnparksAProjection(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var never atomic.Bool
	p := seen("seen", poisoned(&never))
	serving := r.serve(t, p)
	serving.until("seen", func(s Status) bool { return s.Ready })
	r.add(t, "Ant")
	serving.reached("seen", 1)
	r.add(t, "error", "Bee")
	r.parked(t, "seen")
	require.ErrorIs(t, ParkedAt(t.Context(), r.pool, p, 1), ErrNotParked)
	require.NoError(t, ParkedAt(t.Context(), r.pool, p, 2))
	require.Equal(t, "test", r.program(t))

	require.NoError(t, Retry(t.Context(), r.pool, p))
	require.EqualValues(t, 1, r.parked(t, "seen").Position, "a retry alone does not help")
	r.skip(t, "seen", 1, 2)
	require.NoError(t, Retry(t.Context(), r.pool, p))
	serving.reached("seen", r.head(t))
	require.Equal(t, []string{"Ant", "Bee"}, r.names(t, "seen"))
	r.exact(t, p)
	require.ErrorIs(t, Retry(t.Context(), r.pool, p), ErrNotParked)

	require.NoError(t, r.build(p).Run(t.Context()), "a rebuild of the same version skips it")
	require.Equal(t, []string{"Ant", "Bee"}, r.names(t, "seen"))
	next := seen("seen", poisoned(&never))
	next.Version = 2
	require.ErrorContains(t, r.build(next).Run(t.Context()), "division by zero", "a new version does not skip it")
	never.Store(true) // the event can be folded now
	require.NoError(t, Retry(t.Context(), r.pool, next))
	r.serve(t, next)
	r.goesLive(t, next, 3)
	var names int
	require.NoError(t, r.pool.QueryRow(t.Context(), `select count(*) from seen_g3.seen`).Scan(&names))
	require.Equal(t, 3, names)
}

// program returns the version of the program that recorded the error of the live generation.
func (r *rig) program(t *testing.T) (version string) {
	t.Helper()
	require.NoError(t, r.pool.QueryRow(t.Context(), `select error_program from projection.generation where live and error_type = $1`,
		openedName).Scan(&version))
	return version
}

func TestSkipUnparksABuild(t *testing.T) {
	t.Parallel()
	for name, parts := range map[string]int{"whole": 1, "in parts": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			var never atomic.Bool
			p := seen("seen", poisoned(&never)).PartitionedBy(func(e *event.Recorded[any]) (int64, bool) { return int64(e.Position), false })
			r.add(t, "Ant", "Bee", "error", "Cat")
			build := r.build(p)
			build.How.Partitions = parts
			require.ErrorContains(t, build.Run(t.Context()), "event BankAccountOpened at position 3: ERROR: division by zero")
			require.NoError(t, ParkedAt(t.Context(), r.pool, p, 3))
			r.skip(t, "seen", 1, 3)
			serving := r.serve(t, p)
			serving.reached("seen", 5)
			require.Equal(t, []string{"Ant", "Bee", "Cat"}, r.names(t, "seen"))
			r.exact(t, p)
		})
	}
}

func TestSkipUnparksAReactor(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exec(t, `create table public.effect (position bigint not null)`)
	mail := React("mail", []string{openedName}, func(ctx context.Context, tx pgx.Tx, events []event.Recorded[any]) error {
		for _, e := range events {
			if e.Position == 3 {
				return errors.New("no recipient")
			}
			if _, err := tx.Exec(ctx, `insert into effect values ($1)`, int64(e.Position)); err != nil {
				return err
			}
		}
		return nil
	})
	run := r.react(t, mail)
	run.until("mail", func(s Status) bool { return s.Ready && s.Working })
	r.add(t, "Ant", "Bee", "Cat", "Dog")
	soon(t, "the reactor is parked", func() bool { return ReactorParkedAt(t.Context(), r.pool, "mail", 3) == nil })
	require.ErrorIs(t, ReactorParkedAt(t.Context(), r.pool, "mail", 2), ErrNotParked)
	r.skip(t, "mail", 0, 3)
	require.NoError(t, RetryReactor(t.Context(), r.pool, "mail"))
	run.reached("mail", 5)
	rows, _ := r.pool.Query(t.Context(), `select position from effect order by 1`)
	effects, err := pgx.CollectRows(rows, pgx.RowTo[int])
	require.NoError(t, err)
	require.Equal(t, []int{1, 2, 4}, effects)
	require.ErrorIs(t, ReactorParkedAt(t.Context(), r.pool, "mail", 3), ErrNotParked)
}
