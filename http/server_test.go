package http_test

import (
	"context"
	"io"
	"net"
	nethttp "net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"bahi/http"
	"bahi/http/api"
	"bahi/internal/test/apitest"
)

// start serves an API with one slow operation. It returns the URL, a function that stops the server, and the result of Serve.
func start(t *testing.T, grace time.Duration, ready http.Readiness, slow func(context.Context)) (string, context.CancelFunc, <-chan error) {
	t.Helper()
	registry := prometheus.NewRegistry()
	a := api.New(api.Config{Metrics: registry})
	api.Handle(a, api.Op{ID: "slow", Method: "GET", Path: "/slow", Public: true},
		func(ctx context.Context, _ *struct{}) (*api.Body[string], error) {
			slow(ctx)
			return api.Answer("done", nil)
		})
	server := http.NewServer(http.Config{
		API: a, Metrics: registry, Grace: grace, Ready: func(context.Context) http.Readiness { return ready },
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, listener) }()
	t.Cleanup(stop)
	return "http://" + listener.Addr().String(), stop, served
}

func TestTheProcessSaysHowItIs(t *testing.T) {
	t.Parallel()
	parked := http.Projection{Name: "books", Version: 1, Generation: 2, State: "parked", Position: 5, LagEvents: 3}
	url, _, _ := start(t, time.Second, http.Readiness{Ready: true, Head: 8, Projections: []http.Projection{parked}}, func(context.Context) {})
	probe := apitest.New(t, url, "")
	probe.GET("/livez").Status(200).Body(`{"alive":true}`)
	probe.GET("/readyz").Status(200).Body(`{"ready":true,"head":8,"projections":[
		{"name":"books","version":1,"generation":2,"state":"parked","position":5,"lag_events":3}]}`)
	probe.GET("/slow").Status(200)
	require.Contains(t, probe.GET("/metrics").Status(200).Text, `bahi_http_requests_total{operation="slow",status="200"} 1`)
	probe.POST("/livez", "").Problem(405, "Method not allowed")
}

func TestAProcessThatIsNotReadySaysWhy(t *testing.T) {
	t.Parallel()
	url, _, _ := start(t, time.Second, http.Readiness{Reason: []string{"books has not caught up"}}, func(context.Context) {})
	a := apitest.New(t, url, "").GET("/readyz").Status(503).Body(`{"ready":false,"why":["books has not caught up"],"head":0,"projections":[]}`)
	require.Equal(t, "1", a.Header("Retry-After"))
}

func TestRequestsUnderWayAreFinishedWhenItStops(t *testing.T) {
	t.Parallel()
	begun, finish := make(chan struct{}), make(chan struct{})
	url, stop, served := start(t, time.Minute, http.Readiness{}, func(context.Context) { close(begun); <-finish })
	answers := make(chan string, 1)
	go func() {
		response, err := nethttp.Get(url + "/slow")
		if err != nil {
			answers <- err.Error()
			return
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		answers <- string(text)
	}()
	<-begun
	stop()
	require.Eventually(t, func() bool {
		connection, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err == nil {
			connection.Close()
		}
		return err != nil
	}, time.Minute, time.Millisecond, "it takes nothing new")
	close(finish)
	require.Equal(t, "\"done\"\n", <-answers)
	require.NoError(t, <-served)
}

// A stream does not end by itself, so a shutdown does not wait for it.
func TestStreamsDoNotHoldTheEndUp(t *testing.T) {
	t.Parallel()
	a := api.New(api.Config{})
	api.Stream(a, api.Op{ID: "listen", Method: "GET", Path: "/news", Public: true}, nil, func(context.Context, *struct{}) (api.Source, error) {
		return func(ctx context.Context, _ func(api.Event) error) error {
			<-ctx.Done()
			return ctx.Err()
		}, nil
	})
	server := http.NewServer(http.Config{API: a, Grace: time.Minute})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, listener) }()
	stream := apitest.New(t, "http://"+listener.Addr().String(), "").Stream("/news")
	began := time.Now()
	stop()
	name, _ := stream.Next(nil)
	require.Empty(t, name)
	require.NoError(t, <-served)
	require.Less(t, time.Since(began), 30*time.Second)
}

func TestRequestsThatDoNotFinishAreBrokenOff(t *testing.T) {
	t.Parallel()
	begun, ended := make(chan struct{}), make(chan struct{})
	url, stop, served := start(t, 10*time.Millisecond, http.Readiness{}, func(ctx context.Context) {
		close(begun)
		<-ctx.Done()
		close(ended)
	})
	go func() {
		if response, err := nethttp.Get(url + "/slow"); err == nil {
			response.Body.Close()
		}
	}()
	<-begun
	stop()
	require.ErrorContains(t, <-served, "requests were still under way 10ms after the end")
	<-ended
}

func TestAnEndlessHeadIsRefused(t *testing.T) {
	t.Parallel()
	url, _, _ := start(t, time.Second, http.Readiness{Ready: true}, func(context.Context) {})
	apitest.New(t, url, "").With("X-Much", strings.Repeat("x", 64<<10)).GET("/slow").Status(431)
}
