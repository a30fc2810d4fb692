package api_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"bahi/domain/ledger/bank"
	"bahi/http/api"
)

type pair[A, B any] struct {
	First  A `json:"first"`
	Second B `json:"second"`
}

type named[A any] struct {
	One A `json:"one"`
}

// SchemaName implements [api.Named].
func (named[A]) SchemaName() string { return "NamedByItself" }

func TestEqualTypeNamesDoNotClash(t *testing.T) {
	t.Parallel()
	type Entry struct {
		Text string `json:"text"`
	}
	a := api.New(api.Config{})
	api.Handle(a, api.Op{ID: "one", Method: "POST", Path: "/one"}, none[struct{ Body bank.Entry }])
	api.Handle(a, api.Op{ID: "two", Method: "POST", Path: "/two"}, none[struct{ Body Entry }])
	api.Handle(a, api.Op{ID: "three", Method: "POST", Path: "/three"}, none[struct {
		Body pair[bank.Entry, bank.Entry]
	}])
	api.Handle(a, api.Op{ID: "four", Method: "POST", Path: "/four"}, none[struct {
		Body named[bank.Entry]
	}])
	var spec struct {
		Components struct {
			Schemas map[string]any `json:"schemas"`
		} `json:"components"`
	}
	require.NoError(t, json.Unmarshal(a.OpenAPI(), &spec))
	for _, name := range []string{"BankEntry", "ApiTestEntry", "ApiTestPairBankEntryBankEntry", "NamedByItself"} {
		require.Contains(t, spec.Components.Schemas, name)
	}
}

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
