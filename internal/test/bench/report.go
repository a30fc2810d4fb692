package bench

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is the result of a run.
type Report struct {
	Date    time.Time `json:"date"`
	Version string    `json:"version"`
	Machine Machine   `json:"machine"`
	Quick   bool      `json:"quick"` // short rounds, few rows: ratios are rough
	Rows    int       `json:"rows"`
	Seconds float64   `json:"seconds"`
	Figures []Figure  `json:"figures"`
}

// Figure is one line of the table.
type Figure struct {
	Name     string    `json:"name"`
	Title    string    `json:"title"`
	Unit     string    `json:"unit"`
	Measured float64   `json:"measured"` // median of the rounds
	Rounds   []float64 `json:"rounds"`
	Limit    *Limit    `json:"limit,omitempty"` // value with which it is compared
	Ratio    *float64  `json:"ratio,omitempty"` // median of the rounds' ratios
	Goal     *Goal     `json:"goal,omitempty"`  // for the ratio, or for the value if there is no limit
	Reached  *bool     `json:"reached,omitempty"`
}

// Limit is a measured limit of the machine; a figure is compared with it.
type Limit struct {
	Title  string    `json:"title"`
	Median float64   `json:"median"`
	Rounds []float64 `json:"rounds"`
}

// Goal is the bound that a figure should reach.
type Goal struct {
	Bound  float64 `json:"bound"`
	AtMost bool    `json:"at_most"` // otherwise at least
}

// AtLeast returns a goal.
func AtLeast(bound float64) *Goal { return &Goal{Bound: bound} }

// AtMost returns a goal.
func AtMost(bound float64) *Goal { return &Goal{Bound: bound, AtMost: true} }

func (g Goal) String() string {
	sign := ">="
	if g.AtMost {
		sign = "<="
	}
	return fmt.Sprintf("%s %g", sign, g.Bound)
}

// Conclude computes a figure from its rounds. Against is nil if the figure has no comparison.
func (f Figure) Conclude(rounds []float64, limit string, against []float64) Figure {
	f.Rounds, f.Measured = rounds, Median(rounds)
	judged := f.Measured
	if against != nil {
		ratio := Ratio(rounds, against)
		f.Ratio, judged = &ratio, ratio
		f.Limit = &Limit{Title: limit, Median: Median(against), Rounds: against}
	}
	if f.Goal != nil {
		reached := judged >= f.Goal.Bound
		if f.Goal.AtMost {
			reached = judged <= f.Goal.Bound
		}
		f.Reached = &reached
	}
	return f
}

// Missed returns the number of figures that missed their goals.
func (r *Report) Missed() (n int) {
	for _, f := range r.Figures {
		if f.Reached != nil && !*f.Reached {
			n++
		}
	}
	return n
}

// Table prints the figures.
func (r *Report) Table(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "FIGURE\tMEASURED\tCOMPARED WITH\tRATIO\tGOAL\tREACHED")
	for _, f := range r.Figures {
		limit, ratio, goal, reached := "-", "-", "-", ""
		if f.Limit != nil {
			limit = amount(f.Limit.Median, f.Unit) + ", " + f.Limit.Title
		}
		if f.Ratio != nil {
			ratio = fmt.Sprintf("%.2f", *f.Ratio)
		}
		if f.Goal != nil {
			goal = f.Goal.String()
			if f.Ratio == nil {
				goal += " " + f.Unit
			}
		}
		if f.Reached != nil {
			reached = map[bool]string{true: "yes", false: "NO"}[*f.Reached]
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\n", f.Title, amount(f.Measured, f.Unit), limit, ratio, goal, reached)
	}
	return out.Flush()
}

// amount formats a number with its unit and separated thousands.
func amount(v float64, unit string) string {
	if v < 100 {
		return strings.TrimSpace(fmt.Sprintf("%.2f %s", v, unit))
	}
	digits := fmt.Sprintf("%.0f", math.Round(v))
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits + " " + unit
}

// Write writes the report to a file as JSON.
func (r *Report) Write(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil { // meant for everybody
		return fmt.Errorf("write the figures: %w", err)
	}
	return nil
}

// Sample is the result of one round.
type Sample struct {
	Rate float64       // per second
	P50  time.Duration // median time of one request
	P99  time.Duration

	OddP99 time.Duration // time of every second client's requests, if those have other requests

	Requests  int
	Processor time.Duration // processor time of one request, if it was measured
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
