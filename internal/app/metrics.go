package app

import (
	"context"
	"fmt"
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
		s.projectionGauges(), s.workingGauge(), s.unsignedGauge())
	s.countPublishers(metrics)
	s.Commands.Register(metrics)
	s.queue.Register(metrics)
	if s.feed != nil {
		s.feed.Register(metrics)
	}
}

// projectionGauges reports the state of the projections, with one query of their registry per scrape.
func (s *System) projectionGauges() opsview.Gauges {
	const prefix = "bahi_projection_"
	registry := s.registry()
	return opsview.Gauges{
		Help: map[string]string{
			prefix + "position":    "Position of the log that the projection has reached.",
			prefix + "lag_events":  "Events of the log that are not in the tables yet.",
			prefix + "lag_seconds": "Age of the oldest event that is not in the tables yet.",
			prefix + "parked":      "1 while an error has stopped the projection.",
			prefix + "paused":      "1 while an operator has paused the projection.",
			prefix + "skipped":     "Events that the projection skipped for an operator.",
			prefix + "build_done":  "Position that the rebuild has reached.",
			prefix + "build_total": "Position up to which the rebuild fills its tables.",
			prefix + "build_rate":  "Events that the rebuild folds per second.",
		},
		Label: "projection", Failure: "collecting projection metrics failed", Log: s.Log,
		Read: func(ctx context.Context, set opsview.SetGauge) error {
			all, err := registry.All(ctx)
			for _, p := range all {
				set(prefix+"position", float64(p.Position), p.Name)
				set(prefix+"lag_events", float64(p.LagEvents), p.Name)
				set(prefix+"lag_seconds", p.LagSeconds, p.Name)
				set(prefix+"parked", opsview.Flag(p.LastError != nil), p.Name)
				set(prefix+"paused", opsview.Flag(p.State == "paused"), p.Name)
				set(prefix+"skipped", float64(p.Skipped), p.Name)
				if b := p.Build; b != nil {
					set(prefix+"build_done", float64(b.Done), p.Name)
					set(prefix+"build_total", float64(b.Total), p.Name)
					set(prefix+"build_rate", b.Rate, p.Name)
				}
			}
			return err
		},
	}
}

// workingGauge reports the projections on which this process works; others may work on the rest.
func (s *System) workingGauge() opsview.Gauges {
	const name = "bahi_projection_active"
	return opsview.Gauges{
		Help: map[string]string{name: "1 if this process works on the projection."}, Label: "projection",
		Read: func(_ context.Context, set opsview.SetGauge) error {
			for of, status := range s.Runner.Statuses() {
				set(name, opsview.Flag(status.Working), of)
			}
			return nil
		},
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
		failing.WithLabelValues(publishers[nth]).Set(opsview.Flag(err != nil))
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

// unsignedGauge reports the age of events without a checkpoint.
func (s *System) unsignedGauge() opsview.Gauges {
	const name = "bahi_audit_unsigned_seconds"
	return opsview.Gauges{
		Help:    map[string]string{name: "Age of the oldest event that no checkpoint covers; 0 if there is none."},
		Failure: "collecting the metric of unsigned events failed", Log: s.Log,
		Read: func(ctx context.Context, set opsview.SetGauge) error {
			waits, err := s.unsigned(ctx)
			if err == nil {
				set(name, waits.Seconds())
			}
			return err
		},
	}
}

// unsigned returns how long the oldest event without a checkpoint has waited.
func (s *System) unsigned(ctx context.Context) (time.Duration, error) {
	newest, err := s.Signer.Newest(ctx)
	if err != nil {
		return 0, err
	}
	var covered event.Position
	if newest != nil {
		covered = newest.Position
	}
	for e, err := range s.Store.ReadAll(ctx, covered, eventstore.Forwards) {
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
