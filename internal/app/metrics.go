package app

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/readmodels/opsview"
)

// Register adds the metrics of the process, commands, jobs, projections, feed and audit. Call it before anything is signed.
func (s *System) Register(metrics *prometheus.Registry) {
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		&projectionMetrics{registry: s.registry(), log: s.Log}, workingMetric{s}, unsignedMetric{s})
	s.countPublishers(metrics)
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

// projectionGauges are the gauges of each projection, buildGauges the gauges of each running rebuild.
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

func (g gauge[T]) gather(out chan<- prometheus.Metric, projection string, of T) {
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
			g.gather(out, p.Name, p)
		}
		if p.Build == nil {
			continue
		}
		for _, g := range buildGauges {
			g.gather(out, p.Name, *p.Build)
		}
	}
}

// workingMetric reports the projections on which this process works; others may work on the rest.
type workingMetric struct{ *System }

var working = prometheus.NewDesc("bahi_projection_active",
	"1 if this process works on the projection.", []string{"projection"}, nil)

// Describe implements [prometheus.Collector].
func (workingMetric) Describe(out chan<- *prometheus.Desc) { out <- working }

// Collect implements [prometheus.Collector].
func (m workingMetric) Collect(out chan<- prometheus.Metric) {
	for name, s := range m.Runner.Statuses() {
		out <- prometheus.MustNewConstMetric(working, prometheus.GaugeValue, one(s.Working), name)
	}
}

const (
	// gcPercent lets the heap grow further between collections than Go's default: the heap is small, and collections took a tenth of the
	// total time.
	gcPercent = 300

	// gcLeast is Go's default, which applies to a large heap.
	gcLeast = 100

	// gcGrowth is the maximum growth of a heap between two collections at more than Go's default. Without it, thousands of readers that
	// hold 40 kB each would take four times as much.
	gcGrowth = 96 << 20
)

// TuneCollector sets how often this process collects garbage, and adapts that to its memory in use, unless GOGC sets it.
func TuneCollector() {
	if os.Getenv("GOGC") != "" {
		return
	}
	now := gcLeast
	go func() {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		for range time.Tick(time.Second) {
			metrics.Read(live)
			if percent := GCPercentOf(live[0].Value.Uint64()); percent != now {
				now = percent
				debug.SetGCPercent(now)
			}
		}
	}()
}

// GCPercentOf returns the growth, in percent of the memory in use, after which to collect. It has steps of
// 25, because each change stops the process for a moment.
func GCPercentOf(live uint64) int {
	const step = 25
	return max(gcLeast, min(gcPercent, int(gcGrowth*100/max(live, 1))/step*step))
}

// unsignedMetric reports the age of events without a checkpoint.
type unsignedMetric struct{ *System }

var unsigned = prometheus.NewDesc("bahi_audit_unsigned_seconds",
	"Age of the oldest event that no checkpoint covers; 0 if there is none.", nil, nil)

// countPublishers counts this process's copies of checkpoints. Metrics are public, so they contain no addresses.
func (s *System) countPublishers(metrics prometheus.Registerer) {
	publishers, labels := s.publisherNames(), []string{"publisher"}
	failures := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "bahi_audit_publisher_failures_total", Help: "Failed attempts of this process to write a checkpoint to the publisher.",
	}, labels)
	failing := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "bahi_audit_publisher_failing", Help: "1 while the publisher lacks this process's newest checkpoint.",
	}, labels)
	metrics.MustRegister(failures, failing)
	for _, name := range publishers {
		failures.WithLabelValues(name)
		failing.WithLabelValues(name)
	}
	s.Signer.Brought = func(nth int, err error) {
		if err != nil {
			failures.WithLabelValues(publishers[nth]).Inc()
		}
		failing.WithLabelValues(publishers[nth]).Set(one(err != nil))
	}
}

// publisherNames returns the names of the signer's publishers, in their order.
func (s *System) publisherNames() (names []string) {
	if s.Settings.AuditWitness != "" {
		names = append(names, "witness")
	}
	for i := range s.Settings.AuditCopies {
		names = append(names, fmt.Sprintf("copies-%d", i+1))
	}
	return names
}

// Describe implements [prometheus.Collector].
func (unsignedMetric) Describe(out chan<- *prometheus.Desc) { out <- unsigned }

// Collect implements [prometheus.Collector].
func (m unsignedMetric) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	waits, err := m.unsigned(ctx)
	if err != nil {
		m.Log.Warn("collecting the metric of unsigned events failed", "error", err)
		return
	}
	out <- prometheus.MustNewConstMetric(unsigned, prometheus.GaugeValue, waits.Seconds())
}

// unsigned returns how long the oldest event without a checkpoint has waited.
func (m unsignedMetric) unsigned(ctx context.Context) (time.Duration, error) {
	newest, err := m.Signer.Newest(ctx)
	if err != nil {
		return 0, err
	}
	var covered event.Position
	if newest != nil {
		covered = newest.Position
	}
	for e, err := range m.Store.ReadAll(ctx, covered, eventstore.Forwards) {
		return max(0, time.Since(e.At)), err
	}
	return 0, nil
}

// flushTimeout limits the sending of the last traces at the end of the process.
const flushTimeout = 2 * time.Second

// Tracing returns the provider of traces; nil without an endpoint.
func Tracing(ctx context.Context, endpoint string) (trace.TracerProvider, func(), error) {
	if endpoint == "" {
		return nil, func() {}, nil
	}
	if err := checkURL("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint); err != nil {
		return nil, nil, err
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(endpoint))
	if err != nil {
		return nil, nil, fmt.Errorf("OTEL_EXPORTER_OTLP_ENDPOINT: %w", err)
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", "bahi"), attribute.String("service.version", Version))),
	)
	return provider, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
		defer cancel()
		_ = provider.Shutdown(ctx)
	}, nil
}
