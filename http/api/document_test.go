package api_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"bahi/http/api"
)

func TestASpanTellsOfTheRequest(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewInMemoryExporter()
	s := serve(t, func(c *api.Config) { c.Tracer = trace.NewTracerProvider(trace.WithSyncer(spans)) })
	const parent = "4bf92f3577b34da6a3ce929d0e0e4736"
	s.as(t, "bahi_clerk").With("Traceparent", "00-"+parent+"-00f067aa0ba902b7-01").POST("/ledger/3", good).Status(201)
	s.as(t, "").GET("/fail/odd").Status(500)
	s.as(t, "").GET("/nowhere").Status(404)
	require.Eventually(t, func() bool { return len(s.lines(t)) == 3 }, wait, tick)
	all := spans.GetSpans()
	require.Len(t, all, 2)
	require.Equal(t, "POST /ledger/{account_id}", all[0].Name)
	require.Equal(t, parent, all[0].SpanContext.TraceID().String())
	require.Equal(t, codes.Unset, all[0].Status.Code)
	require.Equal(t, codes.Error, all[1].Status.Code)
	require.Equal(t, parent, s.lines(t)[0]["trace_id"])
}
