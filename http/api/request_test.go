package api_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/fault"
	"bahi/http/api"
	"bahi/internal/test/apitest"
)

const (
	good   = `{"date":"2025-03-31","in_entries":[{"amount":12.5,"description":"cash"}]}`
	posted = `{"id":7,"date":"2025-03-31","in_entries":[{"amount":12.5,"description":"cash"}]}`
)

func TestAWriteIsAnsweredWithItsRevisionAndPosition(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a := s.as(t, "bahi_clerk").With("X-Request-Id", "trace-1").With("X-Correlation-Id", "order-9").POST("/ledger/3", good)
	a.Status(201).Body(posted)
	require.Equal(t, `"0"`, a.Header("ETag"))
	require.Equal(t, "41", a.Header("Bahi-Position"))
	require.Equal(t, "trace-1", a.Header("X-Request-Id"))
	require.Equal(t, "application/json", a.Header("Content-Type"))
	require.Empty(t, a.Header("Idempotency-Replayed"))
	require.Empty(t, a.Header("Preference-Applied"))
	seen := s.last()
	require.Equal(t, "trace-1", seen.RequestID)
	require.Equal(t, "order-9", seen.CorrelationID)
	require.Equal(t, "post-row", seen.Operation)
	require.Equal(t, shop, seen.Workspace)
	require.Equal(t, "api_key:clerk", seen.Actor.String())
	require.Nil(t, seen.Fingerprint)
	require.Nil(t, seen.IfMatch)
}

func TestFingerprintTellsRequestsApart(t *testing.T) {
	t.Parallel()
	s := serve(t)
	clerk := s.as(t, "bahi_clerk").With("Idempotency-Key", "k1")
	taken := func() string {
		require.Equal(t, "k1", s.last().Key)
		require.Len(t, s.last().Fingerprint, 32)
		return string(s.last().Fingerprint)
	}
	clerk.POST("/ledger/3?x=1&y=2", good).Status(201)
	first := taken()
	clerk.POST("/ledger/3?y=2&x=1", good).Status(201)
	require.Equal(t, first, taken(), "the order of the query does not matter")
	all := map[string]bool{first: true}
	for what, ask := range map[string]func() *apitest.Answer{
		"path":     func() *apitest.Answer { return clerk.POST("/ledger/4?x=1&y=2", good) },
		"query":    func() *apitest.Answer { return clerk.POST("/ledger/3?x=1&y=3", good) },
		"body":     func() *apitest.Answer { return clerk.POST("/ledger/3?x=1&y=2", good+" ") },
		"revision": func() *apitest.Answer { return clerk.With("If-Match", `"3"`).POST("/ledger/3?x=1&y=2", good) },
		"dry run":  func() *apitest.Answer { return clerk.With("Bahi-Dry-Run", "true").POST("/ledger/3?x=1&y=2", good) },
		"method":   func() *apitest.Answer { return clerk.DELETE("/ledger/3?x=1&y=2") },
		"raw":      func() *apitest.Answer { return clerk.POST("/upload", "one") },
		"raw body": func() *apitest.Answer { return clerk.POST("/upload", "two") },
	} {
		require.Less(t, ask().Response.StatusCode, 300, what)
		require.False(t, all[taken()], what)
		all[taken()] = true
	}
}

