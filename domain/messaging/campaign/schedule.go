package campaign

import (
	"time"
)

// Recurrence says how often a campaign runs again, counted from its first time on the wall clock of the workspace.
type Recurrence struct {
	Every int        `json:"every,omitempty" minimum:"1" maximum:"100" doc:"Absent: 1"`
	Unit  string     `json:"unit,omitempty" enum:"day,week,month" doc:"Absent: week"`
	Until *time.Time `json:"until,omitempty" doc:"No run begins after it"`
}

// Next returns the first time after now at which a campaign runs, nil for none. A month without the anchor's day has its last day instead.
// The clock shows the same at each run, whether daylight saving is on or not.
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

// atLeast returns a number of runs that were before now for sure, and not many fewer than all of them.
func (r Recurrence) atLeast(first, now time.Time) int {
	longest := map[string]time.Duration{"day": 25 * time.Hour, "week": 170 * time.Hour, "month": 745 * time.Hour}[r.Unit]
	return int(now.Sub(first)/(longest*time.Duration(r.Every))) - 1
}

// nth returns the time of a run, the anchor's for 0.
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

// onClock returns when the clock of a zone first shows what wall shows in UTC. Where it skips that, onClock returns when it begins to skip,
// which is the first moment after the gap (CONTRACT.md N8).
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
	start, _ := early.ZoneBounds() // the clock went forward over it
	return start
}

// local reads a moment, which is of the zone if it has no offset.
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
