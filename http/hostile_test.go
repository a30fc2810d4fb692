package http_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands/accesscmd/credentials"
	"bahi/internal/test/apptest"
)

// FuzzRequest sends what anybody may send to the whole system, with the operator's key, as a user, and without a credential: no response
// may be a 5xx.
func FuzzRequest(f *testing.F) {
	o := apptest.Start(f)
	handler := o.Api(apptest.OperatorKey)
	asha := o.Person("asha@example.com")
	user := asha.Access
	clerk := o.Operator()
	account := apptest.Open(clerk, "HDFC")
	row := apptest.Post(clerk, account, apptest.Deposit("2025-03-01", "12.5"))
	headers := "Idempotency-Key: k\r\nIf-Match: \"0\"\r\nBahi-Reason: %E2%82%B9\r\nBahi-Dry-Run: true\r\nPrefer: " +
		"return=representation\r\nBahi-Min-Position: 1\r\n"
	for _, r := range requestsOf(account, row.ID) {
		f.Add(byOperator, r.Method, r.Path, "", r.Body)
		f.Add(byOperator, r.Method, r.Path, headers, r.Body)
	}
	for _, seed := range ofAccounts("/api/v1/workspaces/" + asha.Workspace) {
		for who := range callers {
			f.Add(who, seed.method, seed.path, "Content-Type: application/json\r\n", seed.body)
		}
	}
	for _, path := range []string{
		apptest.Ledger(account, "?from=2025-01-01&to=2025-12-31&page=1&page_size=2&as_of=2025-06-01&known_at=3"),
		"/banks?known_at=2025-01-01T00:00:00Z",
		"/bank-ledger/9223372036854775807/row/-1/history", apptest.Ledger(account, "/statement.pdf?from=1900-01-01&to=2199-12-31"),
		"/bank/%00", "/banks?as_of=%ff", "/banks?page_size=1e9",
		apptest.Ledger(account, "?known_at=9223372036854775807"), apptest.Ledger(account, "?page=1000000000&page_size=1000"),
		apptest.Ledger(account, "?from=2199-12-31"), "//", "*", "http://x/banks",
	} {
		f.Add(byOperator, "GET", path, "", "")
	}
	for _, body := range []string{
		`{"rows":[{"date":"2025-03-01","in_entries":[{"amount":0.01}]}]}`, `{"id":-1,"row_id":1e9}`,
		`{"date":"2025-03-01","in_entries":[{"amount":9999999999999.99,"description":"\u0000"}]}`,
		`{"locked_through":"1900-01-01"}`, `[[[[`, `{"name":"` + strings.Repeat("₹", 120) + `"}`, "\xff",
	} {
		f.Add(byOperator, "POST", apptest.Ledger(account, "/rows"), headers, body)
		f.Add(byOperator, "PUT", apptest.Ledger(account), "Bahi-Workspace: "+apptest.Home+"\r\n", body)
		f.Add(byOperator, "POST", "/api/v1/api-keys", "Content-Type: application/json\r\n", body)
	}
	f.Fuzz(func(t *testing.T, who byte, method, path, headers, body string) {
		bearer := map[byte]string{byOperator: apptest.OperatorKey, byUser: user, byStranger: ""}[who%callers]
		raw := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n%sContent-Length: %d\r\n\r\n%s", method, path,
			bearer, headers, len(body), body)
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(raw)))
		if err != nil {
			return // net/http answers it
		}
		a := httptest.NewRecorder()
		handler.ServeHTTP(a, r.WithContext(t.Context()))
		require.Less(t, a.Code, 500, "%q: %s", raw, a.Body)
		require.NotEmpty(t, a.Header().Get("X-Request-ID"))
		if bearer == user && a.Code == http.StatusUnauthorized { // an input has signed the user out
			in, err := o.Sys.Accounts.Credentials.Sessions.SignIn(t.Context(), credentials.Vouched(uuid.MustParse(asha.User.ID)))
			require.NoError(t, err)
			user = in.Access
		}
	})
}

// These are the callers of an input.
const (
	byOperator byte = iota
	byUser
	byStranger
	callers
)

// ofAccounts returns inputs of operations of accounts.
func ofAccounts(workspace string) []struct{ method, path, body string } {
	return []struct{ method, path, body string }{
		{"POST", apptest.Auth + "/register", `{"email":"ASHA@EXAMPLE.COM","password":"kundan and meena","first_name":"आशा","last_name":"S"}`},
		{"POST", apptest.Auth + "/register", `{"email":"xn--@xn--a.in","password":"\ud83d\ude00","first_name":"\u202e","last_name":"\u0000"}`},
		{"POST", apptest.Auth + "/login", `{"email":"asha@example.com","password":"kundan and meena"}`},
		{"POST", apptest.Auth + "/verify-email", `{"token":"x."}`},
		{"POST", apptest.Auth + "/password-reset/confirm", `{"token":"x.y","new_password":"\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000"}`},
		{"POST", apptest.Auth + "/email-change/undo", `{"token":"x.-1.x"}`},
		{"POST", apptest.Auth + "/refresh", `{"refresh_token":"eyJhbGciOiJub25lIn0.e30."}`},
		{"PUT", apptest.Me, `{"email":null,"first_name":"","last_name":[],"phone":"00919812345678"}`},
		{"POST", apptest.Me + "/profile-picture", "--x--"},
		{"GET", workspace + "/members", ""},
		{"POST", workspace + "/invitations", `{"email":"guest@example.com","permissions":{"ledger":"read","messaging":"none","operator":true}}`},
		{"POST", "/api/v1/invitations/accept", `{"token":"x.y"}`},
		{"POST", "/api/v1/api-keys", `{"name":"till","workspace_id":"x","permissions":{"operator":true}}`},
		{"POST", apptest.Auth + "/logout", ""},
	}
}

func TestWhatIsNoHTTPIsNotTheServersFault(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	for _, raw := range []string{
		"GET\r\n\r\n", "GET /banks\r\n\r\n", "\x16\x03\x01\x02\x00\x01", "GET /banks HTTP/1.1\r\n\r\n",
		"GET /banks HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("a", 1<<20) + "\r\n\r\n",
		"POST /bank HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
		"POST /bank HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n{}",
		"POST /bank HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "GET /banks HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(o.URL, "http://"))
		require.NoError(t, err)
		go func() { _, _ = conn.Write([]byte(raw + "\r\n\r\n")) }()
		a, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err == nil { // or it hangs up
			require.True(t, a.StatusCode >= 400 && a.StatusCode < 500 || a.StatusCode == http.StatusHTTPVersionNotSupported, "%.60q: %d",
				raw, a.StatusCode)
		}
		conn.Close()
	}
	o.Anonymous().GET("/livez").Status(200)
}
