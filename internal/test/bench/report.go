package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
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

// Limit is what a figure is compared with.
type Limit struct {
	Title  string    `json:"title"`
	Median float64   `json:"median"`
	Rounds []float64 `json:"rounds"`
}

// Goal is what a figure should reach.
type Goal struct {
	Bound  float64 `json:"bound"`
	AtMost bool    `json:"at_most"`       // otherwise at least
	Aim    float64 `json:"aim,omitempty"` // desired value
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
	if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil { //nolint:gosec // meant for everybody
		return fmt.Errorf("write the figures: %w", err)
	}
	return nil
}
