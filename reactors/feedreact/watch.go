package feedreact

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/projections"
)

// The states of a feed.
const (
	Live    = "live"    // this process or another forwards events
	Waiting = "waiting" // the broker or the database does not respond, or was not called yet; the feed retries
	Parked  = "parked"  // an operator must act
)

// Status is this process's state of the feed.
type Status struct {
	State    string
	Position event.Position // all events up to here were forwarded or skipped
	Working  bool           // this process forwards
	Error    string         // why it waits or is parked
}

// Status returns this process's state of the feed.
func (f *Feed) Status() Status {
	now := f.runner.Statuses()[Name]
	s := Status{State: Live, Position: now.Position, Working: now.Working, Error: now.Error}
	switch {
	case now.Parked:
		s.State = Parked
	case now.Error != "" || !now.Working && !now.Ready: // not yet started
		s.State = Waiting
	}
	return s
}

// Lag measures the part of the log that a feed has not forwarded.
type Lag struct {
	Head event.Position // head of the log
	Time time.Duration  // since the oldest unforwarded event was recorded
}

// Behind returns the lag of a feed at a position.
func Behind(ctx context.Context, store eventstore.Store, at event.Position, now time.Time) (Lag, error) {
	head, err := store.Head(ctx)
	if err != nil || head <= at {
		return Lag{Head: head}, err
	}
	for e, err := range store.ReadAll(ctx, at, eventstore.Forwards) {
		return Lag{Head: head, Time: max(0, now.Sub(e.At))}, err
	}
	return Lag{Head: head}, nil
}

// Register adds the feed's metrics.
func (f *Feed) Register(to prometheus.Registerer) {
	to.MustRegister(f.published, f.failures, gauges{f})
}

// gauges reports the feed's progress from the database. All processes report the same, except which one forwards. It reports nothing while
// the database does not respond.
type gauges struct{ f *Feed }

var (
	positionGauge = prometheus.NewDesc("bahi_feed_position", "Position of the log up to which events are forwarded.", nil, nil)
	eventsGauge   = prometheus.NewDesc("bahi_feed_lag_events", "Events of the log that are not forwarded yet.", nil, nil)
	secondsGauge  = prometheus.NewDesc("bahi_feed_lag_seconds", "Age of the oldest event that is not forwarded yet.", nil, nil)
	workingGauge  = prometheus.NewDesc("bahi_feed_active", "1 if this process forwards.", nil, nil)
	parkedGauge   = prometheus.NewDesc("bahi_feed_parked", "1 while the feed is stopped and an operator has to act.", nil, nil)
)

// scrapeTimeout is the timeout of a scrape.
const scrapeTimeout = 2 * time.Second

// Describe implements [prometheus.Collector].
func (g gauges) Describe(out chan<- *prometheus.Desc) {
	out <- positionGauge
	out <- eventsGauge
	out <- secondsGauge
	out <- parkedGauge
	out <- workingGauge
}

// Collect implements [prometheus.Collector].
func (g gauges) Collect(out chan<- prometheus.Metric) {
	set := func(d *prometheus.Desc, value float64) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value)
	}
	set(workingGauge, one(g.f.Status().Working))
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	at, err := projections.CheckpointOf(ctx, g.f.config.Pool, Name)
	if at == nil && err == nil {
		return // the feed has never run
	}
	var lag Lag
	if err == nil {
		lag, err = Behind(ctx, g.f.config.Store, at.Position, time.Now())
	}
	if err != nil {
		g.f.config.Log.Warn("collecting the feed's metrics failed", "error", err)
		return
	}
	set(positionGauge, float64(at.Position))
	set(eventsGauge, float64(max(lag.Head, at.Position)-at.Position))
	set(secondsGauge, lag.Time.Seconds())
	set(parkedGauge, one(at.Error != nil))
}

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
