package bench_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/bench"
)

func TestClientReadsResponsesOfGosServer(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a page of rows ", 1000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Bahi-Position", "41")
		switch r.URL.Path {
		case "/long": // too long to be buffered, so it is chunked
			_, _ = w.Write([]byte(long))
		case "/none":
			w.WriteHeader(http.StatusNoContent)
		default:
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write([]byte(r.Method + " " + r.Header.Get("Authorization") + " " + string(body)))
		}
	}))
	t.Cleanup(server.Close)
	c, err := bench.Dial(t.Context(), server.Listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	for range 2 { // both on one connection
		a, err := c.Do(bench.Request("POST", "/", "key", `{"a":1}`))
		require.NoError(t, err)
		require.Equal(t, http.StatusCreated, a.Status)
		require.EqualValues(t, 41, a.Position)
		require.Equal(t, `POST Bearer key {"a":1}`, string(a.Body))
		require.Positive(t, a.Took)

		a, err = c.Do(bench.Request("GET", "/long", "key", ""))
		require.NoError(t, err)
		require.Equal(t, long, string(a.Body))

		a, err = c.Do(bench.Request("DELETE", "/none", "key", ""))
		require.NoError(t, err)
		require.Equal(t, http.StatusNoContent, a.Status)
		require.Empty(t, a.Body)
	}
}

func TestLoadCountsResponses(t *testing.T) {
	t.Parallel()
	var served, answered atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		if r.URL.Path == "/bad" {
			w.WriteHeader(http.StatusTeapot)
		}
	}))
	t.Cleanup(server.Close)
	load := bench.Load{
		Address: server.Listener.Addr().String(), Clients: 4, For: 20 * time.Millisecond, Each: 100,
		Requests: [][]byte{bench.Request("GET", "/a", "", ""), bench.Request("GET", "/b", "", "")},
		Answered: func(int, bench.Answer) { answered.Add(1) },
	}
	s, err := load.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, served.Load(), answered.Load())
	require.Greater(t, s.Rate, float64(answered.Load()), "each request counts a hundred times")

	load.Requests = [][]byte{bench.Request("GET", "/bad", "", "")}
	_, err = load.Run(t.Context())
	require.ErrorContains(t, err, "418")
}

func TestRoundsAlternate(t *testing.T) {
	t.Parallel()
	var order []string
	step := func(name string) func() (bench.Sample, error) {
		return func() (bench.Sample, error) {
			order = append(order, name)
			return bench.Sample{Rate: float64(len(order))}, nil
		}
	}
	progressed := 0
	limits, found, err := bench.Interleave(2, func(done, total int) { progressed, _ = done, total }, step("limit"), step("a"), step("b"))
	require.NoError(t, err)
	require.Equal(t, []string{"limit", "a", "b", "limit", "a", "b", "limit"}, order)
	require.Equal(t, []float64{1, 4, 7}, limits.By(bench.Rate))
	require.Equal(t, []float64{3, 6}, found[1].By(bench.Rate))
	require.Equal(t, 7, progressed)

	_, _, err = bench.Interleave(2, nil, func() (bench.Sample, error) { return bench.Sample{}, errors.New("no pgbench") })
	require.Error(t, err)
}
