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

// Losing checks what holds when a log loses its newest events under its nodes, as in a failover to a server that was
// behind. Each sentence has a log of its own, which fresh makes; lose takes the newest events out of it, and cuts
// whatever is connected.
func Losing(t *testing.T, fresh func(t testing.TB) (s Suite, lose func(count int))) {
	t.Helper()
	for _, c := range []struct {
		says string
		test func(*loser, *testing.T)
	}{
		{"who was given what is gone is told so, and given nothing more", (*loser).tellsTheReader},
		{"who was given what is gone is told so, also when others have taken its place", (*loser).tellsTheReaderLate},
		{"who was given nothing of what is gone goes on with what takes its place", (*loser).goesOn},
		{"the log goes on where it ends now", (*loser).appends},
	} {
		t.Run(c.says, func(t *testing.T) {
			t.Parallel()
			s, lose := fresh(t)
			c.test(&loser{s.node(t), lose}, t)
		})
	}
}

// loser is a node on a log that can lose its newest events.
type loser struct {
	*node

	lose func(count int)
}

// filled appends events to streams of their own, one after the other, and answers their positions. Where the log is away
// for a moment, it tries again.
func (l *loser) filled(t *testing.T, count int) (at []event.Position) {
	t.Helper()
	for len(at) < count {
		done, err := l.append(t, stream(), eventstore.NoStream, one())
		require.NoError(t, err)
		at = append(at, done.Position)
	}
	return at
}

// reader follows the log, and answers what it was given when its subscription ends with an error.
func (l *loser) reader(ctx context.Context, t *testing.T, after, upTo event.Position) (there <-chan struct{}, ended func() (event.Position, error)) {
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

// told returns what a subscription ends with for good. One that ends with its connection is begun again, as readers do.
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
	within(t, there, "the reader comes to the end")
	l.lose(5)
	last, err := ended()
	require.Equal(t, at[19], last)
	require.ErrorIs(t, l.told(ctx, err, last), eventstore.ErrTailLost)
	require.ErrorIs(t, ends(l.another(t).Subscribe(ctx, last)), eventstore.ErrTailLost, "a node that has just started knows it too")
}

func (l *loser) tellsTheReaderLate(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	at := l.filled(t, 20)
	there, ended := l.reader(ctx, t, 0, at[19])
	within(t, there, "the reader comes to the end")
	l.lose(5)
	(&loser{l.another(t), nil}).filled(t, 12)
	last, err := ended()
	require.Error(t, err)
	require.Equal(t, at[19], last, "what stands in the place of what it was given is not passed over")
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
		for last := at[4]; len(got) < 13 && ctx.Err() == nil; { // ten that are left, and three that come
			for batch, err := range l.Subscribe(ctx, last) {
				if err != nil {
					break // its connection was lost
				}
				if len(got) == 0 && len(batch.Events) > 0 {
					close(given)
					<-lost
					some := batch.Events[:min(3, len(batch.Events))] // it deals with them, and begins again
					got, last = slices.Clone(some), some[len(some)-1].Position
					break
				}
				if got, last = append(got, batch.Events...), batch.UpTo; len(got) >= 13 {
					break
				}
			}
		}
	}()
	within(t, given, "the reader is given something")
	l.lose(5)
	close(lost)
	l.filled(t, 3)
	within(t, done, "the reader sees what takes the place of what is gone")
	require.Equal(t, collect(t, l.ReadAll(ctx, at[4], eventstore.Forwards)), got)
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
	}, patience, 10*time.Millisecond, "the head is where the log ends")
	var wrong *eventstore.WrongRevision
	_, err := l.append(t, s, 2, one())
	require.ErrorAs(t, err, &wrong)
	require.EqualValues(t, 0, wrong.Actual)
	done, err := l.append(t, s, 0, one())
	require.NoError(t, err)
	require.EqualValues(t, 1, done.Revision)
	if !l.suite.OpaquePositions {
		require.Equal(t, kept.Position+1, done.Position)
	}
	head, err := until(t, func() (event.Position, error) { return l.Head(t.Context()) })
	require.NoError(t, err)
	require.Equal(t, done.Position, head)
	again, err := l.append(t, s, 0, gone...)
	require.ErrorAs(t, err, &wrong, "what is gone was not appended: %+v", again)
}

// append appends, though one connection after the other turns out to have been cut.
func (l *loser) append(t *testing.T, stream string, expected eventstore.Expected, events ...event.New) (eventstore.Appended, error) {
	t.Helper()
	return until(t, func() (eventstore.Appended, error) { return l.Append(t.Context(), stream, expected, events...) })
}

// until tries again as long as the log is away.
func until[T any](t *testing.T, try func() (T, error)) (got T, err error) {
	t.Helper()
	require.Eventually(t, func() bool {
		got, err = try()
		return !errors.Is(err, eventstore.ErrUnavailable)
	}, patience, time.Millisecond)
	return got, err
}
