package api_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"bahi/domain/ledger/bank"
	"bahi/http/api"
)

func TestDocumentMatchesTheServersRules(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a := s.as(t, "").GET("/openapi.json").Status(200)
	require.Equal(t, "application/openapi+json", a.Header("Content-Type"))
	var spec any
	require.NoError(t, json.Unmarshal([]byte(a.Text), &spec))
	at := func(path string) any {
		t.Helper()
		node := spec
		for step := range strings.FieldsSeq(path) {
			switch n := node.(type) {
			case map[string]any:
				require.Contains(t, n, step, path)
				node = n[step]
			default:
				t.Fatalf("%s: nothing below %s", path, step)
			}
		}
		return node
	}
	require.Equal(t, "3.1.0", at("openapi"))
	require.Equal(t, "bearer", at("components securitySchemes bearer scheme"))
	require.Equal(t, "number", at("components schemas ApiTestEntry properties amount type"))
	require.Equal(t, "string", at("components schemas ApiTestRow properties date type"))
	require.Equal(t, "date", at("components schemas ApiTestRow properties date format"))
	require.InDelta(t, 10, at("components schemas ApiTestEntry properties description maxLength"), 0)
	require.Equal(t, []any{"cash", "metal"}, at("components schemas ApiTestRow properties kind enum"))
	require.Equal(t, []any{"date"}, at("components schemas ApiTestRow required"))
	require.Equal(t, true, at("paths /ledger/{account_id} post requestBody required"))
	require.Equal(t, "ledger:write", at("paths /ledger/{account_id} post x-permission"))
	require.Equal(t, "ledger", at("paths /ledger/{account_id} post x-rate-limit"))
	require.Equal(t, "#/components/responses/UnprocessableEntity", at("paths /ledger/{account_id} post responses 422 $ref"))
	require.Equal(t, "#/components/schemas/Problem",
		at("components responses UnprocessableEntity content application/problem+json schema $ref"))
	require.Contains(t, at("components schemas Problem properties"), "request_id")
	at("paths /ledger/{account_id} post responses 201 headers Bahi-Position")
	at("paths /ledger/{account_id} post responses 201 headers ETag")
	parameters := func(path string) (names []any) {
		list, _ := at(path).([]any)
		for _, p := range list {
			parameter, _ := p.(map[string]any)
			names = append(names, parameter["name"])
		}
		return names
	}
	require.ElementsMatch(t, []any{"account_id", "Bahi-Workspace", "Idempotency-Key", "If-Match", "Bahi-Reason", "Prefer", "Bahi-Dry-Run"},
		parameters("paths /ledger/{account_id} post parameters"))
	require.ElementsMatch(t, []any{"account_id", "from", "limit", "id", "at", "Bahi-Workspace", "Bahi-Min-Position"},
		parameters("paths /ledger/{account_id} get parameters"))
	require.Empty(t, at("paths /echo post security"))
	require.NotContains(t, a.Text, "$schema")
}

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

func TestOperationsAreListed(t *testing.T) {
	t.Parallel()
	ops := serve(t).Operations()
	require.Len(t, ops, 8)
	require.Equal(t, "post-row", ops[0].ID)
	require.Equal(t, 201, ops[0].Status)
	require.EqualValues(t, "write", ops[0].Level)
	require.EqualValues(t, "read", ops[1].Level)
	require.Equal(t, 204, ops[2].Status)
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
