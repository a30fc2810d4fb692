package api

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// run runs the operation's steps and then its handler.
func (c *call) run(o *operation, r *http.Request, ctx huma.Context, next func(huma.Context)) {
	c.op, c.r = o, r
	c.view = view{humaContext: ctx, call: c}
	c.ctx = context.WithValue(r.Context(), callKey{}, c)
	if c.api.tracer != nil {
		c.trace()
	}
	if !o.Public || o.write() { // the response to a sign-in has secrets
		c.Header().Set("Cache-Control", "no-store")
	}
	if err := c.steps(); err != nil {
		if !c.leadsToSignIn(err) {
			c.refuse(err)
		}
		return
	}
	next(&c.view)
}

func (c *call) steps() error {
	for _, step := range c.op.entry {
		if err := step(c); err != nil {
			return err
		}
	}
	for _, step := range c.op.steps {
		if err := c.noted(step(c)); err != nil {
			return err
		}
	}
	return nil
}

// trace starts a span. It is a child of the caller's span if the request names one (W3C Trace Context).
func (c *call) trace() {
	parent := propagation.TraceContext{}.Extract(c.ctx, propagation.HeaderCarrier(c.r.Header))
	c.ctx, c.span = c.api.tracer.Start(parent, c.op.Method+" "+c.op.Path, //nolint:spancheck // report ends it
		trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(c.started),
		trace.WithAttributes(
			attribute.String("http.request.method", c.op.Method), attribute.String("http.route", c.op.Path),
			attribute.String("bahi.operation", c.op.ID), attribute.String("bahi.request_id", c.request.RequestID)))
}

type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	inFlight prometheus.Gauge
	noRoute  opMetrics
}

// opMetrics are the metrics of an operation.
type opMetrics struct {
	id      string
	seconds prometheus.Observer
	success prometheus.Counter
	status  int
}

// unrouted is the operation's name in metrics and logs for a request without a route. Metrics omit the path, because otherwise any client
// could fill them with paths.
const unrouted = "none"

func newMetrics(to prometheus.Registerer) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "bahi_http_requests_total", Help: "Requests by operation and status.",
		}, []string{"operation", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "bahi_http_request_seconds", Help: "Time from a request's head to the end of its response, by operation.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"operation"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "bahi_http_requests_in_flight", Help: "Requests in progress.",
		}),
	}
	if to != nil {
		to.MustRegister(m.requests, m.seconds, m.inFlight)
	}
	m.noRoute = opMetrics{id: unrouted, seconds: m.seconds.WithLabelValues(unrouted)}
	return m
}

func (m *metrics) of(o *operation) opMetrics {
	return opMetrics{
		id: o.ID, seconds: m.seconds.WithLabelValues(o.ID), status: o.Status,
		success: m.requests.WithLabelValues(o.ID, strconv.Itoa(o.Status)),
	}
}

// report reports the end of the request to metrics, trace and log.
func (c *call) report() {
	took := time.Since(c.started)
	own := &c.api.metrics.noRoute
	if c.op != nil {
		own = &c.op.metrics
	}
	own.seconds.Observe(took.Seconds())
	if c.status == own.status {
		own.success.Inc()
	} else {
		c.api.metrics.requests.WithLabelValues(own.id, strconv.Itoa(c.status)).Inc()
	}
	if c.span != nil {
		c.span.SetAttributes(attribute.Int("http.response.status_code", c.status))
		if c.cause != nil {
			c.span.SetStatus(codes.Error, c.cause.Error())
		}
		c.span.End()
	}
	c.log(own.id, took)
}

// log writes one line. It omits the query and the bodies, which have secrets and personal data.
func (c *call) log(operation string, took time.Duration) {
	level := slog.LevelInfo
	switch {
	case c.op == nil && c.api.pages[c.r.URL.Path]: // probes and scrapes come every few seconds
		level = slog.LevelDebug
	case c.status == http.StatusServiceUnavailable:
		level = slog.LevelWarn
	case c.status >= http.StatusInternalServerError || c.stack != nil:
		level = slog.LevelError
	}
	ctx := c.ctx
	if ctx == nil {
		ctx = c.r.Context()
	}
	if !c.api.config.Log.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 16)
	attrs = append(attrs,
		slog.String("request_id", c.request.RequestID), slog.String("operation", operation),
		slog.String("method", c.r.Method), slog.String("path", c.r.URL.Path), slog.Int("status", c.status),
		slog.Duration("took", took), slog.Int64("bytes", c.bytes), slog.String("actor", c.request.Actor.String()))
	if position, _, known := c.complete(); known {
		attrs = append(attrs, slog.Uint64("position", uint64(position)))
	}
	if c.code != "" {
		attrs = append(attrs, slog.String("code", c.code))
	}
	if c.span != nil {
		attrs = append(attrs, slog.String("trace_id", c.span.SpanContext().TraceID().String()))
	}
	if c.cause != nil {
		attrs = append(attrs, slog.Any("error", c.cause))
	}
	if c.stack != nil {
		attrs = append(attrs, slog.String("stack", string(c.stack)))
	}
	c.api.config.Log.LogAttrs(ctx, level, "request", attrs...)
}
