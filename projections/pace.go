package projections

import "time"

// pace measures the recent rate of folded events.
type pace struct {
	now   func() time.Time // nil: measure nothing
	rate  int64
	since time.Time
	n     int64
}

// paceOver is the shortest time that gives a meaningful rate.
const paceOver = time.Second

// after adds folded events and returns the rate.
func (p *pace) after(events int) int64 {
	if p.now == nil {
		return p.rate
	}
	now := p.now()
	if p.since.IsZero() {
		p.since = now
	}
	p.n += int64(events)
	if took := now.Sub(p.since); took >= paceOver {
		p.rate, p.since, p.n = perSecond(p.n, took), now, 0
	}
	return p.rate
}

// perSecond returns events per second.
func perSecond(events int64, took time.Duration) int64 {
	return events * int64(time.Second) / max(int64(took), 1)
}
