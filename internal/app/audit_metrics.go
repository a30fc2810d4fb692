package app

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"bahi/domain/event"
	"bahi/eventstore"
)

// auditMetrics reports unsigned events and checkpoints that could not be copied. Metrics are public, so they contain no addresses.
type auditMetrics struct {
	*System

	failures *prometheus.CounterVec
	failing  *prometheus.GaugeVec
}

var unsigned = prometheus.NewDesc("bahi_audit_unsigned_seconds",
	"Age of the oldest event that no checkpoint covers; 0 if there is none.", nil, nil)

// newAuditMetrics starts counting this process's copies of checkpoints.
func newAuditMetrics(s *System) *auditMetrics {
	outlets, labels := s.outletNames(), []string{"outlet"}
	m := &auditMetrics{
		System: s,
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "bahi_audit_outlet_failures_total", Help: "Failed attempts of this process to write a checkpoint to the outlet.",
		}, labels),
		failing: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "bahi_audit_outlet_failing", Help: "1 while the outlet lacks this process's newest checkpoint.",
		}, labels),
	}
	for _, name := range outlets {
		m.failures.WithLabelValues(name)
		m.failing.WithLabelValues(name)
	}
	s.Signer.Brought = func(nth int, err error) {
		if err != nil {
			m.failures.WithLabelValues(outlets[nth]).Inc()
		}
		m.failing.WithLabelValues(outlets[nth]).Set(one(err != nil))
	}
	return m
}

// outletNames returns the names of the signer's outlets, in their order.
func (s *System) outletNames() (names []string) {
	if s.Settings.AuditWitness != "" {
		names = append(names, "witness")
	}
	for i := range s.Settings.AuditCopies {
		names = append(names, fmt.Sprintf("copies-%d", i+1))
	}
	return names
}

// Describe implements [prometheus.Collector].
func (m *auditMetrics) Describe(out chan<- *prometheus.Desc) {
	out <- unsigned
	m.failures.Describe(out)
	m.failing.Describe(out)
}

// Collect implements [prometheus.Collector].
func (m *auditMetrics) Collect(out chan<- prometheus.Metric) {
	m.failures.Collect(out)
	m.failing.Collect(out)
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
func (m *auditMetrics) unsigned(ctx context.Context) (time.Duration, error) {
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
