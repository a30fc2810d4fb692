package api

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rs/cors"
)

// Origin returns the origin of a URL as browsers write it in their Origin header (RFC 6454, 6.2).
func Origin(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || strings.ContainsFunc(u.Host, notInHost) {
		return "", fmt.Errorf("origin %q: expected a URL such as https://app.example.com", text)
	}
	host := strings.ToLower(u.Host)
	if port := u.Port(); port == "" || u.Scheme == "http" && port == "80" || u.Scheme == "https" && port == "443" {
		host = strings.TrimSuffix(strings.TrimSuffix(host, port), ":")
	}
	return u.Scheme + "://" + host, nil
}

// notInHost finds characters that browsers do not send: a wildcard, and names that are not in ASCII (they send xn--…).
func notInHost(c rune) bool { return c == '*' || c >= utf8.RuneSelf }

// cookiePaths has the paths of the refresh cookie, the only ones to which a browser may send credentials by itself.
// Elsewhere a caller authenticates by a header, which no foreign page can set.
const cookiePaths = "/api/v1/auth/"

// preflightAge is how long a browser may cache a preflight's answer.
const preflightAge = 10 * time.Minute

// sharing lets pages of other origins call us (G32 of the contract), by the rules of the Fetch standard.
type sharing struct{ plain, credentials *cors.Cors }

// newSharing returns nil without other origins.
func newSharing(origins []string) *sharing {
	if len(origins) == 0 {
		return nil
	}
	options := cors.Options{
		AllowOriginVaryRequestFunc: func(r *http.Request, origin string) (bool, []string) {
			return len(r.Header["Origin"]) == 1 && slices.Contains(origins, origin), nil
		},
		AllowedMethods: []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete},
		AllowedHeaders: []string{
			"Accept", "Authorization", "Content-Type", "Bahi-Dry-Run", "Bahi-Min-Position", "Bahi-Reason", "Bahi-Workspace",
			"Idempotency-Key", "If-Match", "Prefer", "Traceparent", "Tracestate", "X-Request-Id",
		},
		ExposedHeaders: []string{
			"Bahi-Position", "Content-Disposition", "ETag", "Idempotency-Replayed", "Link", "Preference-Applied", "RateLimit",
			"RateLimit-Policy", "Retry-After", "Warning", "X-Request-Id", "X-Total-Count",
		},
		MaxAge: int(preflightAge.Seconds()),
	}
	withCookies := options
	withCookies.AllowCredentials = true
	return &sharing{plain: cors.New(options), credentials: cors.New(withCookies)}
}

// share sets the headers that let a page read the answer. It returns true for a browser's preflight, which is then
// answered.
func (c *call) share() (answered bool) {
	if c.api.sharing == nil {
		return false
	}
	rules := c.api.sharing.plain
	if strings.HasPrefix(c.r.URL.Path, cookiePaths) {
		rules = c.api.sharing.credentials
	}
	rules.HandlerFunc(c, c.r)
	return c.r.Method == http.MethodOptions && c.r.Header.Get("Access-Control-Request-Method") != ""
}
