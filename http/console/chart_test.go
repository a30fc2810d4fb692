package console

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/domain/unit"
)

func TestScaleHasRoundNumbersFromLowToHigh(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		low := -rapid.Float64Range(0, 1e12).Draw(t, "low")
		high := rapid.Float64Range(0.01, 1e12).Draw(t, "high")
		from, step := scale(low, high)
		require.LessOrEqual(t, from, low)
		require.Less(t, low-from, step*1.0001)
		steps := (high - from) / step
		require.LessOrEqual(t, steps, 6.0)
		require.GreaterOrEqual(t, steps, 1.0)
	})
	for f, want := range map[float64]string{0: "0", 500: "500", 2500: "2.5 k", 150000: "1.5 lakh", -2e7: "−2 cr", 100: "100", 0.05: "0.05"} {
		require.Equal(t, want, short(f))
	}
}

var coordinates = regexp.MustCompile(`-?\d+\.\d`)

func TestChartStaysInItsBoxAndLabelsItsEnds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		day := unit.Date(20000)
		var points []point
		for range rapid.IntRange(2, 60).Draw(t, "days") {
			day += unit.Date(rapid.IntRange(1, 400).Draw(t, "later"))
			points = append(points, point{Date: day, Balance: decimal.New(rapid.Int64Range(-1e14, 1e14).Draw(t, "paise"), -2)})
		}
		c := newChart(points)
		require.Len(t, c.Points, len(points))
		require.Equal(t, points[0].Date, c.First.Date)
		require.Equal(t, day, c.Last.Date)
		for _, p := range points {
			require.False(t, p.Balance.LessThan(c.Low.Balance) || p.Balance.GreaterThan(c.High.Balance))
		}
		for _, text := range coordinates.FindAllString(c.Area, -1) {
			f, err := strconv.ParseFloat(text, 64)
			require.NoError(t, err)
			require.GreaterOrEqual(t, f, 0.0)
			require.LessOrEqual(t, f, chartWidth)
		}
		require.GreaterOrEqual(t, len(c.Scale), 2)
		require.LessOrEqual(t, len(c.Scale), 8)
	})
}

func TestDaysAreSpreadEvenly(t *testing.T) {
	t.Parallel()
	require.Equal(t, []unit.Date{5}, spread(5, 5, 10))
	require.Equal(t, []unit.Date{5, 6, 7}, spread(5, 7, 10))
	days := spread(0, 1000, 11)
	require.Len(t, days, 11)
	require.Equal(t, []unit.Date{0, 100, 1000}, []unit.Date{days[0], days[1], days[10]})
}