func TestHeadersOfWritesAreRead(t *testing.T) {
	t.Parallel()
	s := serve(t)
	clerk := s.as(t, "bahi_clerk")
	clerk.With("Idempotency-Key", strings.Repeat("é", 255)).POST("/ledger/3", good).Status(201)
	clerk.With("Idempotency-Key", strings.Repeat("k", 256)).POST("/ledger/3", good).
		Problem(422, "Validation error", "Idempotency-Key", "1 to 255 characters")
	clerk.With("Idempotency-Key", " ").POST("/ledger/3", good).
		Problem(422, "Validation error", "Idempotency-Key", "1 to 255 characters")

	clerk.With("If-Match", `"12"`).POST("/ledger/3", good).Status(201)
	require.Equal(t, int64(12), *s.last().IfMatch)
	clerk.With("If-Match", "*").POST("/ledger/3", good).Status(201)
	require.Nil(t, s.last().IfMatch)
	for _, tag := range []string{`W/"12"`, `"abc"`, `"012"`, `"-1"`, `"99999999999999999999"`, `""`} {
		clerk.With("If-Match", tag).POST("/ledger/3", good).Problem(412, "It was changed since you read it")
	}
	for _, tag := range []string{`12`, `"12`, `"1", "2"`, `12"`, `"`} {
		clerk.With("If-Match", tag).POST("/ledger/3", good).
			Problem(400, `If-Match must be the ETag of one revision, such as "3", or *`)
	}

	clerk.With("Bahi-Reason", "%E0%A4%97%E0%A4%B2%E0%A4%A4 amount").DELETE("/ledger/3").Status(204)
	require.Equal(t, "गलत amount", s.last().Reason)
	clerk.With("Bahi-Reason", strings.Repeat("%E0%A4%97", 500)).DELETE("/ledger/3").Status(204)
	for reason, message := range map[string]string{
		strings.Repeat("a", 501): "at most 500 characters",
		"100% sure":              "expected percent-encoded UTF-8",
		"%ff":                    "expected percent-encoded UTF-8",
		"a%00b":                  "control characters are not allowed",
		"a%0Ab":                  "control characters are not allowed",
	} {
		clerk.With("Bahi-Reason", reason).DELETE("/ledger/3").Problem(422, "Validation error", "Bahi-Reason", message)
	}

	a := clerk.With("Prefer", "wait=5, return=representation").POST("/ledger/3", good).Status(201)
	require.Equal(t, "return=representation", a.Header("Preference-Applied"))
	a = clerk.With("Prefer", "return=minimal").POST("/ledger/3", good).Status(201)
	require.Empty(t, a.Header("Preference-Applied"))
}

func TestParametersAreChecked(t *testing.T) {
	t.Parallel()
	s := serve(t)
	clerk := s.as(t, "bahi_clerk")
	clerk.GET("/ledger/3?from=2025-03-31&limit=5").Status(200).Body(`["3 5","2025-03-31"]`)
	clerk.GET("/ledger/3").Status(200).Body(`["3 0"]`)
	clerk.GET("/ledger/three").Problem(422, "Validation error", "account_id", "expected a whole number")
	clerk.GET("/ledger/99999999999999999999").Problem(422, "Validation error", "account_id", "expected a whole number")
	clerk.GET("/ledger/3?from=31.3.2025").
		Problem(422, "Validation error", "from", "expected a date such as 2025-03-31, from 1900 to 2199")
	clerk.GET("/ledger/3?id=nosecret").
		Problem(422, "Validation error", "id", "expected a UUID such as 6ba7b810-9dad-41d1-80b4-00c04fd430c8")
	clerk.GET("/ledger/3?at=nosecret").Problem(422, "Validation error", "at", "expected a moment such as 2025-03-31T09:15:00Z")
	require.Contains(t, clerk.GET("/ledger/3?limit=0").Status(422).Text, `"field":"limit"`)
	clerk.GET("/ledger/3?form=2025-03-31").Problem(422, "Validation error", "form", "unknown parameter")
	clerk.GET("/ledger/3?limit=1&limit=2").Problem(422, "Validation error", "limit", "must be given once")
	for _, path := range []string{"/ledger/3?from=%zz", "/ledger/3?from=%ff", "/ledger/3?limit=1;from=2", "/ledger/%00", "/ledger/%ff",
		"/%ff?a=%00"} {
		clerk.GET(path).Problem(400, "Malformed URL")
	}
}

