package ratelimit_test

import (
	"encoding/binary"
	"net/netip"
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
	m.Return(t.Context(), somebody)
	for range 5 {
		require.Equal(t, 2, m.Take(t.Context(), somebody, perMin).Remaining)
		m.Return(t.Context(), somebody)
	}
	m.Take(t.Context(), somebody, perMin)
	c.Pass(time.Second)
	m.Take(t.Context(), somebody, perMin)
	m.Return(t.Context(), somebody)
	require.Equal(t, ratelimit.Decision{Allowed: true, Remaining: 1, Next: 59 * time.Second},
		m.Take(t.Context(), somebody, perMin), "the oldest stays")
}

func TestFloodOfAddressesIsBoundedAndSparesKnownCallers(t *testing.T) {
	t.Parallel()
	c := newClock()
	m := ratelimit.NewMemory(c.Now, 1024)
	once := ratelimit.Limit{Requests: 1, Per: time.Hour}
	m.Take(t.Context(), somebody, once)
	for n := range 100_000 {
		require.True(t, m.Take(t.Context(), address(n), once).Allowed)
	}
	require.LessOrEqual(t, m.Keys(), 1+1024)
	require.False(t, m.Take(t.Context(), somebody, once).Allowed)
	require.False(t, m.Take(t.Context(), address(99_999), once).Allowed, "the latest are kept")
	require.True(t, m.Take(t.Context(), address(0), once).Allowed, "the earliest are removed")
}

func TestUnusedKeysAreRemoved(t *testing.T) {
	t.Parallel()
	c := newClock()
	m := ratelimit.NewMemory(c.Now, 0)
	for n := range 10_000 {
		m.Take(t.Context(), address(n), perMin)
	}
	require.Equal(t, 10_000, m.Keys())
	c.Pass(time.Minute)
	for n := range 10_000 {
		m.Take(t.Context(), address(10_000+n%5000), perMin)
	}
	require.Equal(t, 5000, m.Keys())
}
