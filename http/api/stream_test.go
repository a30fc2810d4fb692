package api_test

import (
	"bufio"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"bahi/domain/actor"
	"bahi/http/api"
	"bahi/internal/test/apitest"
	"bahi/internal/test/logtest"
	"bahi/internal/test/worktest"
)

// textEvent are the data of the test's events.
type textEvent struct {
	Text string `json:"text"`
}

type endEvent struct {
	Reason string `json:"reason"`
}

// streamFixture serves a stream from a source, on a server with short timeouts.
type streamFixture struct {
	*api.API

	url     string
	logs    *logtest.Buffer
	metrics *prometheus.Registry
}

// ByStation is exported, as huma requires.
type ByStation struct {
	Last string `header:"Last-Event-ID"`
}

const impatience = 1500 * time.Millisecond // enough for a busy machine to read a request

func broadcast(t *testing.T, heartbeat time.Duration, source func(in *ByStation) (api.Source, error)) streamFixture {
	t.Helper()
	s := streamFixture{logs: &logtest.Buffer{}, metrics: prometheus.NewRegistry()}
	s.API = api.New(api.Config{
		Credentials: []api.Credential{{Authenticator: everybody}}, Heartbeat: heartbeat, Timeout: impatience,
		Log: slog.New(slog.NewJSONHandler(s.logs, nil)), Metrics: s.metrics,
	})
	api.Stream(s.API, api.Op{ID: "listen", Method: "GET", Path: "/news", Summary: "Listen", Operator: true},
		map[string]any{"news": textEvent{}, "end": endEvent{}},
		func(_ context.Context, in *ByStation) (api.Source, error) { return source(in) })
	server := httptest.NewUnstartedServer(s.API)
	server.Config.ReadTimeout, server.Config.WriteTimeout = impatience, impatience
	server.Start()
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s streamFixture) operator(t *testing.T) *apitest.Client {
	return apitest.New(t, s.url, "bahi_operator")
}

// until returns a handler whose source waits until its context ends, and then sends the context's error.
func until(ended chan<- error) func(*ByStation) (api.Source, error) {
	return func(*ByStation) (api.Source, error) {
		return func(ctx context.Context, _ func(api.Event) error) error {
			<-ctx.Done()
			ended <- ctx.Err()
			return ctx.Err()
		}, nil
	}
}

func TestStreamSendsEventsInOrder(t *testing.T) {
	t.Parallel()
	go1, over := make(chan struct{}), make(chan struct{})
	s := broadcast(t, time.Hour, func(in *ByStation) (api.Source, error) {
		return func(_ context.Context, send func(api.Event) error) error {
			defer close(over)
			if err := send(api.Event{ID: in.Last + "1", Data: textEvent{"one\nline"}}); err != nil {
				return err
			}
			<-go1
			return send(api.Event{Data: endEvent{"enough"}})
		}, nil
	})
	stream := s.operator(t).With("Last-Event-ID", "4").Stream("/news")
	require.Equal(t, "no-store", stream.Response.Header.Get("Cache-Control"))
	require.Equal(t, "no", stream.Response.Header.Get("X-Accel-Buffering"))
	require.NotEmpty(t, stream.Response.Header.Get("X-Request-ID"))
	var news textEvent
	name, id := stream.Next(&news)
	require.Equal(t, []string{"news", "41", "one\nline"}, []string{name, id, news.Text})
	close(go1)
	var end endEvent
	name, _ = stream.Next(&end)
	require.Equal(t, []string{"end", "enough"}, []string{name, end.Reason})
	name, _ = stream.Next(&end)
	require.Empty(t, name, "the stream is over")
	<-over
	require.Eventually(t, func() bool { return strings.Contains(s.logs.String(), `"operation":"listen"`) }, wait, tick)
	require.Contains(t, s.logs.String(), `"status":200`)
	require.InDelta(t, 1, counted(t, s.metrics)["bahi_http_requests_total listen 200"], 0)
}

// A server limits the time of requests and responses. A stream outlives both.
func TestStreamOutlivesTheServersTimeouts(t *testing.T) {
	t.Parallel()
	s := broadcast(t, impatience/3, func(*ByStation) (api.Source, error) {
		return func(ctx context.Context, send func(api.Event) error) error {
			select {
			case <-time.After(4 * impatience):
			case <-ctx.Done():
			}
			return send(api.Event{Data: endEvent{"late"}})
		}, nil
	})
	response := listen(t, s.url, "Bearer bahi_operator")
	scanner, beats := bufio.NewScanner(response.Body), 0
	for scanner.Scan() && !strings.HasPrefix(scanner.Text(), "event") {
		if scanner.Text() == ":" {
			beats++
		}
	}
	require.Equal(t, "event: end", scanner.Text(), "%v", scanner.Err())
	require.Greater(t, beats, 3, "it has sent heartbeats")
}

