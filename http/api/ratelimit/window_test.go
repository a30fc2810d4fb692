package ratelimit_test

import (
	"fmt"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/http/api/ratelimit"
	"bahi/internal/test/worktest"
)

func newClock() *worktest.Clock {
	return worktest.NewClock(time.Date(2025, 3, 31, 23, 59, 30, 0, time.UTC))
}

// counter is a store and its clock.
type counter struct {
	take func(ratelimit.Key, ratelimit.Limit) ratelimit.Decision
	pass func(time.Duration)
}

// stores are all stores; each passes the same tests.
var stores = map[string]func(*testing.T) counter{
	"memory": func(t *testing.T) counter {
		c := newClock()
		m := ratelimit.NewMemory(c.Now, 0)
		return counter{func(key ratelimit.Key, limit ratelimit.Limit) ratelimit.Decision {
			return m.Take(t.Context(), key, limit)
		}, c.Pass}
	},
	"redis": func(t *testing.T) counter {
		c, server := newClock(), miniredis.RunT(t)
		server.SetTime(c.Now())
		r, err := ratelimit.NewPatientRedis("redis://" + server.Addr())
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, r.Close()) })
		return counter{
			take: func(key ratelimit.Key, limit ratelimit.Limit) ratelimit.Decision {
				d, err := r.Take(t.Context(), key, limit)
				require.NoError(t, err)
				return d
			},
			pass: func(by time.Duration) { c.Pass(by); server.SetTime(c.Now()) },
		}
	},
}

func each(t *testing.T, test func(t *testing.T, c counter)) {
	t.Helper()
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

var (
	somebody = ratelimit.Key{Group: "auth", Caller: "6ba7b810-9dad-41d1-80b4-00c04fd430c8"}
	perMin   = ratelimit.Limit{Requests: 3, Per: time.Minute}
)

func TestTheNextOneIsAllowedExactlyWhenTheOldestLeaves(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, c counter) {
		require.Equal(t, ratelimit.Decision{Allowed: true, Remaining: 2, Next: time.Minute}, c.take(somebody, perMin))
		c.pass(20 * time.Second)
		require.Equal(t, ratelimit.Decision{Allowed: true, Remaining: 1, Next: 40 * time.Second}, c.take(somebody, perMin))
		require.Equal(t, ratelimit.Decision{Allowed: true, Remaining: 0, Next: 40 * time.Second}, c.take(somebody, perMin))
		require.Equal(t, ratelimit.Decision{Next: 40 * time.Second}, c.take(somebody, perMin))
		c.pass(40*time.Second - time.Microsecond)
		require.Equal(t, ratelimit.Decision{Next: time.Microsecond}, c.take(somebody, perMin), "a refused request is not counted")
		c.pass(time.Microsecond)
		require.Equal(t, ratelimit.Decision{Allowed: true, Next: 20 * time.Second}, c.take(somebody, perMin))
		require.False(t, c.take(somebody, perMin).Allowed)
		c.pass(20 * time.Second)
		require.Equal(t, ratelimit.Decision{Allowed: true, Remaining: 1, Next: 40 * time.Second}, c.take(somebody, perMin), "two leave at once")
		c.pass(time.Hour)
		require.Equal(t, ratelimit.Decision{Allowed: true, Remaining: 2, Next: time.Minute}, c.take(somebody, perMin))
	})
}

func TestGroupsCallersAndAddressesAreCountedApart(t *testing.T) {
	t.Parallel()
	once := ratelimit.Limit{Requests: 1, Per: time.Second}
	each(t, func(t *testing.T, c counter) {
		for _, key := range []ratelimit.Key{
			somebody, {Group: "users", Caller: somebody.Caller}, {Group: "auth", Caller: "other"},
			{Group: "auth", Address: netip.MustParseAddr("192.0.2.7")}, {Group: "auth", Address: netip.MustParseAddr("192.0.2.8")},
			{Group: "auth", Address: netip.MustParseAddr("2001:db8::")}, {Group: "auth"},
		} {
			require.True(t, c.take(key, once).Allowed, "%v", key)
			require.False(t, c.take(key, once).Allowed, "%v", key)
		}
	})
}

// model stores the time of every allowed request, for ever.
type model map[ratelimit.Key][]time.Duration

func (m model) take(now time.Duration, key ratelimit.Key, limit ratelimit.Limit) (d ratelimit.Decision) {
	var inside []time.Duration
	for _, at := range m[key] {
		if at > now-limit.Per {
			inside = append(inside, at)
		}
	}
	if d.Allowed = len(inside) < limit.Requests; d.Allowed {
		m[key] = append(m[key], now)
		inside = append(inside, now)
	}
	d.Remaining, d.Next = limit.Requests-len(inside), inside[0]+limit.Per-now
	return d
}

func TestWindowsMatchAModel(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, c counter) {
		var round int
		rapid.Check(t, func(rt *rapid.T) {
			round++
			var now time.Duration
			allowed := model{}
			limits := map[string]ratelimit.Limit{}
			for range rapid.IntRange(1, 40).Draw(rt, "steps") {
				by := rapid.OneOf(rapid.SampledFrom([]int64{0, 1, 500_000, 1_000_000, 2_000_000}), rapid.Int64Range(0, 2_000_000)).Draw(rt,
					"microseconds")
				c.pass(time.Duration(by) * time.Microsecond)
				now += time.Duration(by) * time.Microsecond
				who := rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "who")
				key := ratelimit.Key{Group: strconv.Itoa(round), Caller: who}
				if _, known := limits[who]; !known {
					limits[who] = ratelimit.Limit{Requests: rapid.IntRange(1, 9).Draw(rt, "requests"),
						Per: time.Duration(rapid.IntRange(1, 3).Draw(rt, "seconds")) * time.Second}
				}
				require.Equal(rt, allowed.take(now, key, limits[who]), c.take(key, limits[who]), "at %s", now)
			}
		})
	})
}

func TestConcurrentRequestsDoNotExceedTheLimit(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, c counter) {
		limit := ratelimit.Limit{Requests: 100, Per: time.Minute}
		var allowed [3]atomic.Int32
		var running sync.WaitGroup
		for worker := range 8 {
			running.Go(func() {
				for i := range 60 {
					who := (worker + i) % len(allowed)
					if c.take(ratelimit.Key{Group: "auth", Caller: fmt.Sprint("u", who)}, limit).Allowed {
						allowed[who].Add(1)
					}
				}
			})
		}
		running.Wait()
		for who := range allowed {
			require.EqualValues(t, 100, allowed[who].Load())
		}
	})
}

func TestALimitIsReadFromASetting(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]ratelimit.Limit{
		"20/1m": {Requests: 20, Per: time.Minute}, "1/1s": {Requests: 1, Per: time.Second}, "off": {},
		"1000000/24h": {Requests: 1_000_000, Per: 24 * time.Hour}, "5/1m30s": {Requests: 5, Per: 90 * time.Second},
	} {
		l, err := ratelimit.Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, want, l, text)
		again, err := ratelimit.Parse(l.String())
		require.NoError(t, err)
		require.Equal(t, l, again)
	}
	for _, text := range []string{"", "20", "20/", "/1m", "0/1m", "-1/1m", "1000001/1m", "20/0s", "20/-1m", "20/25h", "20/1500ms",
		"20/m", "OFF", "2e3/1m", "20/1m/1m"} {
		_, err := ratelimit.Parse(text)
		require.ErrorContains(t, err, fmt.Sprintf("limit %q", text))
	}
}
