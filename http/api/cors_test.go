package api_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/http/api"
)

const frontend = "https://app.example.com"

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
