package console

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/domain/actor"
	"bahi/domain/fault"
	"bahi/http/api"
)

// people authenticates callers by their bearer.
type people map[string]actor.Actor

func (p people) Authenticate(_ context.Context, bearer string) (actor.Actor, error) {
	who, known := p[bearer]
	if !known {
		return actor.Actor{}, fault.New(fault.Unauthorized, "Not authenticated")
	}
	return who, nil
}

var known = people{
	"operator": {Type: "api_key", ID: "1", Permissions: actor.Permissions{Operator: true}},
	"clerk": {Type: "api_key", ID: "2", Permissions: actor.Permissions{
		Ledger: actor.Write, Messaging: actor.Write, Marketplace: actor.Write, Audit: actor.Write,
	}},
	"person": {Type: "user", ID: "3", Permissions: actor.Permissions{Operator: true}},
}

// house serves a console with only its doors: a caller who comes through one causes a panic.
func house(t *testing.T) (*Console, string) {
	t.Helper()
	c := build(t, "http://127.0.0.1", time.Now)
	a := api.New(api.Config{Credentials: []api.Credential{{Authenticator: known}}})
	a.Mount("console", Path, c)
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	return c, server.URL
}

var placeholder = regexp.MustCompile(`\{[a-z]+\}`)

// knock sends a request for a pattern, with a session.
func knock(t *testing.T, base, pattern string, cookie *http.Cookie, token string, header ...string) *http.Response {
	t.Helper()
	method, path, _ := strings.Cut(pattern, " ")
	path = placeholder.ReplaceAllString(strings.TrimSuffix(path, "{$}"), "1")
	r, err := http.NewRequestWithContext(t.Context(), method, base+Path+path, strings.NewReader(url.Values{"token": {token}}.Encode()))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	if cookie != nil {
		r.AddCookie(cookie)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(r)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response
}

func TestAllDoorsRequireAnOperatorsKey(t *testing.T) {
	t.Parallel()
	c, base := house(t)
	require.Greater(t, len(c.doors), 25)
	for _, key := range []string{"", "clerk", "person", "nobody's", "revoked"} {
		cookie := begun(t, c, key)
		s, _ := c.unseal(cookie.Value)
		for _, pattern := range c.doors {
			response := knock(t, base, pattern, cookie, s.Token)
			require.Equal(t, http.StatusSeeOther, response.StatusCode, "%s, %s", pattern, key)
			require.True(t, strings.HasPrefix(response.Header.Get("Location"), Path+"/sign-in"), pattern)
			response = knock(t, base, pattern, cookie, s.Token, "Hx-Request", "true")
			require.Equal(t, http.StatusUnauthorized, response.StatusCode, pattern)
			require.True(t, strings.HasPrefix(response.Header.Get("Hx-Redirect"), Path+"/sign-in"), pattern)
		}
	}
	signedOut := begun(t, c, "operator")
	s, _ := c.unseal(signedOut.Value)
	require.NoError(t, c.Sessions.Revoke(t.Context(), s.ID))
	for _, pattern := range c.doors {
		for _, cookie := range []*http.Cookie{nil, {Name: sessionCookie, Value: "x"}, signedOut} {
			status := knock(t, base, pattern, cookie, "").StatusCode
			if strings.HasPrefix(pattern, "GET") {
				require.Equal(t, http.StatusSeeOther, status, pattern)
			} else {
				require.Equal(t, http.StatusForbidden, status, pattern)
			}
		}
	}
}

func TestFormsRequireOriginAndToken(t *testing.T) {
	t.Parallel()
	c, base := house(t)
	cookie := begun(t, c, "operator")
	s, _ := c.unseal(cookie.Value)
	for _, pattern := range append([]string{"POST /sign-out", "POST /theme", "POST /sign-in"}, c.doors...) {
		if strings.HasPrefix(pattern, "GET") {
			continue
		}
		for what, status := range map[string]int{
			"Origin: https://evil.example": knock(t, base, pattern, cookie, s.Token, "Origin", "https://evil.example").StatusCode,
			"Origin: null":                 knock(t, base, pattern, cookie, s.Token, "Origin", "null").StatusCode,
			"Sec-Fetch-Site: cross-site":   knock(t, base, pattern, cookie, s.Token, "Sec-Fetch-Site", "cross-site").StatusCode,
			"Sec-Fetch-Site: same-site":    knock(t, base, pattern, cookie, s.Token, "Sec-Fetch-Site", "same-site").StatusCode,
			"no token":                     knock(t, base, pattern, cookie, "").StatusCode,
			"another session's token":      knock(t, base, pattern, cookie, begunToken(t, c)).StatusCode,
			"no session":                   knock(t, base, pattern, nil, s.Token).StatusCode,
		} {
			require.Equal(t, http.StatusForbidden, status, "%s, %s", pattern, what)
		}
	}
	require.Equal(t, http.StatusSeeOther, knock(t, base, "POST /sign-out", cookie, s.Token, "Origin", base).StatusCode)
}

func begunToken(t *testing.T, c *Console) string {
	t.Helper()
	s, _ := c.unseal(begun(t, c, "operator").Value)
	return s.Token
}

func TestResponsesHaveSecurityHeaders(t *testing.T) {
	t.Parallel()
	c, base := house(t)
	for _, pattern := range append([]string{"GET /sign-in", "GET /nothing", "GET /assets/nothing", "POST /sign-in"}, c.doors...) {
		h := knock(t, base, pattern, begun(t, c, ""), "").Header
		require.Equal(t, "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
			h.Get("Content-Security-Policy"), pattern)
		require.Equal(t, []string{"nosniff", "no-referrer", "no-store"}, []string{h.Get("X-Content-Type-Options"), h.Get("Referrer-Policy"), h.Get("Cache-Control")}, pattern)
	}
}

func TestAssetsAreCachedByVersion(t *testing.T) {
	t.Parallel()
	c, base := house(t)
	for name, a := range c.served {
		require.Equal(t, "public, max-age=31536000, immutable", knock(t, base, "GET /assets/"+name+"?v="+a.version, nil, "").Header.Get("Cache-Control"))
		require.Equal(t, "no-store", knock(t, base, "GET /assets/"+name+"?v=older", nil, "").Header.Get("Cache-Control"))
	}
	require.Equal(t, http.StatusNotFound, knock(t, base, "GET /assets/other.js", nil, "").StatusCode)
}