// listen requests the stream, without buffering.
func listen(t *testing.T, url, authorization string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/news", nil)
	require.NoError(t, err)
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	require.NoError(t, err)
	t.Cleanup(func() { response.Body.Close() })
	require.Equal(t, http.StatusOK, response.StatusCode)
	return response
}

func TestAStreamThatBeginsAfterTheEndEndsAtOnce(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	s := broadcast(t, time.Hour, until(ended))
	s.EndStreams()
	name, _ := s.operator(t).Stream("/news").Next(nil)
	require.Empty(t, name)
	require.ErrorIs(t, <-ended, context.Canceled)
}

func TestAStreamEndsWhenItsClientGoes(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	s := broadcast(t, time.Hour, until(ended))
	s.operator(t).Stream("/news").Close()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.Eventually(t, func() bool { return strings.Contains(s.logs.String(), `"operation":"listen"`) }, wait, tick)
	require.NotContains(t, s.logs.String(), `"error"`)
}

// A client that stops reading is detected once the buffers in between are full.
func TestAStreamEndsWhenItsClientStopsReading(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	s := broadcast(t, time.Hour, func(*ByStation) (api.Source, error) {
		return func(_ context.Context, send func(api.Event) error) (err error) {
			for err == nil {
				err = send(api.Event{Data: textEvent{strings.Repeat("x", 1<<20)}})
			}
			ended <- err
			return err
		}, nil
	})
	listen(t, s.url, "Bearer bahi_operator")
	var timeout net.Error
	require.ErrorAs(t, <-ended, &timeout)
	require.True(t, timeout.Timeout())
}

func TestHEADOfAStreamSendsOnlyItsHead(t *testing.T) {
	t.Parallel()
	s := broadcast(t, time.Hour, func(*ByStation) (api.Source, error) {
		return func(context.Context, func(api.Event) error) error { panic("nobody reads it") }, nil
	})
	a := s.operator(t).Do(http.MethodHead, "/news", nil).Status(200)
	require.Equal(t, "text/event-stream", a.Header("Content-Type"))
}

func TestStreamErrorIsLoggedAndHidden(t *testing.T) {
	t.Parallel()
	s := broadcast(t, time.Hour, func(*ByStation) (api.Source, error) {
		return func(context.Context, func(api.Event) error) error { return errors.New("secret: the store is away") }, nil
	})
	name, _ := s.operator(t).Stream("/news").Next(nil)
	require.Empty(t, name)
	require.Eventually(t, func() bool { return strings.Contains(s.logs.String(), "secret: the store is away") }, wait, tick)

	broken := broadcast(t, time.Hour, func(*ByStation) (api.Source, error) {
		return func(_ context.Context, send func(api.Event) error) error { return send(api.Event{Data: "of no kind"}) }, nil
	})
	listen(t, broken.url, "Bearer bahi_operator")
	require.Eventually(t, func() bool { return strings.Contains(broken.logs.String(), "listen sends a string") }, wait, tick)
}

// failingAuth authenticates the operator. Its field says returns the error of the n-th check.
type failingAuth struct {
	checks atomic.Int32
	says   func(n int32) error
}

func (m *failingAuth) Authenticate(ctx context.Context, bearer string) (actor.Actor, error) {
	if err := m.says(m.checks.Add(1)); err != nil {
		return actor.Actor{}, err
	}
	return everybody.Authenticate(ctx, bearer)
}

// anyBrowser treats any request as the operator's.
type anyBrowser struct{}

func (anyBrowser) Bearer(*http.Request) (string, uuid.UUID, error) {
	return "bahi_operator", uuid.Nil, nil
}

func (anyBrowser) Refuse(http.ResponseWriter, *http.Request, int, string) {}

func TestStreamEndsWithTheCredentialOfItsCaller(t *testing.T) {
	t.Parallel()
	for bearer, last := range map[string]struct {
		check   int32
		refused error
	}{
		"Bearer bahi_operator": {14, errors.New("the store is away")}, // it outlives two failures
		"":                     {4, api.ErrNotAuthenticated},          // a browser
	} {
		who := &failingAuth{says: func(n int32) error {
			if n >= last.check || bearer != "" && (n == 2 || n == 3) {
				return last.refused
			}
			return nil
		}}
		ended := make(chan error, 1)
		a := api.New(api.Config{Credentials: []api.Credential{{Authenticator: who}}, Recheck: time.Millisecond})
		a.ServeBrowsers(anyBrowser{}, "/sign-in")
		api.Stream(a, api.Op{ID: "listen", Method: "GET", Path: "/news", Operator: true}, map[string]any{"news": textEvent{}},
			func(context.Context, *ByStation) (api.Source, error) { return until(ended)(nil) })
		server := worktest.Serve(t, a)
		listen(t, server.URL, bearer)
		require.ErrorIs(t, <-ended, context.Canceled)
		require.GreaterOrEqual(t, who.checks.Load(), last.check)
	}
}
