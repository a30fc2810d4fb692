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
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil ||
		strings.ContainsFunc(u.Host, notInHost) {
		return "", fmt.Errorf("origin %q: expected a URL such as https://app.example.com", text)
	}
	host := strings.ToLower(u.Host)
	if port := u.Port(); port == "" || u.Scheme == "http" && port == "80" || u.Scheme == "https" && port == "443" {
		host = strings.TrimSuffix(strings.TrimSuffix(host, port), ":")
	}
	return u.Scheme + "://" + host, nil
}

// notInHost reports whether browsers never send a character in a host: the wildcard, and non-ASCII letters. For such letters browsers send
// xn--….
func notInHost(c rune) bool { return c == '*' || c >= utf8.RuneSelf }

// cookiePaths is the prefix of the paths of the refresh cookie. Only on these paths may a browser send credentials automatically. On other
// paths a caller authenticates by a header, which no foreign page can set.
const cookiePaths = "/api/v1/auth/"

// preflightAge is the time for which a browser may cache the response to a preflight.
const preflightAge = 10 * time.Minute

// shareWith permits calls from pages of the origins (G32 of the contract), by the rules of the Fetch standard.
func (a *API) shareWith(origins []string) {
	if len(origins) == 0 {
		return
	}
	options := rules(func(_ *http.Request, origin string) bool { return slices.Contains(origins, origin) })
	a.shared[""] = cors.New(options)
	options.AllowCredentials = true
	a.shared[cookiePaths] = cors.New(options)
}

// rules returns the rules for pages of allowed origins.
func rules(allowed func(r *http.Request, origin string) bool) cors.Options {
	return cors.Options{
		AllowOriginVaryRequestFunc: func(r *http.Request, origin string) (bool, []string) {
			return len(r.Header["Origin"]) == 1 && allowed(r, origin), nil
		},
		AllowedMethods: []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete},
		AllowedHeaders: []string{
			"Accept", "Authorization", "Content-Type", "Bahi-Dry-Run", "Bahi-Min-Position", "Bahi-Reason", "Bahi-Workspace",
			"Idempotency-Key", "If-Match", "Last-Event-ID", "Prefer", "Traceparent", "Tracestate", "X-Correlation-Id",
			"X-Request-Id",
		},
		ExposedHeaders: []string{
			"Bahi-Position", "Bahi-Stale", "Content-Disposition", "Deprecation", "ETag", "Idempotency-Replayed", "Link", "Location",
			"Preference-Applied", "RateLimit",
			"RateLimit-Policy", "Retry-After", "Sunset", "Warning", "X-Request-Id", "X-Total-Count",
		},
		MaxAge: int(preflightAge.Seconds()),
	}
}

// AllowOriginsBelow allows pages of allowed origins to read the responses below a path. Config.Origins do not apply to these paths.
func (a *API) AllowOriginsBelow(path string, allowed func(r *http.Request, origin string) bool) {
	a.shared[path] = cors.New(rules(allowed))
}

// share sets the headers that allow a page to read the response. If the request is a preflight, share handles it and returns true.
func (c *call) share() (answered bool) {
	rules := c.sharing()
	if rules == nil {
		return false
	}
	rules.HandlerFunc(c, c.r)
	return c.r.Method == http.MethodOptions && c.r.Header.Get("Access-Control-Request-Method") != ""
}

// sharing returns the rules of the longest prefix of the path; nil if there are none.
func (c *call) sharing() (found *cors.Cors) {
	longest := -1
	for below, rules := range c.api.shared {
		if len(below) > longest && strings.HasPrefix(c.r.URL.Path, below) {
			found, longest = rules, len(below)
		}
	}
	return found
}
