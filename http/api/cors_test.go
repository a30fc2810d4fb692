package api_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/http/api"
	"bahi/internal/test/apitest"
)

const frontend = "https://app.example.com"

func sharing(t *testing.T) *apitest.Client {
	url, _ := limited(t, func(c *api.Config) { c.Origins = []string{frontend, "http://localhost:5173"} })
	return apitest.New(t, url, "")
}

func TestABrowserLearnsWhatItMaySend(t *testing.T) {
	t.Parallel()
	ask := sharing(t).With("Origin", frontend, "Access-Control-Request-Method", "PATCH",
		"Access-Control-Request-Headers", "authorization,bahi-reason,content-type,idempotency-key,if-match")
	a := ask.Do("OPTIONS", "/rows", nil).Status(204).None()
	require.Equal(t, frontend, a.Header("Access-Control-Allow-Origin"))
	require.Equal(t, "PATCH", a.Header("Access-Control-Allow-Methods"))
	require.Equal(t, "authorization,bahi-reason,content-type,idempotency-key,if-match", a.Header("Access-Control-Allow-Headers"))
	require.Equal(t, "600", a.Header("Access-Control-Max-Age"))
	require.Contains(t, a.Header("Vary"), "Origin")
	require.NotEmpty(t, a.Header("X-Request-Id"))
	require.Empty(t, a.Header("RateLimit"), "a preflight is not counted")
	for _, other := range []*apitest.Client{ask.With("Access-Control-Request-Method", "TRACE"),
		ask.With("Access-Control-Request-Headers", "cookie2")} {
		require.Empty(t, other.Do("OPTIONS", "/rows", nil).Status(204).Header("Access-Control-Allow-Origin"))
	}
	ask.With("Access-Control-Request-Method", "").Do("OPTIONS", "/rows", nil).Status(405)
}

func TestOriginIsParsedAsBrowsersSendIt(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"https://app.example.com": frontend, "https://App.Example.com/": frontend, "https://app.example.com:443/login?x=1#y": frontend,
		"http://localhost:5173": "http://localhost:5173", "http://localhost:80/": "http://localhost", "http://[::1]:8080": "http://[::1]:8080",
		"http://[::1]": "http://[::1]", "https://localhost:80": "https://localhost:80",
	} {
		origin, err := api.Origin(url)
		require.NoError(t, err, url)
		require.Equal(t, want, origin, url)
	}
	for _, url := range []string{"", "*", "null", "app.example.com", "ftp://app.example.com", "https://", "https://*.example.com",
		"https://a:b@example.com", "https://दुकान.example", "https://a.example:x"} {
		_, err := api.Origin(url)
		require.ErrorContains(t, err, "expected a URL such as", url)
	}
}
