package console

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/shopspring/decimal"

	"bahi/domain/unit"
	books "bahi/readmodels/ledger"
)

// A chart's coordinates have these units; the page scales it.
const (
	chartWidth  = 1000.0
	chartHeight = 240.0
)

const (
	// Up to mostRows rows of an account are drawn; for more, the balance at evenly distributed days.
	mostRows = 400
	// mostDays limits the days of one query, and mostPastDays those of queries of the past, one per day.
	mostDays     = 160
	mostPastDays = 40
)

// chart shows the running balance over time as a step line.
type chart struct {
	Line, Area    string // of SVG paths
	Zero          string // position of zero from the top
	Low, High     point
	First, Last   point
	Scale         []string // from the top
	Points        []point
	Width, Height int
}

// point is the balance at the end of a day.
type point struct {
	Date    unit.Date
	Balance decimal.Decimal
	X, Span string // position and width
}

// draw returns the account's charts, one per unit of its ledger; nil if the account has rows on fewer than two days.
func (v *visit) draw(ctx context.Context, a *oneAccount) ([]*chart, error) {
	charts := make([]*chart, len(a.Units))
	days, err := v.balances(ctx, a)
	if err != nil || len(days) < 2 {
		return charts, err
	}
	for i := range charts {
		points := make([]point, len(days))
		for n, day := range days {
			points[n] = point{Date: day.date, Balance: inUnits(a.ledger, day.balance)[i]}
		}
		charts[i] = newChart(points)
	}
	return charts, nil
}

// dayEnd is an account's balance at the end of a day.
type dayEnd struct {
	date    unit.Date
	balance books.Balance
}

// balances returns the balance at the end of days, oldest first.
func (v *visit) balances(ctx context.Context, a *oneAccount) (days []dayEnd, err error) {
	if a.Total <= mostRows {
		rows, _, err := v.Books.Rows(ctx, a.Workspace, a.ledger, a.ID, books.Selection{As: a.as, Page: 1, PageSize: mostRows})
		for _, r := range rows {
			if n := len(days); n > 0 && days[n-1].date == r.Date {
				days = days[:n-1]
			}
			days = append(days, dayEnd{r.Date, books.Balance{Cash: r.Cash, Fine: r.Fine}})
		}
		return days, err
	}
	edge := func(nth int64) (unit.Date, error) {
		rows, _, err := v.Books.Rows(ctx, a.Workspace, a.ledger, a.ID, books.Selection{As: a.as, Page: int(nth), PageSize: 1})
		if err != nil || len(rows) == 0 {
			return 0, err
		}
		return rows[0].Date, nil
	}
	first, err := edge(1)
	if err != nil {
		return nil, err
	}
	last, err := edge(a.Total)
	if err != nil {
		return nil, err
	}
	if a.as.KnownAt == nil {
		between := spread(first, last, mostDays)
		found, err := v.Books.BalancesOn(ctx, a.Workspace, a.ledger, a.ID, between)
		for _, day := range between {
			days = append(days, dayEnd{day, found[day]})
		}
		return days, err
	}
	for _, day := range spread(first, last, mostPastDays) {
		then, err := v.Books.Account(ctx, a.Workspace, a.ledger, a.ID, books.As{Of: &day, KnownAt: a.as.KnownAt})
		if err != nil {
			return nil, err
		}
		days = append(days, dayEnd{day, books.Balance{Cash: then.Cash, Fine: then.Fine}})
	}
	return days, nil
}

// spread returns at most count evenly distributed days between two, both inclusive.
func spread(first, last unit.Date, most int) (days []unit.Date) {
	between := int(last - first)
	steps := min(between, most-1)
	for i := range steps + 1 {
		day := first
		if steps > 0 {
			day += unit.Date(between * i / steps)
		}
		days = append(days, day)
	}
	return days
}

func newChart(points []point) *chart {
	c := &chart{Low: points[0], High: points[0], First: points[0], Last: points[len(points)-1], Width: int(chartWidth), Height: int(chartHeight)}
	for _, p := range points {
		if p.Balance.LessThan(c.Low.Balance) {
			c.Low = p
		}
		if p.Balance.GreaterThan(c.High.Balance) {
			c.High = p
		}
	}
	top := max(0, c.High.Balance.InexactFloat64())
	low, step := scale(min(0, c.Low.Balance.InexactFloat64()), top)
	high := low
	for high < top || high == low {
		c.Scale = append(c.Scale, short(high))
		high += step
	}
	c.Scale = append(c.Scale, short(high))
	slices.Reverse(c.Scale)
	days := float64(c.Last.Date-c.First.Date) + 1 // the last day has a width too
	x := func(d unit.Date) float64 { return chartWidth * float64(d-c.First.Date) / days }
	y := func(balance float64) float64 { return chartHeight * (high - balance) / (high - low) }
	zero := y(0)
	c.Zero = tenths(zero)
	var line strings.Builder
	for i, p := range points {
		height := tenths(y(p.Balance.InexactFloat64()))
		if i == 0 {
			fmt.Fprintf(&line, "M0 %s", height)
		} else {
			fmt.Fprintf(&line, "H%sV%s", tenths(x(p.Date)), height)
		}
		until := chartWidth
		if i < len(points)-1 {
			until = x(points[i+1].Date)
		}
		p.X, p.Span = tenths(x(p.Date)), tenths(max(until-x(p.Date), 2))
		c.Points = append(c.Points, p)
	}
	fmt.Fprintf(&line, "H%s", tenths(chartWidth))
	c.Line = line.String()
	c.Area = fmt.Sprintf("%sV%sH0Z", c.Line, tenths(zero))
	return c
}

func tenths(f float64) string { return fmt.Sprintf("%.1f", f) }

// scale returns the first value and the step of a scale of three to six round numbers from low to high.
func scale(low, high float64) (from, step float64) {
	if high <= low {
		high = low + 1
	}
	rough := (high - low) / 4
	power := math.Pow(10, math.Floor(math.Log10(rough)))
	step = 10 * power
	for _, nice := range []float64{1, 2, 2.5, 5} {
		if nice*power >= rough {
			step = nice * power
			break
		}
	}
	return math.Floor(low/step) * step, step
}

// short formats a number of the scale with the Indian units: thousands, lakhs (10^5) and crores (10^7).
func short(f float64) string {
	for _, unit := range []struct {
		of   float64
		name string
	}{{1e7, " cr"}, {1e5, " lakh"}, {1e3, " k"}} {
		if math.Abs(f) >= unit.of {
			return trimmed(f/unit.of) + unit.name
		}
	}
	return trimmed(f)
}

func trimmed(f float64) string {
	text := fmt.Sprintf("%.2f", f)
	return strings.ReplaceAll(strings.TrimSuffix(strings.TrimRight(text, "0"), "."), "-", "\u2212")
}
