package api_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/http/api"
)

// quiet is an API without a listener, for millions of requests.
func quiet() *server {
	s := &server{}
	s.API = api.New(api.Config{Credentials: []api.Credential{{Prefix: "bahi_", Authenticator: everybody}}})
	s.register()
	api.Handle(s.API, api.Op{ID: "varied", Method: "PUT", Path: "/varied", Public: true, StrictBody: true}, varyHandler)
	return s
}

func (s *server) do(method, target string, header http.Header, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "/", strings.NewReader(body))
	r.URL.Path, r.URL.RawQuery, _ = strings.Cut(target, "?")
	r.Header = header
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = s.seen[max(0, len(s.seen)-1):]
	return w
}

// FuzzBody compares the decoder with encoding/json. Both give an accepted body the same fields, and a body that encoding/json cannot read
// is refused. No response is a 5xx.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{
		good, `{"id":"11111111-1111-4111-8111-111111111111","at":"2025-03-31T09:15:00Z","tree":{"name":"a","children":[{"name":"b"}],` +
			`"by":{"x":1,"y":null}},"flag":true,"small":-1,"natural":7,"share":1e2,"any":{"n":[1.50,null,"x"]},"code":"abc"}`,
		`{"id":"11111111-1111-4111-8111-111111111111","tree":{"name":"\ud83d\ude00"}}`, `{"tree":{"name":"a","name":"b"}}`,
		`{"id":1}`, `[]`, `null`, `"`, `{"a":` + strings.Repeat("[", 70), "{\"\xff\":1}", `{"share":1e400}`, `{"any":"\u0000"}`, ``, ` `,
	} {
		f.Add(seed)
	}
	s := quiet()
	header := http.Header{"Authorization": {"Bearer bahi_clerk"}}
	f.Fuzz(func(t *testing.T, body string) {
		require.Less(t, s.do("POST", "/ledger/3", header, body).Code, 500)
		require.Less(t, s.do("POST", "/echo", header, body).Code, 500)
		w := s.do("PUT", "/varied", header, body)
		require.Less(t, w.Code, 500)
		if !json.Valid([]byte(body)) {
			require.Equal(t, http.StatusBadRequest, w.Code)
		}
		if w.Code != http.StatusOK {
			return
		}
		require.True(t, utf8.ValidString(body))
		var want, got varied
		require.NoError(t, json.Unmarshal([]byte(body), &want))
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
		wantJSON, err := json.Marshal(want)
		require.NoError(t, err)
		gotJSON, err := json.Marshal(got)
		require.NoError(t, err)
		require.JSONEq(t, string(wantJSON), string(gotJSON))
	})
}

// FuzzHeaders tries headers, path and query. Every accepted value is valid.
func FuzzHeaders(f *testing.F) {
	f.Add("GET", "/ledger/3?from=2025-03-31", "bahi_clerk", "k", `"3"`, "why", "true", "12", "r-1")
	f.Add("POST", "/ledger/3?x=%zz", "bahi_clerk", strings.Repeat("k", 256), `W/"3"`, "%zz", "yes", "-1", "a b")
	f.Add("DELETE", "/ledger/9223372036854775808", "", "\xff", `*`, "%00", "", "", "")
	f.Add("HEAD", "/ledger/%2f", "x", "", `"`, "%ff", "false", "18446744073709551616", "\n")
	f.Add("PATCH", "//", "bahi_operator", "\x00", `"", ""`, "%E0%A4%97", "1", "1e3", "é")
	f.Add("TRACE", "/docs/../ledger/1;a?&&=&a=1;b", "bahi_reader", "a", `"-1"`, strings.Repeat("é", 501), "TRUE", " 1", "_")
	s := quiet()
	f.Fuzz(func(t *testing.T, method, target, bearer, key, match, reason, dry, position, id string) {
		if !validMethod(method) {
			return
		}
		header := http.Header{}
		for name, value := range map[string]string{
			"Authorization": "Bearer " + bearer, "Idempotency-Key": key, "If-Match": match, "Bahi-Reason": reason,
			"Bahi-Dry-Run": dry, "Bahi-Min-Position": position, "X-Request-Id": id, "Prefer": match, "Accept": reason,
			"Bahi-Workspace": dry, "Content-Type": id,
		} {
			if value != "" {
				header.Set(name, value)
			}
		}
		for _, without := range []string{"", "Bahi-Workspace", "Content-Type", "If-Match", "Bahi-Dry-Run"} {
			header.Del(without)
			w := s.do(method, target, header, good)
			require.Less(t, w.Code, 500, w.Body.String())
			if w.Code >= 400 {
				require.True(t, json.Valid(w.Body.Bytes()), w.Body.String())
			}
			if w.Code < 300 && len(s.seen) > 0 {
				inOrder(t, s.seen[0])
			}
			for name, values := range w.Header() {
				for _, value := range values {
					require.NotContains(t, value, "\n", name)
				}
			}
		}
	})
}

func inOrder(t *testing.T, r commands.Request) {
	t.Helper()
	require.True(t, utf8.ValidString(r.Key+r.Reason+r.RequestID))
	require.NotContains(t, r.Key+r.Reason+r.RequestID, "\x00")
	require.LessOrEqual(t, utf8.RuneCountInString(r.Reason), 500)
	require.LessOrEqual(t, utf8.RuneCountInString(r.Key), 255)
	require.NotEmpty(t, r.RequestID)
	require.Equal(t, r.Key != "", r.Fingerprint != nil)
}

func validMethod(method string) bool {
	return method != "" && !strings.ContainsFunc(method, func(r rune) bool { return r < 'A' || r > 'Z' })
}
