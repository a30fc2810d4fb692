package webhooks

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"bahi/readmodels/opsview"
)

// metrics counts the calls that this process received.
type metrics struct {
	received, refused, repeated *prometheus.CounterVec
}

// The gauges of the inbox.
const (
	waiting = "bahi_webhook_pending"
	parked  = "bahi_webhook_parked"
	lag     = "bahi_webhook_lag_seconds"
)

func (r *Routes) metrics() *metrics {
	counter := func(name, help string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "bahi_webhook_" + name + "_total", Help: help}, []string{"endpoint"})
		for _, e := range r.Endpoints {
			c.WithLabelValues(e.ID)
		}
		return c
	}
	m := &metrics{
		received: counter("received", "Calls with a valid proof that were recorded."),
		refused:  counter("refused", "Calls with a missing or wrong signature."),
		repeated: counter("repeated", "Calls that were recorded before."),
	}
	if r.Metrics != nil {
		r.Metrics.MustRegister(m.received, m.refused, m.repeated, opsview.Gauges{
			Help: map[string]string{
				waiting: "Calls that wait to be handled.", parked: "Calls that could not be handled.",
				lag: "How long the oldest call has waited to be handled.",
			},
			Label: "endpoint", Read: r.backlogs, Log: slog.New(slog.DiscardHandler),
		})
	}
	return m
}

// backlogs sets the gauges of the inbox.
func (r *Routes) backlogs(ctx context.Context, set opsview.SetGauge) error {
	all, err := r.Inbox.Backlogs(ctx)
	for _, b := range all {
		set(waiting, float64(b.Waiting), b.Endpoint)
		set(parked, float64(b.Parked), b.Endpoint)
		seconds := 0.0
		if b.Oldest != nil {
			seconds = max(0, time.Since(*b.Oldest).Seconds())
		}
		set(lag, seconds, b.Endpoint)
	}
	return err
}
