package esdb_test

import (
	"context"
	"fmt"
	"runtime/pprof"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/eventstore"
	"bahi/eventstore/esdb"
	"bahi/eventstore/storetest"
)

func TestStoppedReadersAndClosedStoresLeaveNoGoroutines(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	w := newWire(t, s.address)
	label := "store-" + uuid.NewString()
	pprof.Do(t.Context(), pprof.Labels("test", label), func(context.Context) {
		store, err := esdb.Open(t.Context(), s.url(w.address()), testLog(t))
		require.NoError(t, err)
		defer store.Close()
		for i := range 300 {
			_, err := store.Append(t.Context(), eventstore.To(fmt.Sprintf("thing-%d", i%3), eventstore.Any, thing("one")))
			require.NoError(t, err)
		}
		before := storetest.Goroutines(t, label)
		require.NotZero(t, before)
		for range 30 {
			ctx, cancel := context.WithCancel(t.Context())
			for _, err := range store.ReadAll(ctx, 0, eventstore.Forwards) { // the server has sent more than this takes
				require.NoError(t, err)
				break
			}
			for _, err := range store.Subscribe(ctx, 0) {
				require.NoError(t, err)
				break
			}
			go func() {
				for range store.Subscribe(ctx, 0) { // stop after the first batch
				}
			}()
			cancel()
			_, err := store.Head(ctx)
			require.Error(t, err)
		}
		const tail = 8 // of the subscription that all share, which begins with the first of them
		require.Eventually(t, func() bool { return storetest.Goroutines(t, label) <= before+1+tail }, time.Minute, 10*time.Millisecond, "plus the caller")

		w.set(func() { w.cut = true })
		for range 10 {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			for _, err := range store.Subscribe(ctx, 0) {
				require.Error(t, err)
			}
			cancel()
		}
		w.set(func() { w.cut = false })
		require.Eventually(t, func() bool {
			_, err := store.Head(t.Context())
			return err == nil
		}, time.Minute, 10*time.Millisecond)
	})
	const leaked = 16 // by the client, which does not close a lost connection
	require.Eventually(t, func() bool { return storetest.Goroutines(t, label) <= leaked }, time.Minute, 50*time.Millisecond)
}
