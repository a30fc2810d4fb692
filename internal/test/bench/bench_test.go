package bench_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/bench"
)

func TestRatioUsesTheLimitsOfTheNeighbouringRounds(t *testing.T) {
	t.Parallel()
	// In the second round the machine is half as fast for both.
	require.InDelta(t, 0.5, bench.Ratio([]float64{50, 25, 25}, []float64{100, 100, 50, 50}), 0.1)
	require.InDelta(t, 0.5, bench.Ratio([]float64{50}, []float64{100}), 1e-9)
	require.Zero(t, bench.Ratio(nil, []float64{1}))
}

func TestMedianAndPercentiles(t *testing.T) {
	t.Parallel()
	require.InDelta(t, 2.5, bench.Median([]float64{4, 1, 3, 2}), 1e-9)
	require.InDelta(t, 3, bench.Median([]float64{9, 1, 3}), 1e-9)
	require.Zero(t, bench.Median(nil))
	took := make([]time.Duration, 200)
	for i := range took {
		took[i] = time.Duration(200-i) * time.Millisecond
	}
	s := bench.SampleOf(took, 2*time.Second)
	require.Equal(t, 198*time.Millisecond, s.P99)
	require.Equal(t, 100*time.Millisecond, s.P50)
	require.InDelta(t, 100, s.Rate, 1e-9)
	require.Zero(t, bench.Percentile([]int{}, 99))
}

func TestGoalsAreJudgedByTheRatioOrTheValue(t *testing.T) {
	t.Parallel()
	f := bench.Figure{Name: "rate", Goal: bench.AtLeast(0.4)}.Conclude([]float64{50}, "limit", []float64{100, 100})
	require.True(t, *f.Reached)
	f = bench.Figure{Name: "latency", Goal: bench.AtMost(0.4)}.Conclude([]float64{50}, "limit", []float64{100, 100})
	require.False(t, *f.Reached)
	f = bench.Figure{Name: "lag", Title: "lag", Unit: "ms", Goal: bench.AtMost(100)}.Conclude([]float64{1234.5}, "", nil)
	require.False(t, *f.Reached)
	require.Nil(t, f.Ratio)
	r := bench.Report{Figures: []bench.Figure{f, bench.Figure{Name: "told", Title: "told", Unit: "ms"}.Conclude([]float64{1}, "", nil)}}
	require.Equal(t, 1, r.Missed())
	var table strings.Builder
	require.NoError(t, r.Table(&table))
	require.Contains(t, table.String(), "1,235 ms")
	require.Contains(t, table.String(), "<= 100 ms")
}
