package feedreact

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/projections"
	"bahi/readmodels/opsview"
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

// Register adds the feed's metrics. The gauges are of the database, so all processes report the same, except which one forwards.
func (f *Feed) Register(to prometheus.Registerer) {
	to.MustRegister(f.published, f.failures, opsview.Gauges{
		Help: map[string]string{
			"bahi_feed_position":    "Position of the log up to which events are forwarded.",
			"bahi_feed_lag_events":  "Events of the log that are not forwarded yet.",
			"bahi_feed_lag_seconds": "Age of the oldest event that is not forwarded yet.",
			"bahi_feed_active":      "1 if this process forwards.",
			"bahi_feed_parked":      "1 while the feed is stopped and an operator has to act.",
		},
		Read: f.gauges, Failure: "collecting the feed's metrics failed", Log: f.config.Log,
	})
}

func (f *Feed) gauges(ctx context.Context, set opsview.SetGauge) error {
	set("bahi_feed_active", opsview.Flag(f.Status().Working))
	at, err := projections.CheckpointOf(ctx, f.config.Pool, Name)
	if at == nil {
		return err // nil: the feed has never run
	}
	lag, err := Behind(ctx, f.config.Store, at.Position, time.Now())
	if err != nil {
		return err
	}
	set("bahi_feed_position", float64(at.Position))
	set("bahi_feed_lag_events", float64(max(lag.Head, at.Position)-at.Position))
	set("bahi_feed_lag_seconds", lag.Time.Seconds())
	set("bahi_feed_parked", opsview.Flag(at.Error != nil))
	return nil
}
