package console

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/shopspring/decimal"

	"bahi/domain/unit"
	views "bahi/readmodels/ops"
)

// indian inserts Indian digit separators, and the minus of figures, which is as wide as a digit.
func indian(plain string) string { return strings.Replace(unit.Indian(plain), "-", "\u2212", 1) }

// amount formats an amount with the places of its unit, or with more if it has them.
func amount(d decimal.Decimal, places int32) string {
	if rounded := d.Round(places); rounded.Equal(d) {
		return indian(rounded.StringFixed(places))
	}
	return indian(d.String())
}

// count formats a number of things.
func count(n any) string {
	switch n := n.(type) {
	case float64:
		return indian(strconv.FormatFloat(math.Round(n), 'f', 0, 64))
	case *int: // templates pass pointers
		return indian(strconv.Itoa(*n))
	default:
		return indian(fmt.Sprint(n))
	}
}

// whole rounds down, for the value of a bar.
func whole(f float64) int { return int(f) }

func percent(f float64) string { return strconv.FormatFloat(math.Floor(f*10)/10, 'f', 1, 64) + " %" }

func size(bytes int64) string {
	f, units := float64(bytes), []string{"B", "kB", "MB", "GB", "TB"}
	unit := 0
	for f >= 1000 && unit < len(units)-1 {
		f /= 1000
		unit++
	}
	places := 1
	if f >= 100 || unit == 0 {
		places = 0
	}
	return strconv.FormatFloat(f, 'f', places, 64) + " " + units[unit]
}

// behind formats a projection's lag.
func behind(p views.Projection) string {
	if p.LagEvents == 0 {
		return "0"
	}
	return count(p.LagEvents) + " events, " + seconds(p.LagSeconds)
}

func seconds(f float64) string { return duration(time.Duration(f * float64(time.Second))) }

// duration formats the two largest parts of a duration.
func duration(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second && d%time.Second != 0:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%d days", int(d.Hours()/24))
	}
}

// moment formats a time in the workshop's zone.
func (c *Console) moment(t time.Time) string { return t.In(c.Zone).Format("2 Jan 2006, 15:04:05") }

func iso(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// ago formats the time since, or until, a time.
func (c *Console) ago(t time.Time) string {
	switch d := c.Now().Sub(t); {
	case d >= time.Second:
		return duration(d.Truncate(time.Second)) + " ago"
	case d > -time.Second:
		return "just now"
	default:
		return "in " + duration((-d).Truncate(time.Second))
	}
}

// cut shortens a text to a number of characters.
func cut(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	runes := []rune(text)
	return string(runes[:most-1]) + "…"
}

// brief shortens the ids in the name of a stream or an actor.
func brief(name string) string {
	return long.ReplaceAllStringFunc(name, func(id string) string { return id[:8] + "…" })
}

// long matches ids that nobody reads: UUIDs and hashes.
var long = regexp.MustCompile(`[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32,}`)

// day formats a date as in statements.
func day(d unit.Date) string { return d.Time().Format("02 Jan 2006") }

// statusWord returns the CSS class of a state's colour. The state itself is always shown next to it.
func statusWord(state string) string {
	switch state {
	case "live", "completed":
		return "good"
	case "parked", "discarded", "differs":
		return "bad"
	case "paused", "retryable", "cancelled":
		return "warn"
	case "building", "running", "filling", "indexing", "catching up", "comparing", "requested":
		return "busy"
	default:
		return "calm"
	}
}
