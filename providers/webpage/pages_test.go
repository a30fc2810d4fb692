package webpage_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/worktest"
	"bahi/providers/egress"
	"bahi/providers/webpage"
)

// site serves a page at every path.
func site(t *testing.T, paths map[string]http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := worktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		//nolint:testifylint // the failure is noted, and the answer missing
		require.Empty(t, r.Header.Get("Cookie")+r.Header.Get("Authorization"))
		require.True(t, strings.HasPrefix(r.UserAgent(), "BahiBot")) //nolint:testifylint // as above
		if serve := paths[r.URL.Path]; serve != nil {
			serve(w, r)
			return
		}
		http.NotFound(w, r)
	}))
	return s
}

func says(kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = fmt.Fprint(w, body)
	}
}

func redirects(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) }
}

func fetcher(t *testing.T, servers ...*httptest.Server) *webpage.Fetcher {
	t.Helper()
	var list []string
	for _, s := range servers {
		list = append(list, strings.TrimPrefix(s.URL, "http://"))
	}
	e, err := egress.Parse(list)
	require.NoError(t, err)
	return webpage.New(e)
}

func TestAPageIsFetchedAsItsServerAllows(t *testing.T) {
	t.Parallel()
	s := site(t, map[string]http.HandlerFunc{
		"/robots.txt": says("text/plain", "User-agent: *\nDisallow: /private\n"), "/": says("text/html; charset=utf-8", "<p>hi"),
		"/plain":     says("text/plain", "hi"),
		"/private/a": says("text/html", "secret"), "/once": redirects("/"), "/loop": redirects("/loop"), "/pdf": says("application/pdf", "%PDF-"),
		"/large": says("text/plain", strings.Repeat("x", 5<<20+1)),
		"/down":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"/ftp":   redirects("ftp://a.example/"),
	})
	f := fetcher(t, s)
	for path, want := range map[string]string{"/": "<p>hi", "/plain": "hi", "/once": "<p>hi"} {
		body, err := f.Fetch(t.Context(), s.URL+path)
		require.NoError(t, err, path)
		require.Equal(t, want, string(body))
	}
	for path, want := range map[string]webpage.Failure{
		"/private/a": {Reason: "The server's robots.txt does not allow it"}, "/loop": {Reason: "The page redirects too often"},
		"/pdf":   {Reason: "The page is not a text"},
		"/large": {Reason: "The page is larger than 5 MB"}, "/down": {Reason: "The page's server responded with status 503", Again: true},
		"/none": {Reason: "The page's server responded with status 404"},
		"/ftp":  {Reason: "Address not allowed"},
	} {
		_, err := f.Fetch(t.Context(), s.URL+path)
		require.Equal(t, &want, err, path)
	}
}

func TestNoPageIsFetchedFromInside(t *testing.T) {
	t.Parallel()
	inside := site(t, map[string]http.HandlerFunc{"/": says("text/plain", "secret")})
	outside := site(t, map[string]http.HandlerFunc{"/": redirects(inside.URL), "/meta": redirects("http://169.254.169.254/latest/meta-data/")})
	f := fetcher(t, outside)
	for _, address := range []string{
		inside.URL, outside.URL, outside.URL + "/meta", "http://localhost/", "http://[::1]/", "http://10.0.0.1/", "http://[::ffff:127.0.0.1]/",
		"http://[64:ff9b::7f00:1]/", "http://0.0.0.0/",
		"http://100.64.0.1/", "http://169.254.169.254/",
	} {
		_, err := f.Fetch(t.Context(), address)
		require.Equal(t, &webpage.Failure{Reason: "Address not allowed"}, err, address)
	}
	both := fetcher(t, outside, inside)
	_, err := both.Fetch(t.Context(), outside.URL)
	require.Equal(t, &webpage.Failure{Reason: "Address not allowed"}, err, "an exception does not cover redirects from other sites")
	body, err := both.Fetch(t.Context(), inside.URL)
	require.NoError(t, err)
	require.Equal(t, "secret", string(body))
}

func TestRobotsThatCannotBeReadAllowNothing(t *testing.T) {
	t.Parallel()
	s := site(t, map[string]http.HandlerFunc{"/": says("text/plain", "hi"),
		"/robots.txt": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }})
	_, err := fetcher(t, s).Fetch(t.Context(), s.URL)
	require.Equal(t, &webpage.Failure{Reason: "The server's robots.txt cannot be read", Again: true}, err)
	s.Close()
	_, err = fetcher(t, s).Fetch(t.Context(), s.URL)
	require.Equal(t, &webpage.Failure{Reason: "The page's server cannot be reached", Again: true}, err)
}
