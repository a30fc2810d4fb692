package bench

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Sample is the result of one round.
type Sample struct {
	Rate float64       // per second
	P50  time.Duration // of one request
	P99  time.Duration
	Lag  time.Duration // 99th percentile of the projections' lag

	OddP99 time.Duration // of one request of every second client, if those have other requests

	Requests  int
	Processor time.Duration // of one request, if it was measured
}

// SampleOf returns the sample of a round of requests.
func SampleOf(took []time.Duration, elapsed time.Duration) Sample {
	slices.Sort(took)
	return Sample{
		Rate: float64(len(took)) / elapsed.Seconds(), P50: Percentile(took, 50), P99: Percentile(took, 99), Requests: len(took),
	}
}

// P99Of sorts the values and returns their 99th percentile.
func P99Of(values []time.Duration) time.Duration {
	slices.Sort(values)
	return Percentile(values, 99)
}

// Percentile returns the value that p of 100 sorted values do not exceed, zero if there are none.
func Percentile[T any](sorted []T, p float64) (v T) {
	if len(sorted) == 0 {
		return v
	}
	rank := int(math.Ceil(float64(len(sorted)) * p / 100))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Median returns the middle value, or the mean of the two middle ones.
func Median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return 0
	}
	sorted := slices.SortedFunc(slices.Values(values), cmp.Compare[float64])
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Series is the samples of one measurement's rounds, in order.
type Series []Sample

// By returns one number per round.
func (s Series) By(n Number) []float64 {
	values := make([]float64, len(s))
	for i := range s {
		values[i] = n.of(s[i])
	}
	return values
}

// Number is a number of a sample that a figure may be about.
type Number struct {
	Unit string
	of   func(Sample) float64
}

// The numbers of a sample.
var (
	Rate      = Number{"/s", func(s Sample) float64 { return s.Rate }}
	P50       = Number{"ms", func(s Sample) float64 { return milliseconds(s.P50) }}
	P99       = Number{"ms", func(s Sample) float64 { return milliseconds(s.P99) }}
	Lag       = Number{"ms", func(s Sample) float64 { return milliseconds(s.Lag) }}
	OddP99    = Number{"ms", func(s Sample) float64 { return milliseconds(s.OddP99) }}
	Processor = Number{"us", func(s Sample) float64 { return float64(s.Processor) / float64(time.Microsecond) }}
)

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Interleave alternates rounds: the limit, the measured operation, the limit, …, and finally the limit. The limit has one round more.
func Interleave(rounds int, progress func(done, total int), limit, measured func() (Sample, error)) (limits, found Series, err error) {
	for done := range 2*rounds + 1 {
		run, series := limit, &limits
		if done%2 == 1 {
			run, series = measured, &found
		}
		s, err := run()
		if err != nil {
			return nil, nil, err
		}
		*series = append(*series, s)
		progress(done+1, 2*rounds+1)
	}
	return limits, found, nil
}

// Ratio returns the median of the rounds' ratios to the mean of the limit's neighbouring rounds. A last round without a successor uses
// the limit before it.
func Ratio(measured, limit []float64) float64 {
	ratios := make([]float64, 0, len(measured))
	for i, m := range measured {
		beside := limit[min(i, len(limit)-1)]
		if i+1 < len(limit) {
			beside = (beside + limit[i+1]) / 2
		}
		if beside > 0 {
			ratios = append(ratios, m/beside)
		}
	}
	return Median(ratios)
}