func TestOnlyPlainIDsAreKept(t *testing.T) {
	t.Parallel()
	s := serve(t)
	made := s.as(t, "bahi_clerk").GET("/me").Status(200).Header("X-Request-Id")
	require.Len(t, made, 32)
	for _, bad := range []string{"a b", strings.Repeat("x", 129), `{"x":1}`, "ä"} {
		got := s.as(t, "bahi_clerk").With("X-Request-Id", bad).GET("/me").Status(200).Header("X-Request-Id")
		require.Len(t, got, 32, bad)
		s.as(t, "bahi_clerk").With("X-Correlation-Id", bad).POST("/ledger/3", good).Status(201)
		require.Empty(t, s.last().CorrelationID)
		require.NotEqual(t, made, got)
	}
}

func TestUnroutedRequestGetsAProblem(t *testing.T) {
	t.Parallel()
	s := serve(t)
	clerk := s.as(t, "bahi_clerk")
	for _, path := range []string{"/nothing", "/", "/ledger", "/ledger/3/4", "/ledger//3", "//ledger/3", "/ledger/3/"} {
		clerk.GET(path).Problem(404, "Not found")
	}
	a := clerk.PUT("/ledger/3", good).Problem(405, "Method not allowed")
	require.Equal(t, "GET, POST, DELETE, HEAD", a.Header("Allow"))
	clerk.Do("OPTIONS", "/ledger/3", nil).Problem(405, "Method not allowed")
	clerk.POST("/openapi.json", "").Problem(405, "Method not allowed")
}

func TestHEADIsGETWithoutItsBody(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a := s.as(t, "bahi_clerk").Do("HEAD", "/me", nil).Status(200)
	require.Empty(t, a.Text)
	require.Equal(t, "application/json", a.Header("Content-Type"))
	s.as(t, "").Do("HEAD", "/me", nil).Status(401)
}

func TestProblemsHaveTheRequestedType(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for accept, want := range map[string]string{
		"": "application/problem+json", "*/*": "application/problem+json", "application/json": "application/json",
		"application/json, */*": "application/json", "application/problem+json, application/json": "application/problem+json",
		"text/html": "application/problem+json", "application/cbor": "application/problem+json",
	} {
		a := s.as(t, "bahi_clerk").With("Accept", accept).POST("/ledger/404", good).Problem(404, "Account not found")
		require.Equal(t, want, a.Header("Content-Type"), accept)
		a = s.as(t, "").With("Accept", accept).GET("/me").Problem(401, "Not authenticated")
		require.Equal(t, want, a.Header("Content-Type"), accept)
	}
	var p map[string]any
	require.NoError(t, json.Unmarshal([]byte(s.as(t, "").GET("/me").Text), &p))
	require.Equal(t, "not_authenticated", p["code"])
	require.NotContains(t, p, "errors")
	require.Len(t, p, 5)
}

func TestWriteThatIsNotAdmittedGets503(t *testing.T) {
	t.Parallel()
	s := serve(t, func(c *api.Config) {
		c.Admit = func(_ context.Context, op api.Op) error {
			return fault.Newf(fault.Unavailable, "%s is too much", op.ID)
		}
	})
	s.as(t, "bahi_reader").GET("/ledger/3").Status(200)
	s.as(t, "bahi_reader").POST("/ledger/3", good).Problem(403, "Not enough permissions")
	a := s.as(t, "bahi_clerk").POST("/ledger/3", good).Problem(503, "post-row is too much")
	require.NotEmpty(t, a.Header("Retry-After"))
}

func TestSecureAnswersHaveStrictTransportSecurity(t *testing.T) {
	t.Parallel()
	const header = "Strict-Transport-Security"
	secure := serve(t, func(c *api.Config) { c.Secure = true })
	for _, path := range []string{"/me", "/openapi.json", "/nothing"} {
		require.Equal(t, "max-age=31536000", secure.as(t, "").GET(path).Header(header), path)
		require.Empty(t, serve(t).as(t, "").GET(path).Header(header), path)
	}
}
