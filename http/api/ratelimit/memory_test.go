package ratelimit_test

import (
	"encoding/binary"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/http/api/ratelimit"
)

func address(n int) ratelimit.Key {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], uint32(n))
	return ratelimit.Key{Group: "auth", Address: netip.AddrFrom4(b)}
}

func TestAReturnedRequestDoesNotCount(t *testing.T) {
	t.Parallel()
	c := newClock()
	m := ratelimit.NewMemory(c.Now, 0)
	m.Return(somebody)
	for range 5 {
		require.Equal(t, 2, m.Take(somebody, perMin).Remaining)
		m.Return(somebody)
	}
	m.Take(somebody, perMin)
	c.move(time.Second)
	m.Take(somebody, perMin)
	m.Return(somebody)
	require.Equal(t, ratelimit.Decision{Allowed: true, Remaining: 1, Next: 59 * time.Second}, m.Take(somebody, perMin), "the oldest stays")
}

func TestFloodOfAddressesIsBoundedAndSparesKnownCallers(t *testing.T) {
	t.Parallel()
	c := newClock()
	m := ratelimit.NewMemory(c.Now, 1024)
	once := ratelimit.Limit{Requests: 1, Per: time.Hour}
	m.Take(somebody, once)
	for n := range 100_000 {
		require.True(t, m.Take(address(n), once).Allowed)
	}
	require.LessOrEqual(t, m.Keys(), 1+1024)
	require.False(t, m.Take(somebody, once).Allowed)
	require.False(t, m.Take(address(99_999), once).Allowed, "the latest are kept")
	require.True(t, m.Take(address(0), once).Allowed, "the earliest are removed")
}

func TestUnusedKeysAreRemoved(t *testing.T) {
	t.Parallel()
	c := newClock()
	m := ratelimit.NewMemory(c.Now, 0)
	for n := range 10_000 {
		m.Take(address(n), perMin)
	}
	require.Equal(t, 10_000, m.Keys())
	c.move(time.Minute)
	for n := range 10_000 {
		m.Take(address(10_000+n%5000), perMin)
	}
	require.Equal(t, 5000, m.Keys())
}

// BenchmarkTake is the check of a request, by the number of callers: with one caller nearly all requests are
// refused, with ten thousand nearly all are counted.
func BenchmarkTake(b *testing.B) {
	limit := ratelimit.Limit{Requests: 300, Per: time.Second}
	for _, callers := range []int{1, 100, 10_000} {
		b.Run(strconv.Itoa(callers), func(b *testing.B) {
			m := ratelimit.NewMemory(time.Now, 0)
			keys := make([]ratelimit.Key, callers)
			for i := range keys {
				keys[i] = ratelimit.Key{Group: "ledger_general", Caller: strconv.Itoa(i) + "-9dad-41d1-80b4-00c04fd430c8"}
			}
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					m.Take(keys[i%len(keys)], limit)
				}
			})
		})
	}
}
