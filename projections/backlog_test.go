package projections

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
)

// backlog measures a projection whose status and clock the test sets.
type backlog struct {
	Backlog

	t      *testing.T
	status Status
	now    time.Time
}

func newBacklog(t *testing.T) *backlog {
	b := &backlog{t: t, status: Status{Ready: true}, now: time.Unix(0, 0)}
	b.MaxWait = time.Second
	b.Statuses = func() map[string]Status { return map[string]Status{"books": b.status} }
	return b
}

// goesOn advances the clock by seconds. Each second the log grows by 10 events, and the projection folds the given number.
func (b *backlog) goesOn(seconds int, folds event.Position) {
	for range seconds * 10 {
		b.now = b.now.Add(time.Second / 10)
		head := event.Position(b.now.Unix()) * 10
		b.status.Position = min(b.status.Position+folds, head)
		b.measure(head, b.now)
	}
}

func (b *backlog) admits() error {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Millisecond)
	defer cancel()
	return b.Admit(ctx, "books")
}

// admit runs the check that a write runs before its append.
func admit(t *testing.T, b *Backlog) error {
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	return b.Admit(ctx, "seen")
}

// asked counts the reads of the log's head.
type asked struct {
	eventstore.Store

	heads atomic.Int64
}

func (s *asked) Head(ctx context.Context) (event.Position, error) {
	s.heads.Add(1)
	return s.Store.Head(ctx)
}

func TestBacklogAsksNothingOfTheLogWithoutWrites(t *testing.T) {
	t.Parallel()
	store := &asked{Store: newFixture(t).store}
	b := &Backlog{Store: store, Statuses: func() map[string]Status { return nil }, Now: time.Now}
	ctx, stop := context.WithCancel(t.Context())
	measured := make(chan error, 1)
	go func() { measured <- b.Run(ctx) }()
	<-time.After(10 * measureInterval)
	require.Zero(t, store.heads.Load())
	require.NoError(t, admit(t, b))
	soon(t, "a write makes it measure", func() bool { return store.heads.Load() > 0 })
	stop()
	require.NoError(t, <-measured)
}

func TestBacklogAdmitsWritesOfAProjectionThatKeepsUp(t *testing.T) {
	t.Parallel()
	b := newBacklog(t)
	b.goesOn(20, 10)
	require.NoError(t, b.admits())
	require.Less(t, len(b.marks), 5, "old marks are dropped")
}

func TestBacklogMeasuresTheLagOfAnotherProcessWhenItsPositionWasRead(t *testing.T) {
	t.Parallel()
	b := newBacklog(t)
	b.goesOn(1, 10)
	b.status.ReadAt = b.now
	b.measure(100, b.now)
	b.now = b.now.Add(time.Second / 5)
	b.measure(200, b.now)
	require.NoError(t, b.admits(), "it may have folded the events since")
	b.status.ReadAt = b.now
	b.measure(200, b.now)
	require.ErrorIs(t, b.admits(), context.DeadlineExceeded, "it has not")
	b.now = b.now.Add(time.Second / 10)
	b.measure(200, b.now)
	require.NoError(t, b.admits(), "it may have since")
}

func TestBacklogDelaysWritesOfALaggingProjection(t *testing.T) {
	t.Parallel()
	b := newBacklog(t)
	b.goesOn(1, 10)
	b.now = b.now.Add(10 * time.Second)
	b.measure(1000, b.now)
	for range 20 { // it folds slower than the writes
		b.now, b.status.Position = b.now.Add(time.Second/10), b.status.Position+1
		b.measure(1000, b.now)
	}
	require.ErrorIs(t, b.admits(), context.DeadlineExceeded, "the write is delayed")
	require.NoError(t, b.Admit(t.Context(), "users"), "writes for other projections are not")
	require.ErrorIs(t, b.Admit(t.Context(), "books"), ErrSaturated, "the delay is limited")
	held := make(chan error, 1)
	go func() { held <- b.Admit(t.Context(), "books") }()
	b.status.Position = 1000
	b.measure(1000, b.now)
	require.NoError(t, <-held)
}

func TestBacklogPacesWritesOfAProjectionThatIsALittleBehind(t *testing.T) {
	t.Parallel()
	b := newBacklog(t)
	b.goesOn(1, 10)
	b.now = b.now.Add(time.Second / 10)
	b.measure(100, b.now)
	require.NoError(t, b.admits(), "a tenth of a second is no delay")
	b.now, b.status.Position = b.now.Add(time.Second/5), b.status.Position+1
	b.measure(100, b.now)
	require.ErrorIs(t, b.admits(), context.DeadlineExceeded, "the write waits")
	require.NoError(t, b.Admit(t.Context(), "books"), "but only for a moment")
	held := make(chan error, 1)
	go func() { held <- b.Admit(t.Context(), "books") }()
	b.status.Position = 100
	b.measure(100, b.now)
	require.NoError(t, <-held)
}

func TestBacklogIgnoresStoppedProjections(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]Status{
		"parked": {Ready: true, Error: "event 7"}, "paused": {Ready: true, Paused: true}, "building": {}, "hanging": {Ready: true},
	} {
		b := newBacklog(t)
		b.goesOn(1, 10)
		status.Position = b.status.Position
		b.status = status
		b.goesOn(10, 0)
		require.NoError(t, b.admits(), name)
	}
}
