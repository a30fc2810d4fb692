package http_test

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
)

// forgeries returns invalid tokens by their fault.
func forgeries(t *testing.T, o *apptest.Server, good apptest.SignedIn) map[string]string {
	t.Helper()
	claims := jwt.MapClaims{}
	parsed, _, err := jwt.NewParser().ParseUnverified(good.Access, claims)
	require.NoError(t, err)
	signed := func(method jwt.SigningMethod, key any, header ...string) string {
		token := jwt.NewWithClaims(method, claims)
		token.Header["kid"] = parsed.Header["kid"]
		for i := 0; i < len(header); i += 2 {
			token.Header[header[i]] = header[i+1]
		}
		text, err := token.SignedString(key)
		require.NoError(t, err)
		return text
	}
	other := make([]byte, 32)
	rand.Read(other)
	kid, _ := parsed.Header["kid"].(string)
	secret, err := o.Sys.Vault.Named(t.Context(), "jwt/"+kid, 32)
	require.NoError(t, err)
	ended := o.SignIn("asha@example.com", apptest.GoodPassword)
	o.Bearer(ended.Access).POST(apptest.Auth+"/logout", nil).Status(200)
	return map[string]string{
		"none": "", "expired": o.Expired(good.Access), "unsigned": signed(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType),
		"signed with another key": signed(jwt.SigningMethodHS256, other), "signed in another way": signed(jwt.SigningMethodHS512, secret),
		"of a missing key":   signed(jwt.SigningMethodHS256, secret, "kid", uuid.NewString()),
		"of a key in a file": signed(jwt.SigningMethodHS256, []byte{}, "kid", "../../dev/null"),
		"for refreshing":     good.Refresh, "of no type": o.Forge(good.Access, func(c jwt.MapClaims) { delete(c, "typ") }),
		"without an expiry":           o.Forge(good.Access, func(c jwt.MapClaims) { delete(c, "exp") }),
		"of another deployment":       o.Forge(good.Access, func(c jwt.MapClaims) { c["iss"] = "https://elsewhere.example" }),
		"of no session":               o.Forge(good.Access, func(c jwt.MapClaims) { c["sid"] = uuid.NewString() }),
		"of a session that has ended": ended.Access, "cut": good.Access[:len(good.Access)-1],
		"with no signature": good.Access[:strings.LastIndexByte(good.Access, '.')+1],
	}
}

// requestsOf returns a valid request for each operation of the ledger.
func requestsOf(account, row int64) []struct{ Method, Path, Body string } {
	return []struct{ Method, Path, Body string }{
		{"GET", "/banks", ""}, {"GET", fmt.Sprintf("/bank/%d", account), ""}, {"GET", apptest.Ledger(account), ""},
		{"GET", apptest.At(account, row), ""},
		{"GET", apptest.At(account, row, "/history"), ""}, {"GET", apptest.Ledger(account, "/statement.pdf"), ""}, {"GET", "/books/lock", ""},
		{"POST", "/bank", `{"name":"SBI"}`}, {"PUT", fmt.Sprintf("/bank/%d", account), `{"name":"SBI"}`},
		{"POST", apptest.Ledger(account), apptest.Deposit("2025-03-01", "1")},
		{"PUT", apptest.Ledger(account), fmt.Sprintf(`{"id":%d,"date":"2025-03-02"}`, row)},
		{"POST", apptest.Ledger(account, "/rows"), apptest.Bulk(apptest.Deposit("2025-03-01", "1"))},
		{"PUT", "/books/lock", `{"locked_through":"2025-01-01"}`},
		{"POST", apptest.At(account, row, "/reverse"), `{"reason":"typo"}`}, {"POST", apptest.At(account, row, "/void"), `{"reason":"typo"}`},
		{"POST", apptest.Ledger(account, "/rows/reverse"), fmt.Sprintf(`{"rows":[%d],"reason":"typo"}`, row)},
		{"DELETE", apptest.At(account, row), ""}, {"DELETE", fmt.Sprintf("/bank-account/%d", account), ""},
	}
}

// listening requests a stream that may be refused.
func listening(o *apptest.Server, token string) *http.Response {
	o.T.Helper()
	request, err := http.NewRequestWithContext(o.T.Context(), http.MethodGet, o.URL+apptest.AuditStream, nil)
	require.NoError(o.T, err)
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	require.NoError(o.T, err)
	o.T.Cleanup(func() { response.Body.Close() })
	return response
}
