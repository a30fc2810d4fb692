package api_test

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"bahi/http/api"
	"bahi/internal/test/apitest"
)

// lines returns the log, one map a line.
func (s *server) lines(t *testing.T) (lines []map[string]any) {
	t.Helper()
	for line := range strings.Lines(s.logs.String()) {
		var fields map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &fields))
		lines = append(lines, fields)
	}
	return lines
}

func TestInternalErrorIsLoggedOnceAndHidden(t *testing.T) {
	t.Parallel()
	for how, want := range map[string]struct {
		status        int
		detail, cause string
	}{
		"odd":         {500, "Internal error", "secret: odd"},
		"panic":       {500, "Internal error", "panic: secret: panic"},
		"unencodable": {500, "Internal error", "unsupported type: func()"},
		"away":        {503, "The store does not answer, try again", "append: secret: connection to 10.0.0.1 refused"},
		"slow":        {503, "It took too long, try again", "wait: context deadline exceeded"},
	} {
		s := serve(t, func(c *api.Config) {
			if how == "slow" {
				c.Timeout = 100 * time.Millisecond
			}
		})
		a := s.as(t, "").GET("/fail/"+how).Problem(want.status, want.detail)
		require.NotContains(t, a.Text, "secret")
		require.Equal(t, want.status == 503, a.Header("Retry-After") != "", how)
		require.Eventually(t, func() bool { return len(s.lines(t)) == 1 }, wait, tick)
		line := s.lines(t)[0]
		require.Contains(t, line["error"], want.cause)
		require.Equal(t, a.Header("X-Request-Id"), line["request_id"])
		require.Equal(t, "fail", line["operation"])
		require.InDelta(t, want.status, line["status"], 0)
		require.Equal(t, how == "panic" || how == "unencodable", line["stack"] != nil, how)
	}
}

func TestLogLineHasIdsAndNoSecrets(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.as(t, "bahi_clerk").With("Idempotency-Key", "key-secret").POST("/ledger/3?token=query-secret", good).Status(201)
	s.as(t, "bahi_clerk").POST("/ledger/3", `{"date":"2025-03-31","kind":"body-secret"}`).Status(422)
	require.Eventually(t, func() bool { return len(s.lines(t)) == 2 }, wait, tick)
	require.NotContains(t, s.logs.String(), "secret")
	line := s.lines(t)[0]
	require.Equal(t, "INFO", line["level"])
	require.Equal(t, "post-row", line["operation"])
	require.Equal(t, "/ledger/3", line["path"])
	require.Equal(t, "api_key:clerk", line["actor"])
	require.InDelta(t, 41, line["position"], 0)
	require.Positive(t, line["bytes"])
	require.Positive(t, line["took"])
}

func TestRejectedInputIsNotRepeated(t *testing.T) {
	t.Parallel()
	s := serve(t)
	clerk := s.as(t, "bahi_clerk")
	for _, a := range []*apitest.Answer{
		clerk.POST("/ledger/3", `{"date":"hunter2","kind":"hunter2","count":"hunter2"}`).Status(422),
		clerk.POST("/ledger/3", `{"date":hunter2}`).Status(400),
		clerk.POST("/ledger/hunter2", good).Status(422),
		clerk.GET("/ledger/3?from=hunter2&id=hunter2&limit=hunter2").Status(422),
		clerk.With("Bahi-Reason", "%hunter2").POST("/ledger/3", good).Status(422),
		clerk.With("If-Match", "hunter2").POST("/ledger/3", good).Status(400),
	} {
		require.NotContains(t, a.Text, "hunter2")
	}
}

func TestBrokenAnswerIsCutOff(t *testing.T) {
	t.Parallel()
	s := serve(t)
	api.Handle(s.API, api.Op{ID: "broken", Method: "GET", Path: "/broken", Public: true}, brokenHandler)
	response, err := http.Get(s.url + "/broken")
	if err == nil {
		_, err = io.ReadAll(response.Body)
		response.Body.Close()
	}
	require.Error(t, err)
}

