package commands

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// A caller who asks while a read is under way gets a later one, and shares it with all who ask meanwhile.
func TestThoseWhoAskWhileAStreamIsReadShareTheNextRead(t *testing.T) {
	t.Parallel()
	r := newReads()
	begun, hold := make(chan int, 2), make(chan struct{})
	count := 0
	do := func(context.Context) (any, error) {
		count++ // reads of a stream come one after the other
		n := count
		begun <- n
		<-hold
		return n, nil
	}
	ask := func(ctx context.Context) (any, error) { return r.share(ctx, "s", do) }
	var asking sync.WaitGroup
	asking.Go(func() {
		got, err := ask(t.Context())
		if err != nil || got != 1 {
			t.Errorf("the first got %v, %v", got, err)
		}
	})
	require.Equal(t, 1, <-begun)
	var joined sync.WaitGroup // all of them have asked
	for range 8 {
		joined.Add(1)
		asking.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			joined.Done()
			got, err := ask(ctx)
			if err != nil || got.(int) < 2 {
				t.Errorf("one of the others got %v, %v", got, err)
			}
		})
	}
	joined.Wait()
	hold <- struct{}{}
	require.Equal(t, 2, <-begun, "begins after the first has ended")
	close(hold)
	asking.Wait()
	require.Empty(t, r.next)
	require.Empty(t, r.running)

	failed := errors.New("failed")
	_, err := r.share(t.Context(), "s", func(context.Context) (any, error) { return nil, failed })
	require.ErrorIs(t, err, failed)
}

func TestACallerWhoGoesLeavesTheReadToTheOthers(t *testing.T) {
	t.Parallel()
	r := newReads()
	begun, hold := make(chan struct{}, 2), make(chan struct{})
	do := func(ctx context.Context) (any, error) {
		begun <- struct{}{}
		<-hold
		return 1, ctx.Err()
	}
	leading, leave := context.WithCancel(t.Context())
	led := make(chan error, 1)
	go func() {
		_, err := r.share(leading, "s", do)
		led <- err
	}()
	<-begun
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	leave()
	close(hold)
	<-led
	_, err := r.share(gone, "s", do)
	require.True(t, err == nil || errors.Is(err, context.Canceled))
	got, err := r.share(t.Context(), "s", do)
	require.NoError(t, err)
	require.Equal(t, 1, got)
}

// A read may need another stream as it is now, or the same one: it waits for no other read.
func TestAReadWithinAReadWaitsForNone(t *testing.T) {
	t.Parallel()
	r := newReads()
	got, err := r.share(t.Context(), "s", func(ctx context.Context) (any, error) {
		return r.share(ctx, "s", func(context.Context) (any, error) { return 7, nil })
	})
	require.NoError(t, err)
	require.Equal(t, 7, got)
}
