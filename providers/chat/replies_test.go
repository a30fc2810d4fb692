package chat_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/messaging/network"
	"bahi/internal/test/worktest"
	"bahi/providers/chat"
)

// reply sends a reply.
func reply(t *testing.T, r *chat.Replies) (string, error) {
	t.Helper()
	return r.Reply(t.Context(), "draft-12", "919812345678", "Order draft 12: 2 items, 500 g. सोना & \"silver\"")
}

// replies returns the sender of replies to a server.
func replies(t *testing.T, server http.HandlerFunc, source string) *chat.Replies {
	t.Helper()
	aggregator := worktest.Serve(t, server)
	r, err := chat.NewReplies(chat.ReplySettings{
		BaseURL: aggregator.URL + "/wa/api/v1/", APIKey: "key", Source: source, App: "Workshop", Channel: "chat",
	})
	require.NoError(t, err)
	return r
}

// sends is the suite of both senders.
func sends(t *testing.T, r *chat.Replies) {
	t.Helper()
	id, err := reply(t, r)
	require.NoError(t, err)
	require.NotEmpty(t, id)
	again, err := reply(t, r)
	require.NoError(t, err)
	require.Equal(t, id, again)
}

func TestSandboxOfRepliesPassesTheSuite(t *testing.T) {
	t.Parallel()
	r, err := chat.NewReplies(chat.ReplySettings{})
	require.NoError(t, err)
	sends(t, r)
	_, err = r.Reply(t.Context(), "1", "", "to nobody")
	require.Equal(t, "failed", r.Ended(err))
}

func TestRepliesPassTheSuite(t *testing.T) {
	t.Parallel()
	for source, sent := range map[string][]string{"+91 70000 00000": {"917000000000"}, "": nil} {
		var (
			header http.Header
			form   url.Values
			path   string
		)
		sends(t, replies(t, func(w http.ResponseWriter, r *http.Request) {
			_ = r.ParseForm()
			header, form, path = r.Header, r.PostForm, r.URL.Path
			w.WriteHeader(http.StatusAccepted)
			_, _ = w.Write([]byte(`{"status":"submitted","messageId":"ee4a"}`))
		}, source))
		require.Equal(t, "/wa/api/v1/msg", path)
		require.Equal(t, "key", header.Get("Apikey"))
		require.Equal(t, sent, form["source"])
		delete(form, "source")
		require.Equal(t, url.Values{
			"channel": {"chat"}, "destination": {"919812345678"}, "src.name": {"Workshop"},
			"message": {`{"text":"Order draft 12: 2 items, 500 g. सोना \u0026 \"silver\"","type":"text"}`},
		}, form)
	}
}

func TestReplyIsNotSentAgainWhereItMayHaveArrived(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		answer string
		ended  string
	}{
		{status: 429, answer: `{}`},
		{status: 500, answer: `oops`, ended: "unknown"},
		{status: 503, ended: "unknown"},
		{status: 200, answer: `<html>`, ended: "unknown"},
		{status: 200, answer: `{"status":"error","message":"no balance"}`, ended: "failed"},
		{status: 400, answer: `{"status":"error"}`, ended: "failed"},
		{status: 401, answer: `no`, ended: "failed"},
		{status: 302, ended: "failed"},
	} {
		r := replies(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(c.answer))
		}, "")
		_, err := reply(t, r)
		require.Error(t, err, c)
		require.NotContains(t, err.Error(), "919812345678")
		require.Equal(t, c.ended, r.Ended(err), c)
	}
}

func TestBrokenConnectionLeavesDoubtAndAMissingOneDoesNot(t *testing.T) {
	t.Parallel()
	r := replies(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "")
	_, err := reply(t, r)
	require.Equal(t, "unknown", r.Ended(err))

	server := httptest.NewServer(nil)
	server.Close()
	r, err = chat.NewReplies(chat.ReplySettings{BaseURL: server.URL, APIKey: "key"})
	require.NoError(t, err)
	_, err = reply(t, r)
	require.Equal(t, network.Unreached, chat.AsFailure(err).Reason)
	require.Empty(t, r.Ended(err), "another attempt may follow")
}

func TestUnusableSettingsOfRepliesAreRefused(t *testing.T) {
	t.Parallel()
	for _, s := range []chat.ReplySettings{
		{BaseURL: "https://a.example", Source: "91"}, {BaseURL: "https://a.example", APIKey: "k", Source: "x"},
		{BaseURL: "ftp://a.example", APIKey: "k", Source: "91"}, {BaseURL: "https://u:p@a.example", APIKey: "k", Source: "91"},
		{BaseURL: "https://a.example?x=1", APIKey: "k", Source: "91"},
	} {
		_, err := chat.NewReplies(s)
		require.Error(t, err, s)
	}
}

func TestAggregatorThatFailsOftenIsLeftAlone(t *testing.T) {
	t.Parallel()
	calls, status := 0, http.StatusBadRequest
	r := replies(t, func(w http.ResponseWriter, _ *http.Request) {
		calls++
		w.WriteHeader(status)
	}, "")
	for range 6 { // a refusal does not show that the aggregator fails
		_, err := reply(t, r)
		require.Equal(t, "failed", r.Ended(err))
	}
	status = http.StatusBadGateway
	for range 5 {
		_, err := reply(t, r)
		require.Equal(t, "unknown", r.Ended(err))
	}
	for range 3 {
		_, err := reply(t, r)
		require.Equal(t, network.Unreached, chat.AsFailure(err).Reason)
		require.Empty(t, r.Ended(err), "another attempt may follow")
	}
	require.Equal(t, 11, calls)
}