// counted returns counters, gauges and the counts of histograms, by name and labels.
func counted(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	got := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			key := family.GetName()
			for _, label := range m.GetLabel() {
				key += " " + label.GetValue()
			}
			if m.GetHistogram() != nil {
				got[key] = float64(m.GetHistogram().GetSampleCount())
			} else {
				got[key] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return got
}

func TestMetricsCountByOperation(t *testing.T) {
	t.Parallel()
	s := serve(t)
	clerk := s.as(t, "bahi_clerk")
	clerk.POST("/ledger/3", good).Status(201)
	clerk.POST("/ledger/3", good).Status(201)
	clerk.POST("/ledger/3", "{").Status(400)
	clerk.GET("/anything/at/all").Status(404)
	require.Eventually(t, func() bool { return len(s.lines(t)) == 4 }, wait, tick)
	got := counted(t, s.metrics)
	require.InDelta(t, 2, got["bahi_http_requests_total post-row 201"], 0)
	require.InDelta(t, 1, got["bahi_http_requests_total post-row 400"], 0)
	require.InDelta(t, 1, got["bahi_http_requests_total none 404"], 0)
	require.InDelta(t, 3, got["bahi_http_request_seconds post-row"], 0)
	require.InDelta(t, 0, got["bahi_http_requests_in_flight"], 0)
}

func TestBodiesAreBounded(t *testing.T) {
	t.Parallel()
	s := serve(t)
	anyone := s.as(t, "")
	exact := `{"a":"` + strings.Repeat("x", 64-8) + `"}`
	require.Len(t, exact, 64)
	anyone.POST("/echo", exact).Status(200)
	anyone.POST("/echo", exact+" ").Problem(413, "The request body is too large")
	anyone.POST("/echo", io.MultiReader(strings.NewReader(exact), strings.NewReader(" "))).Problem(413, "The request body is too large")
	for _, kind := range []string{"application/xml", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
		"application/json; charset=utf-16"} {
		anyone.With("Content-Type", kind).POST("/echo", exact).Problem(415, "The body must be application/json")
	}
	anyone.With("Content-Encoding", "gzip").POST("/echo", exact).Status(415)
	anyone.With("Content-Type", "Application/JSON; charset=UTF-8").POST("/echo", exact).Status(200)
	anyone.POST("/upload", strings.Repeat("x", 64)).Status(200).Body(`64`)
	anyone.POST("/upload", strings.Repeat("x", 65)).Problem(413, "The request body is too large")
	anyone.POST("/upload", io.MultiReader(strings.NewReader(strings.Repeat("x", 65)))).Problem(413, "The request body is too large")
}

// raw sends bytes unchanged, and returns the status line.
func (s *server) raw(t *testing.T, request string) string {
	t.Helper()
	connection, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	require.NoError(t, err)
	defer connection.Close()
	require.NoError(t, connection.SetDeadline(time.Now().Add(30*time.Second)))
	_, err = connection.Write([]byte(request))
	require.NoError(t, err)
	tcp, _ := connection.(*net.TCPConn)
	require.NoError(t, tcp.CloseWrite())
	answer, err := io.ReadAll(connection)
	require.NoError(t, err)
	line, _, _ := strings.Cut(string(answer), "\r\n")
	return line
}

func TestABodyThatBreaksOffIsMalformed(t *testing.T) {
	t.Parallel()
	s := serve(t)
	require.Equal(t, "HTTP/1.1 400 Bad Request", s.raw(t, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{"))
	require.Equal(t, "HTTP/1.1 400 Bad Request", s.raw(t, "POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{"))
	require.Equal(t, "HTTP/1.1 400 Bad Request", s.raw(t, "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"))
	require.Equal(t, "HTTP/1.1 422 Unprocessable Entity", s.raw(t, "GET /ledger/3 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+
		"bahi_clerk\r\nBahi-Min-Position: 1\r\nBahi-Min-Position: 2\r\nConnection: close\r\n\r\n"))
	require.Equal(t, "HTTP/1.1 401 Unauthorized", s.raw(t, "GET /me HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+
		"bahi_clerk\r\nAuthorization: Bearer bahi_clerk\r\nConnection: close\r\n\r\n"))
}

func TestASlowBodyIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	s := serve(t)
	slow := httptest.NewUnstartedServer(s.API)
	slow.Config.ReadTimeout = 2 * time.Second // time for the request's head to arrive, even on a busy machine
	slow.Start()
	t.Cleanup(slow.Close)
	body, pen := io.Pipe()
	defer pen.Close()
	go func() { _, _ = pen.Write([]byte("{")) }()
	apitest.New(t, slow.URL, "").POST("/echo", body).Problem(408, "The request took too long to arrive")
}
