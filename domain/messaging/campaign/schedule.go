package campaign

import (
	"time"
)

// Recurrence is the interval between runs, counted from the first run in the time zone of the workspace.
type Recurrence struct {
	Every int        `json:"every,omitempty" minimum:"1" maximum:"100" doc:"Number of units between runs; absent: 1"`
	Unit  string     `json:"unit,omitempty" enum:"day,week,month" doc:"Unit; absent: week"`
	Until *time.Time `json:"until,omitempty" doc:"Time after which no run starts"`
}

// Next returns the time of the next run after now, or nil. In a month without the anchor's day, the run is on the month's last day. The
// local time of all runs is the same, regardless of daylight saving.
func (r Recurrence) Next(anchor, now time.Time, zone *time.Location) *time.Time {
	first := anchor.In(zone)
	for n := max(0, r.atLeast(first, now)); ; n++ {
		at := r.nth(first, n)
		if r.Until != nil && at.After(*r.Until) {
			return nil
		}
		if at.After(now) {
			return new(at.UTC())
		}
	}
}

// atLeast returns a lower bound of the number of runs before now, close to the exact number.
func (r Recurrence) atLeast(first, now time.Time) int {
	longest := map[string]time.Duration{"day": 25 * time.Hour, "week": 170 * time.Hour, "month": 745 * time.Hour}[r.Unit]
	return int(now.Sub(first)/(longest*time.Duration(r.Every))) - 1
}

// nth returns the time of the nth run; run 0 is at the anchor.
func (r Recurrence) nth(first time.Time, n int) time.Time {
	y, m, d := first.Date()
	switch n *= r.Every; r.Unit {
	case "day":
		d += n
	case "week":
		d += 7 * n
	case "month":
		m += time.Month(n)
		d = min(d, time.Date(y, m+1, 0, 0, 0, 0, 0, time.UTC).Day())
	}
	return onClock(time.Date(y, m, d, first.Hour(), first.Minute(), first.Second(), 0, time.UTC), first.Location())
}

// onClock returns the first time at which the local time of a zone is wall. If the zone skips that local time, onClock
// returns the end of the gap (CONTRACT.md N8).
func onClock(wall time.Time, zone *time.Location) time.Time {
	const day = 24 * time.Hour // no zone changes its offset twice within two days
	_, before := wall.Add(-day).In(zone).Zone()
	_, after := wall.Add(day).In(zone).Zone()
	early, late := wall.Add(-time.Duration(before)*time.Second).In(zone), wall.Add(-time.Duration(after)*time.Second).In(zone)
	if _, offset := early.Zone(); offset == before {
		return early
	}
	if _, offset := late.Zone(); offset == after {
		return late
	}
	start, _ := early.ZoneBounds() // the clock skipped the time
	return start
}

// local parses a time. Without an offset it is in the zone.
func local(text string, zone *time.Location) (time.Time, bool) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at.UTC().Truncate(time.Second), true
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04"} {
		if wall, err := time.Parse(layout, text); err == nil {
			return onClock(wall, zone).UTC().Truncate(time.Second), true
		}
	}
	return time.Time{}, false
}
