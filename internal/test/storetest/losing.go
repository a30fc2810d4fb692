package storetest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
)

// Losing checks a log that loses its newest events while nodes use it, as in a failover to a lagging server. Each sentence has its own log
// from fresh; lose deletes the newest events and cuts all connections.
func Losing(t *testing.T, fresh func(t testing.TB) (s Suite, lose func(count int))) {
	t.Helper()
	for _, c := range []struct {
		says string
		test func(*loser, *testing.T)
	}{
		{"a reader of lost events gets ErrTailLost and nothing more", (*loser).tellsTheReader},
		{"a reader of lost events gets ErrTailLost even after their positions have new events", (*loser).tellsTheReaderLate},
		{"a reader before the lost events continues with the new ones", (*loser).goesOn},
		{"appends continue at the new end", (*loser).appends},
	} {
		t.Run(c.says, func(t *testing.T) {
			t.Parallel()
			s, lose := fresh(t)
			c.test(&loser{s.node(t), lose}, t)
		})
	}
}

// loser is a node of a log that can lose its newest events.
type loser struct {
	*node

	lose func(count int)
}

// filled appends events to separate streams, one after the other, and returns their positions. It retries while the log is
// unreachable.
func (l *loser) filled(t *testing.T, count int) (at []event.Position) {
	t.Helper()
	for len(at) < count {
		done, err := l.append(t, stream(), eventstore.NoStream, one())
		require.NoError(t, err)
		at = append(at, done.Position)
	}
	return at
}

// reader follows the log. ended returns its last position and the error that ended its subscription.
func (l *loser) reader(ctx context.Context, t *testing.T, after, upTo event.Position) (there <-chan struct{},
	ended func() (event.Position, error)) {
	t.Helper()
	reached, end := make(chan struct{}), make(chan error, 1)
	last := after
	go func() {
		for batch, err := range l.Subscribe(ctx, after) {
			if err != nil {
				end <- err
				return
			}
			if last < upTo && batch.UpTo >= upTo {
				close(reached)
			}
			last = batch.UpTo
		}
	}()
	return reached, func() (event.Position, error) {
		err := <-end
		return last, err
	}
}

// told returns the final error of a reader. Like a reader, it subscribes again if the connection was lost.
func (l *loser) told(ctx context.Context, err error, last event.Position) error {
	for err != nil && ctx.Err() == nil && !errors.Is(err, eventstore.ErrTailLost) {
		for batch, failed := range l.Subscribe(ctx, last) {
			if err = failed; err == nil && batch.UpTo > last {
				return nil
			}
		}
	}
	return err
}

func (l *loser) tellsTheReader(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	at := l.filled(t, 20)
	there, ended := l.reader(ctx, t, 0, at[19])
	within(t, there, "the reader reaches the end")
	l.lose(5)
	last, err := ended()
	require.Equal(t, at[19], last)
	require.ErrorIs(t, l.told(ctx, err, last), eventstore.ErrTailLost)
	require.ErrorIs(t, ends(l.another(t).Subscribe(ctx, last)), eventstore.ErrTailLost, "a new subscription detects it too")
}

func (l *loser) tellsTheReaderLate(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	at := l.filled(t, 20)
	there, ended := l.reader(ctx, t, 0, at[19])
	within(t, there, "the reader reaches the end")
	l.lose(5)
	(&loser{l.another(t), nil}).filled(t, 12)
	last, err := ended()
	require.Error(t, err)
	require.Equal(t, at[19], last, "the reader skipped an event that replaced a lost one")
}

func (l *loser) goesOn(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	at := l.filled(t, 20)
	var got []event.Stored
	given, lost := make(chan struct{}), make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for last := at[4]; len(got) < 13 && ctx.Err() == nil; { // ten that remain, and three new ones
			for batch, err := range l.Subscribe(ctx, last) {
				if err != nil {
					break // the connection was lost
				}
				if len(got) == 0 && len(batch.Events) > 0 {
					close(given)
					<-lost
					some := batch.Events[:min(3, len(batch.Events))] // processes some of them, and subscribes again
					got, last = slices.Clone(some), some[len(some)-1].Position
					break
				}
				if got, last = append(got, batch.Events...), batch.UpTo; len(got) >= 13 {
					break
				}
			}
		}
	}()
	within(t, given, "the reader gets a batch")
	l.lose(5)
	close(lost)
	l.filled(t, 3)
	within(t, done, "the reader sees the new events")
	var all []event.Stored
	require.Eventually(t, func() bool { // some of the pool's connections may still be broken
		all = nil
		for e, err := range l.ReadAll(ctx, at[4], eventstore.Forwards) {
			if err != nil {
				return false
			}
			all = append(all, e)
		}
		return true
	}, patience, time.Millisecond)
	require.Equal(t, all, got)
}

func (l *loser) appends(t *testing.T) {
	s := stream()
	kept := l.must(t, s, eventstore.NoStream, one())
	gone := some(2)
	l.must(t, s, 0, gone...)
	require.Greater(t, l.head(t), kept.Position)
	l.lose(2)
	require.Eventually(t, func() bool {
		head, err := l.Head(t.Context())
		return err == nil && head == kept.Position
	}, patience, 10*time.Millisecond, "the head is at the end of the log")
	var wrong *eventstore.WrongRevision
	_, err := l.append(t, s, 2, one())
	require.ErrorAs(t, err, &wrong)
	require.EqualValues(t, 0, wrong.Actual)
	done, err := l.append(t, s, 0, one())
	require.NoError(t, err)
	require.EqualValues(t, 1, done.Revision)
	require.Equal(t, kept.Position+1, done.Position)
	head, err := until(t, func() (event.Position, error) { return l.Head(t.Context()) })
	require.NoError(t, err)
	require.Equal(t, done.Position, head)
	again, err := l.append(t, s, 0, gone...)
	require.ErrorAs(t, err, &wrong, "a lost append was taken for a repetition: %+v", again)
}

// append retries, because one connection after another turns out to be cut.
func (l *loser) append(t *testing.T, stream string, expected eventstore.Expected, events ...event.Proposed) (eventstore.Appended, error) {
	t.Helper()
	return until(t, func() (eventstore.Appended, error) {
		return l.Append(t.Context(), eventstore.To(stream, expected, events...))
	})
}

// until retries while the log is unreachable.
func until[T any](t *testing.T, try func() (T, error)) (got T, err error) {
	t.Helper()
	require.Eventually(t, func() bool {
		got, err = try()
		return !errors.Is(err, eventstore.ErrUnavailable)
	}, patience, time.Millisecond)
	return got, err
}
