package feed

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"bahi/domain/event"
	"bahi/eventstore"
)

// The states of a feed.
const (
	Live    = "live"    // events are forwarded, by this process or by another
	Waiting = "waiting" // the broker or the database does not answer, or was not asked yet; it is tried again
	Parked  = "parked"  // an operator has to do something
)

// Status is what this process knows of the feed.
type Status struct {
	State    string
	Position event.Position // all events up to here are with the broker, or were passed over
	Working  bool           // this process is the one that forwards
	Error    string         // why it waits or is parked
}

// Status returns what this process knows.
func (f *Feed) Status() Status {
	now := f.runner.Statuses()[Name]
	s := Status{State: Live, Position: now.Position, Working: now.Working, Error: now.Error}
	switch {
	case now.Parked:
		s.State = Parked
	case now.Error != "" || !now.Working && !now.Ready: // it has not looked yet
		s.State = Waiting
	}
	return s
}

// Lag is what a feed has not forwarded yet.
type Lag struct {
	Head event.Position // of the log
	Time time.Duration  // since the oldest of them was recorded
}

// Behind returns the lag of a feed that has come to a position of the log.
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

type metrics struct {
	published, failures prometheus.Counter
}

func newMetrics() *metrics {
	return &metrics{
		prometheus.NewCounter(prometheus.CounterOpts{Name: "bahi_feed_published_total", Help: "Events that this process has forwarded; those once more that were forwarded again."}),
		prometheus.NewCounter(prometheus.CounterOpts{Name: "bahi_feed_failures_total", Help: "Attempts of this process at which the broker did not take all events."}),
	}
}

// Register adds the feed's metrics.
func (f *Feed) Register(to prometheus.Registerer) {
	to.MustRegister(f.metrics.published, f.metrics.failures, gauges{f})
}

// gauges tells how far the feed is, when it is asked. So each process tells the same, whichever of them forwards, but
// for which that is; while the database does not answer, there is no more to tell.
type gauges struct{ f *Feed }

var (
	positionGauge = prometheus.NewDesc("bahi_feed_position", "Position of the log up to which events are forwarded.", nil, nil)
	eventsGauge   = prometheus.NewDesc("bahi_feed_lag_events", "Events of the log that are not forwarded yet.", nil, nil)
	secondsGauge  = prometheus.NewDesc("bahi_feed_lag_seconds", "How long the oldest of them has been in the log.", nil, nil)
	workingGauge  = prometheus.NewDesc("bahi_feed_working", "1 where this process is the one of all that forwards.", nil, nil)
	parkedGauge   = prometheus.NewDesc("bahi_feed_parked", "1 while the feed stands still until an operator does something.", nil, nil)
)

// scrapeWithin is how long a scrape may take.
const scrapeWithin = 2 * time.Second

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
	tell := func(d *prometheus.Desc, value float64) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value)
	}
	tell(workingGauge, one(g.f.Status().Working))
	ctx, cancel := context.WithTimeout(context.Background(), scrapeWithin)
	defer cancel()
	at, err := Look(ctx, g.f.config.Pool)
	var lag Lag
	if err == nil {
		lag, err = Behind(ctx, g.f.config.Store, at.Position, time.Now())
	}
	if errors.Is(err, ErrNotBegun) {
		return
	}
	if err != nil {
		g.f.config.Log.Warn("the metrics of the feed are left out", "error", err)
		return
	}
	tell(positionGauge, float64(at.Position))
	if !g.f.config.Gaps {
		tell(eventsGauge, float64(max(lag.Head, at.Position)-at.Position))
	}
	tell(secondsGauge, lag.Time.Seconds())
	tell(parkedGauge, one(at.Error != nil))
}

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
