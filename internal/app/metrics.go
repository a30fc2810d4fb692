package app

import (
	"context"
	"log/slog"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"bahi/readmodels/opsview"
)

// Register adds the metrics of the process, commands, jobs, projections, feed and audit. Call it before anything is signed.
func (s *System) Register(metrics *prometheus.Registry) {
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		&projectionMetrics{registry: s.registry(), log: s.Log}, workingMetric{s}, newAuditMetrics(s))
	s.Commands.Register(metrics)
	s.queue.Register(metrics)
	if s.feed != nil {
		s.feed.Register(metrics)
	}
}

// scrapeTimeout limits the query of the projections' registry for a scrape.
const scrapeTimeout = 2 * time.Second

// projectionMetrics reports the state of the projections, with one query of their registry per scrape. So all processes report the same,
// whichever works. While the database does not respond, these series are missing, and the other metrics remain.
type projectionMetrics struct {
	registry *opsview.Projections
	log      *slog.Logger
}

// projectionGauges are the gauges of each projection, buildGauges those of each running rebuild.
var (
	projectionGauges = []gauge[opsview.Projection]{
		{"position", "Position of the log that the projection has reached.",
			func(p opsview.Projection) float64 { return float64(p.Position) }},
		{"lag_events", "Events of the log that are not in the tables yet.", func(p opsview.Projection) float64 { return float64(p.LagEvents) }},
		{"lag_seconds", "Age of the oldest event that is not in the tables yet.", func(p opsview.Projection) float64 { return p.LagSeconds }},
		{"parked", "1 while an error has stopped the projection.", func(p opsview.Projection) float64 { return one(p.LastError != nil) }},
		{"paused", "1 while an operator has paused the projection.", func(p opsview.Projection) float64 { return one(p.State == "paused") }},
		{"skipped", "Events that the projection skipped for an operator.", func(p opsview.Projection) float64 { return float64(p.Skipped) }},
	}
	buildGauges = []gauge[opsview.Build]{
		{"build_done", "Position that the rebuild has reached.", func(b opsview.Build) float64 { return float64(b.Done) }},
		{"build_total", "Position up to which the rebuild fills its tables.", func(b opsview.Build) float64 { return float64(b.Total) }},
		{"build_rate", "Events that the rebuild folds per second.", func(b opsview.Build) float64 { return b.Rate }},
	}
)

// gauge is a metric of each T; its value may be missing.
type gauge[T any] struct {
	name, help string
	of         func(T) float64
}

func (g gauge[T]) desc() *prometheus.Desc {
	return prometheus.NewDesc("bahi_projection_"+g.name, g.help, []string{"projection"}, nil)
}

func (g gauge[T]) tell(out chan<- prometheus.Metric, projection string, of T) {
	if value := g.of(of); !math.IsNaN(value) {
		out <- prometheus.MustNewConstMetric(g.desc(), prometheus.GaugeValue, value, projection)
	}
}

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// Describe implements [prometheus.Collector].
func (m *projectionMetrics) Describe(out chan<- *prometheus.Desc) {
	for _, g := range projectionGauges {
		out <- g.desc()
	}
	for _, g := range buildGauges {
		out <- g.desc()
	}
}

// Collect implements [prometheus.Collector].
func (m *projectionMetrics) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	all, err := m.registry.All(ctx)
	if err != nil {
		m.log.Warn("collecting projection metrics failed", "error", err)
		return
	}
	for _, p := range all {
		for _, g := range projectionGauges {
			g.tell(out, p.Name, p)
		}
		if p.Build == nil {
			continue
		}
		for _, g := range buildGauges {
			g.tell(out, p.Name, *p.Build)
		}
	}
}

// workingMetric reports the projections on which this process works; others may work on the rest.
type workingMetric struct{ *System }

var working = prometheus.NewDesc("bahi_projection_working",
	"1 if this process works on the projection.", []string{"projection"}, nil)

// Describe implements [prometheus.Collector].
func (workingMetric) Describe(out chan<- *prometheus.Desc) { out <- working }

// Collect implements [prometheus.Collector].
func (m workingMetric) Collect(out chan<- prometheus.Metric) {
	for name, s := range m.Runner.Statuses() {
		out <- prometheus.MustNewConstMetric(working, prometheus.GaugeValue, one(s.Working), name)
	}
}
