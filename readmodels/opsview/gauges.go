package opsview

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Gauges is a collector of metrics that each scrape reads, mostly from the database. So all processes report the same values. While the
// database does not respond, these metrics are missing.
type Gauges struct {
	Help  map[string]string // by the names of the metrics
	Label string            // label of the metrics; empty: none

	// Read sets the metrics.
	Read func(ctx context.Context, set SetGauge) error

	Failure string // message of a failed read
	Log     *slog.Logger
}

// SetGauge sets a metric.
type SetGauge func(name string, value float64, label ...string)

// scrapeTimeout is the timeout of a read.
const scrapeTimeout = 2 * time.Second

func (g Gauges) desc(name string) *prometheus.Desc {
	var labels []string
	if g.Label != "" {
		labels = []string{g.Label}
	}
	return prometheus.NewDesc(name, g.Help[name], labels, nil)
}

// Describe implements [prometheus.Collector].
func (g Gauges) Describe(out chan<- *prometheus.Desc) {
	for name := range g.Help {
		out <- g.desc(name)
	}
}

// Collect implements [prometheus.Collector].
func (g Gauges) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	err := g.Read(ctx, func(name string, value float64, label ...string) {
		out <- prometheus.MustNewConstMetric(g.desc(name), prometheus.GaugeValue, value, label...)
	})
	if err != nil {
		g.Log.Warn(g.Failure, "error", err) //nolint:sloglint // each collector has a constant
	}
}

// Flag returns 1 for true and 0 for false.
func Flag(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
