package commands

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/domain/number"
	"bahi/eventstore"
	"bahi/internal/test/interleavetest"
)

// reservations lists the reservations of row numbers.
func (n *node) reservations(t *testing.T) (all []number.Reserved) {
	t.Helper()
	for _, e := range n.stream(t, number.Kind.Stream("row")) {
		r, err := number.Kind.Decode(e)
		require.NoError(t, err)
		all = append(all, r.Data.(number.Reserved))
	}
	return all
}

func TestNumbersAreGivenOnceByWhomever(t *testing.T) {
	t.Parallel()
	log := interleavetest.NewLog()
	var (
		mu    sync.Mutex
		given []int64
		done  sync.WaitGroup
	)
	for round := range 3 { // three times all processes start again
		for range 3 {
			n := idle(log)
			for range 4 {
				done.Go(func() {
					for i := range int64(20) {
						count := 1 + (i+int64(round))%7
						first, err := n.Numbers(t.Context(), "row", count)
						if err != nil {
							t.Error(err)
							return
						}
						mu.Lock()
						for k := range count {
							given = append(given, first+k)
						}
						mu.Unlock()
					}
				})
			}
		}
		done.Wait()
	}
	slices.Sort(given)
	require.Positive(t, given[0])
	require.Len(t, slices.Compact(slices.Clone(given)), len(given), "none twice")
}

func TestNumbersFollowOneAnother(t *testing.T) {
	t.Parallel()
	n := nodes(t, 1)[0]
	for want, count := int64(1), int64(1); count < 200; want, count = want+count, count*2 {
		first, err := n.Numbers(t.Context(), "row", count)
		require.NoError(t, err)
		require.Equal(t, want, first, "the rest of a block is used with the next block if that is adjacent")
	}
	first, err := n.Numbers(t.Context(), "account", 1)
	require.NoError(t, err)
	require.EqualValues(t, 1, first, "each series has its own count")
}

func TestTheRestOfABlockIsLostToAnotherProcessesBlock(t *testing.T) {
	t.Parallel()
	all := nodes(t, 2)
	first, err := all[0].Numbers(t.Context(), "row", 1)
	require.NoError(t, err)
	require.EqualValues(t, 1, first)
	first, err = all[1].Numbers(t.Context(), "row", 1)
	require.NoError(t, err)
	require.EqualValues(t, minReserved+1, first)
	first, err = all[0].Numbers(t.Context(), "row", 100)
	require.NoError(t, err)
	require.EqualValues(t, 2*minReserved+1, first, "a range has no hole in it")
}

func TestBlocksAdaptToTheirUse(t *testing.T) {
	t.Parallel()
	n := nodes(t, 1)[0]
	take := func(count int64) {
		_, err := n.Numbers(t.Context(), "row", count)
		require.NoError(t, err)
	}
	for range 3 * minReserved {
		take(1)
	}
	require.Equal(t, []number.Reserved{{First: 1, Last: 8}, {First: 9, Last: 24}}, n.reservations(t),
		"twice as many if they are used up at once")
	n.clock.Pass(time.Hour)
	take(1)
	require.Equal(t, number.Reserved{First: 25, Last: 32}, n.reservations(t)[2], "fewer if they lasted")
	take(7)
	for range 4 {
		n.clock.Pass(time.Hour)
		take(minReserved)
	}
	require.Equal(t, number.Reserved{First: 57, Last: 64}, n.reservations(t)[6], "but not below the minimum")
	for range 2 {
		take(3 * maxReserved)
	}
	all := n.reservations(t)
	last := all[len(all)-1]
	require.EqualValues(t, 3*maxReserved, last.Last-last.First+1, "numbers requested together are consecutive")
}

func TestNumbersFailWithTheStoreAndComeBackWithIt(t *testing.T) {
	t.Parallel()
	n := nodes(t, 1)[0]
	n.store.Set(func() {
		n.store.Appending = func(_ context.Context, stream string) error {
			if strings.HasPrefix(stream, "number-") {
				return eventstore.ErrUnavailable
			}
			return nil
		}
	})
	for range 20 {
		_, err := n.Numbers(t.Context(), "row", 1)
		require.ErrorIs(t, err, eventstore.ErrUnavailable)
	}
	n.crash("", "number-") // the result is lost, and so are the numbers
	_, err := n.Numbers(t.Context(), "row", 1)
	require.ErrorIs(t, err, errCrash)
	first, err := n.Numbers(t.Context(), "row", 1)
	require.NoError(t, err)
	require.EqualValues(t, minReserved+1, first)
	require.Equal(t, number.Reserved{First: 9, Last: 16}, n.reservations(t)[1], "a failure makes no block larger")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = n.Numbers(ctx, "other", 1)
	require.ErrorIs(t, err, context.Canceled)
	first, err = n.Numbers(t.Context(), "other", 1)
	require.NoError(t, err)
	require.EqualValues(t, 1, first)
}

func TestNumbersGiveUpWhenOthersAreAlwaysFaster(t *testing.T) {
	t.Parallel()
	all := nodes(t, 2)
	all[0].store.Set(func() {
		all[0].store.Appending = func(context.Context, string) error {
			_, err := all[1].reserve(t.Context(), "row", 1)
			return err
		}
	})
	_, err := all[0].Numbers(t.Context(), "row", 1)
	require.ErrorIs(t, err, ErrBusy)
}
