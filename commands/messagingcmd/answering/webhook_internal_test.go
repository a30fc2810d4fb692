package answering

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/domain/messaging/botwebhook"
	"bahi/internal/test/worktest"
)

func sends(t *testing.T, patience time.Duration, client *http.Client, address string) (status int, said, failure string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, nil)
	require.NoError(t, err)
	return (&talk{Engine: &Engine{Client: client, Patience: patience}}).send(t.Context(), req, []byte(`{}`))
}

func TestACallOfAWebhookIsBoundedAndMadeOnce(t *testing.T) {
	t.Parallel()
	const patience = 2 * time.Second // enough for a busy machine to reach the server
	require.Equal(t, 15*time.Second, CallTimeout)
	var asked atomic.Int32
	serve := func(do http.HandlerFunc) string {
		s := worktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			_, _ = io.ReadAll(r.Body)
			do(w, r)
		}))
		return s.URL
	}
	status, said, failure := sends(t, CallTimeout, http.DefaultClient, serve(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, strings.Repeat("ગ", 9000)+"\xff")
	}))
	require.Equal(t, []any{http.StatusTeapot, ""}, []any{status, failure})
	require.LessOrEqual(t, len(said), 8<<10)
	require.Equal(t, strings.Repeat("ગ", (8<<10)/3), said, "it is cut at a letter")

	_, _, failure = sends(t, patience, http.DefaultClient,
		serve(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	require.Equal(t, "the call timed out", failure)
	_, _, failure = sends(t, patience, http.DefaultClient, serve(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "a")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	require.Equal(t, "the call timed out", failure, "an answer that trickles is none")
	_, _, failure = sends(t, CallTimeout, http.DefaultClient, serve(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	require.Equal(t, "the endpoint did not respond", failure)
	require.Equal(t, int32(4), asked.Load(), "nothing is called twice that was reached")

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	dials := 0
	nobody := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		dials++
		return nil, &net.OpError{Op: "dial", Err: io.ErrUnexpectedEOF}
	}}}
	_, _, failure = sends(t, CallTimeout, nobody, "http://"+listener.Addr().String())
	require.Equal(t, "the endpoint cannot be reached", failure)
	require.Equal(t, 2, dials, "once more where no connection was made")
	require.NoError(t, listener.Close())
}

// On a reused connection the client retries requests without a body on its own: each GET, and every request with an Idempotency-Key.
func TestACallIsMadeOnceAlsoAfterAnotherOne(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	s := worktest.Serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if asked.Add(1) > 1 {
			panic(http.ErrAbortHandler)
		}
	}))
	for _, want := range []string{"", "the endpoint did not respond"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, s.URL, nil)
		require.NoError(t, err)
		req.Header.Set("Idempotency-Key", "call_1")
		_, _, failure := (&talk{Engine: &Engine{Client: s.Client(), Patience: CallTimeout}}).send(t.Context(), req, nil)
		require.Equal(t, want, failure)
	}
	require.Equal(t, int32(2), asked.Load())
}

func TestArgumentsOfACallAreTyped(t *testing.T) {
	t.Parallel()
	h := hook{id: 7, State: botwebhook.State{Call: botwebhook.Call{Name: "Stock", Parameters: []botwebhook.Parameter{
		{Name: "sku", DataType: botwebhook.String, Place: botwebhook.InPath, Source: botwebhook.ByAI},
		{Name: "count", DataType: botwebhook.Number, Source: botwebhook.ByAI},
		{Name: "day", DataType: botwebhook.Date, Source: botwebhook.ByAI}, {Name: "at", DataType: botwebhook.Datetime, Source: botwebhook.ByAI},
		{Name: "till", DataType: botwebhook.String, Source: botwebhook.Fixed},
	}}}}
	require.JSONEq(t, `{"type":"object","additionalProperties":false,"required":["sku","count","day","at"],`+
		`"properties":{"sku":{"type":"string"},"count":{"type":"number"},
		"day":{"type":"string","format":"date"},"at":{"type":"string","format":"date-time"}}}`, string(h.schema()),
		"the model does not see what is fixed")
	good := func() map[string]any {
		return map[string]any{"sku": "a", "count": "2.50", "day": "2026-11-23", "at": "2026-11-23T10:00:00Z", "till": "mine", "more": 1}
	}
	values, wrong := h.values(good())
	require.Empty(t, wrong)
	require.Len(t, values, 4, "what was not asked for is left out")
	for name, value := range map[string]any{"sku": "..", "count": "many", "day": "yesterday", "at": true} {
		given := good()
		given[name] = value
		_, wrong := h.values(given)
		require.True(t, strings.HasPrefix(wrong, name+": "), "%s: %s", name, wrong)
		delete(given, name)
		_, wrong = h.values(given)
		require.Equal(t, name+" is required", wrong)
	}
}
