package projections

import "time"

// pace measures how many events are folded a second, lately.
type pace struct {
	now   func() time.Time // nil: nothing is measured
	rate  float64
	since time.Time
	n     int
}

// paceOver is the least time over which a rate means something.
const paceOver = time.Second

// after counts events that were folded and answers the rate.
func (p *pace) after(events int) float64 {
	if p.now == nil {
		return p.rate
	}
	now := p.now()
	if p.since.IsZero() {
		p.since = now
	}
	p.n += events
	if took := now.Sub(p.since); took >= paceOver {
		p.rate, p.since, p.n = float64(p.n)/took.Seconds(), now, 0
	}
	return p.rate
}
