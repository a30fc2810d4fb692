package gateway_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/providers/gateway"
)

type sender interface {
	Send(ctx context.Context, r gateway.Reply) (string, error)
}

var reply = gateway.Reply{ID: "draft-12", To: "919812345678", Text: "Order draft 12: 2 items, 500 g. सोना & \"silver\""}

// aggregator returns a client whose calls all get a status and a body, and keeps the last form.
func aggregator(t *testing.T, status int, answer string) (client sender, last func() (http.Header, url.Values)) {
	t.Helper()
	var (
		header http.Header
		form   url.Values
	)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		header, form = r.Header, r.PostForm
		w.WriteHeader(status)
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(server.Close)
	c, err := gateway.NewClient(gateway.Settings{BaseURL: server.URL + "/wa/api/v1/", APIKey: "key", Source: "+91 70000 00000", App: "Workshop", Channel: "chat"}, nil)
	require.NoError(t, err)
	return c, func() (http.Header, url.Values) { return header, form }
}

// sends is the suite of both senders.
func sends(t *testing.T, s sender) {
	t.Helper()
	id, err := s.Send(t.Context(), reply)
	require.NoError(t, err)
	require.NotEmpty(t, id)
	again, err := s.Send(t.Context(), reply)
	require.NoError(t, err)
	require.Equal(t, id, again)
}

func TestSandboxPassesTheSuite(t *testing.T) {
	t.Parallel()
	sends(t, gateway.Sandbox{})
	_, err := gateway.Sandbox{}.Send(t.Context(), gateway.Reply{Text: "to nobody"})
	require.ErrorAs(t, err, new(*gateway.Refused))
}

func TestClientPassesTheSuite(t *testing.T) {
	t.Parallel()
	client, last := aggregator(t, http.StatusAccepted, `{"status":"submitted","messageId":"ee4a"}`)
	sends(t, client)
	header, form := last()
	require.Equal(t, "key", header.Get("Apikey"))
	require.Equal(t, url.Values{
		"channel": {"chat"}, "source": {"917000000000"}, "destination": {"919812345678"}, "src.name": {"Workshop"},
		"message": {`{"type":"text","text":"Order draft 12: 2 items, 500 g. सोना \u0026 \"silver\""}`},
	}, form)
}

func TestReplyIsNotSentAgainWhereItMayHaveArrived(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		answer string
		again  bool
		doubt  bool
	}{
		{status: 429, answer: `{}`, again: true},
		{status: 500, answer: `oops`, doubt: true},
		{status: 503, doubt: true},
		{status: 200, answer: `<html>`, doubt: true},
		{status: 200, answer: `{"status":"error","message":"no balance"}`},
		{status: 400, answer: `{"status":"error"}`},
		{status: 401, answer: `no`},
		{status: 302},
	} {
		client, _ := aggregator(t, c.status, c.answer)
		_, err := client.Send(t.Context(), reply)
		require.Error(t, err, c)
		require.NotContains(t, err.Error(), reply.To)
		var refused *gateway.Refused
		if c.again {
			_, final := errors.AsType[*gateway.Refused](err)
			require.False(t, final, c)
			continue
		}
		require.ErrorAs(t, err, &refused, c)
		require.Equal(t, c.doubt, refused.Unknown, c)
	}
}

func TestBrokenConnectionLeavesDoubtAndAMissingOneDoesNot(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	t.Cleanup(server.Close)
	settings := gateway.Settings{BaseURL: server.URL, APIKey: "key", Source: "917000000000"}
	client, err := gateway.NewClient(settings, nil)
	require.NoError(t, err)
	_, err = client.Send(t.Context(), reply)
	var refused *gateway.Refused
	require.ErrorAs(t, err, &refused)
	require.True(t, refused.Unknown)

	server.Close()
	_, err = client.Send(t.Context(), reply)
	require.EqualError(t, err, "the gateway cannot be reached")
}

func TestUnusableSettingsAreRefused(t *testing.T) {
	t.Parallel()
	for _, s := range []gateway.Settings{
		{}, {BaseURL: "https://a.example", Source: "91"}, {BaseURL: "https://a.example", APIKey: "k", Source: "x"}, {BaseURL: "ftp://a.example", APIKey: "k", Source: "91"},
		{BaseURL: "https://u:p@a.example", APIKey: "k", Source: "91"}, {BaseURL: "https://a.example?x=1", APIKey: "k", Source: "91"},
	} {
		_, err := gateway.NewClient(s, nil)
		require.Error(t, err, s)
	}
}

func TestAggregatorThatFailsOftenIsLeftAlone(t *testing.T) {
	t.Parallel()
	calls := 0
	status := http.StatusBadRequest
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls++
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	c, err := gateway.NewClient(gateway.Settings{BaseURL: server.URL, APIKey: "key", Source: "917000000000"}, nil)
	require.NoError(t, err)
	for range 6 { // refusals say nothing about it
		_, err := c.Send(t.Context(), reply)
		require.ErrorAs(t, err, new(*gateway.Refused))
	}
	status = http.StatusBadGateway
	for range 5 {
		_, err := c.Send(t.Context(), reply)
		require.ErrorAs(t, err, new(*gateway.Refused))
	}
	for range 3 {
		_, err = c.Send(t.Context(), reply)
		require.ErrorContains(t, err, "was not called")
		refused := new(gateway.Refused)
		require.NotErrorAs(t, err, &refused, "another attempt may follow")
	}
	require.Equal(t, 11, calls)
}
