package webhooks

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics counts the calls that this process received. The numbers of waiting and parked calls are read from the inbox, and are the same in
// all processes.
type metrics struct {
	inbox                       receiver
	received, refused, repeated *prometheus.CounterVec
}

var (
	waiting = prometheus.NewDesc("bahi_webhook_pending", "Calls that wait to be handled.", []string{"endpoint"}, nil)
	parked  = prometheus.NewDesc("bahi_webhook_parked", "Calls that could not be handled.", []string{"endpoint"}, nil)
	lag     = prometheus.NewDesc("bahi_webhook_lag_seconds", "How long the oldest call has waited to be handled.", []string{"endpoint"}, nil)
)

// scrapeTimeout bounds the query of the inbox for a scrape.
const scrapeTimeout = 2 * time.Second

func newMetrics(i receiver, endpoints []Endpoint) *metrics {
	counter := func(name, help string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "bahi_webhook_" + name + "_total", Help: help}, []string{"endpoint"})
		for _, e := range endpoints {
			c.WithLabelValues(e.ID)
		}
		return c
	}
	return &metrics{
		inbox:    i,
		received: counter("received", "Calls with a valid proof that were recorded."),
		refused:  counter("refused", "Calls with a missing or wrong signature."),
		repeated: counter("repeated", "Calls that were recorded before."),
	}
}

// Describe implements [prometheus.Collector].
func (m *metrics) Describe(out chan<- *prometheus.Desc) {
	m.received.Describe(out)
	m.refused.Describe(out)
	m.repeated.Describe(out)
	out <- waiting
	out <- parked
	out <- lag
}

// Collect implements [prometheus.Collector]. While the database is unreachable, the series of the backlog are missing.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	m.received.Collect(out)
	m.refused.Collect(out)
	m.repeated.Collect(out)
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	all, err := m.inbox.Backlogs(ctx)
	if err != nil {
		return
	}
	for _, b := range all {
		gauge := func(d *prometheus.Desc, value float64) {
			out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, b.Endpoint)
		}
		gauge(waiting, float64(b.Waiting))
		gauge(parked, float64(b.Parked))
		seconds := 0.0
		if b.Oldest != nil {
			seconds = max(0, time.Since(*b.Oldest).Seconds())
		}
		gauge(lag, seconds)
	}
}
