package projections

import "time"

// pace measures how many events are folded a second, lately.
type pace struct {
	now   func() time.Time // nil: nothing is measured
	rate  int64
	since time.Time
	n     int64
}

// paceOver is the least time over which a rate means something.
const paceOver = time.Second

// after counts events that were folded and answers the rate.
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

// perSecond is so many events in a time.
func perSecond(events int64, took time.Duration) int64 {
	return events * int64(time.Second) / max(int64(took), 1)
}
