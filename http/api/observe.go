package api

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gorilla/mux"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// run checks the request and then runs the handler.
func (c *call) run(ctx huma.Context, next func(huma.Context)) {
	c.begin()
	vars := mux.Vars(c.r)
	for asked, own := range c.op.vars {
		vars[asked] = vars[own]
	}
	if !c.op.Public || c.op.write() { // the response to a sign-in has secrets
		c.Header().Set("Cache-Control", "no-store")
	}
	if err := c.check(); err == nil {
		next(huma.WithContext(ctx, c.ctx))
	} else if !c.leadsToSignIn(err) {
		c.refuse(err)
	}
}

// begin makes the call's context.
func (c *call) begin() {
	c.ctx = context.WithValue(c.r.Context(), callKey{}, c)
	if c.api.tracer != nil {
		c.trace()
	}
}

// check checks the caller, and then reads the request. It collects the faults of fields, and stops at any other error.
func (c *call) check() (err error) {
	o, known := c.op, !c.op.Public || c.op.OptionalAuth && c.identified()
	do := func(needed bool, step func() error) {
		if needed && err == nil {
			err = step()
		}
	}
	read := func(needed bool, step func() error) {
		do(needed, func() error { return c.noted(step()) })
	}
	do(known, c.authenticate)
	do(!o.Refusals, c.limit)
	do(known, c.enter)
	do(!o.Public, c.permit)
	do(c.api.config.Admit != nil && o.write(), func() error { return c.api.config.Admit(c.ctx, o.Op) })
	read(o.StrictQuery, c.strictQuery)
	read(len(o.Reads) > 0, c.freshness)
	read(true, c.preferences)
	read(o.write(), c.conditions)
	read(o.body != nil || o.raw, c.read)
	read(o.file != nil, c.receive)
	return err
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
}

// unrouted is the operation's name in metrics and logs for a request without a route. Metrics omit the path, because otherwise any client
// could fill them with paths.
const unrouted = "none"

func newMetrics(to prometheus.Registerer) *metrics {
	with := promauto.With(to)
	return &metrics{
		requests: with.NewCounterVec(prometheus.CounterOpts{
			Name: "bahi_http_requests_total", Help: "Requests by operation and status.",
		}, []string{"operation", "status"}),
		seconds: with.NewHistogramVec(prometheus.HistogramOpts{
			Name: "bahi_http_request_seconds", Help: "Time from a request's head to the end of its response, by operation.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"operation"}),
		inFlight: with.NewGauge(prometheus.GaugeOpts{
			Name: "bahi_http_requests_in_flight", Help: "Requests in progress.",
		}),
	}
}

// report reports the end of the request to metrics, trace and log.
func (c *call) report() {
	took := time.Since(c.started)
	operation := unrouted
	if c.op != nil {
		operation = c.op.ID
	}
	c.api.metrics.seconds.WithLabelValues(operation).Observe(took.Seconds())
	c.api.metrics.requests.WithLabelValues(operation, strconv.Itoa(c.status)).Inc()
	if c.span != nil {
		c.span.SetAttributes(attribute.Int("http.response.status_code", c.status))
		if c.cause != nil {
			c.span.SetStatus(codes.Error, c.cause.Error())
		}
		c.span.End()
	}
	c.log(operation, took)
}

// log writes one line. It omits the query and the bodies, which have secrets and personal data.
func (c *call) log(operation string, took time.Duration) {
	level := slog.LevelInfo
	switch {
	case c.op == nil && c.api.pages[c.r.URL.Path]: // probes and scrapes arrive every few seconds
		level = slog.LevelDebug
	case c.status == http.StatusServiceUnavailable:
		level = slog.LevelWarn
	case c.status >= http.StatusInternalServerError || c.stack != nil:
		level = slog.LevelError
	}
	attrs := []slog.Attr{
		slog.String("request_id", c.request.RequestID), slog.String("operation", operation),
		slog.String("method", c.r.Method), slog.String("path", c.r.URL.Path), slog.Int("status", c.status),
		slog.Duration("took", took), slog.Int64("bytes", c.bytes), slog.String("actor", c.request.Actor.String()),
	}
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
	c.api.config.Log.LogAttrs(c.r.Context(), level, "request", attrs...)
}
