package console

import (
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestNumbersHaveIndianCommas(t *testing.T) {
	t.Parallel()
	for plain, want := range map[string]string{
		"0": "0", "999": "999", "1000": "1,000", "100000": "1,00,000", "1234567.5": "12,34,567.5", "-1234567890.25": "−1,23,45,67,890.25",
	} {
		require.Equal(t, want, indian(plain))
	}
	rapid.Check(t, func(t *rapid.T) {
		plain := decimal.New(rapid.Int64().Draw(t, "number"), -int32(rapid.IntRange(0, 3).Draw(t, "places"))).String()
		grouped := indian(plain)
		require.Equal(t, plain, strings.NewReplacer(",", "", "−", "-").Replace(grouped))
		whole, _, _ := strings.Cut(strings.TrimPrefix(grouped, "−"), ".")
		for i, part := range strings.Split(whole, ",") {
			if last := strings.Count(whole, ","); i == last && last > 0 {
				require.Len(t, part, 3)
			} else if i > 0 {
				require.Len(t, part, 2)
			}
		}
	})
}

func TestAmountsShowAllPlaces(t *testing.T) {
	t.Parallel()
	for plain, want := range map[string]string{"12.5": "12.50", "0": "0.00", "-0.01": "−0.01", "12.345": "12.345", "1e3": "1,000.00"} {
		require.Equal(t, want, amount(decimal.RequireFromString(plain), 2))
	}
}

func TestQuantitiesAreShort(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", 250 * time.Millisecond: "250 ms", 2 * time.Second: "2 s", 2300 * time.Millisecond: "2.3 s", 61 * time.Second: "1 min 1 s",
		3*time.Hour + 4*time.Minute: "3 h 4 min", 72 * time.Hour: "3 days",
	} {
		require.Equal(t, want, duration(d))
	}
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1500: "1.5 kB", 123456789: "123 MB", 2_000_000_000_000_000: "2000 TB"} {
		require.Equal(t, want, size(n))
	}
	require.Equal(t, "49.9 %", percent(49.99), "percentages round down")
	require.Equal(t, "a…", cut("abc", 2))
	require.Equal(t, "₹₹", cut("₹₹", 2))
	require.Equal(t, "user:61acda95…", brief("user:61acda95-3c35-46fd-91c4-4a3b2c1d0e9f"))
	require.Equal(t, "bankrow-12", brief("bankrow-12"))
	c := &Console{Config: Config{Now: func() time.Time { return time.Unix(1000, 0) }}}
	require.Equal(t, []string{"1 min 40 s ago", "just now", "in 10 s"}, []string{c.ago(time.Unix(900, 0)), c.ago(time.Unix(1000, 0)), c.ago(time.Unix(1010, 0))})
}
