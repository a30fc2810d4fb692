package egress_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/worktest"
	"bahi/providers/egress"
)

func get(t *testing.T, c *http.Client, address string) (string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	require.NoError(t, err)
	res, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.Status + " " + string(text), nil
}

func client(t *testing.T, exceptions ...string) *http.Client {
	t.Helper()
	e, err := egress.Parse(exceptions)
	require.NoError(t, err)
	return e.Client()
}

func TestOnlyPublicAddressesAndExceptionsAreCalled(t *testing.T) {
	t.Parallel()
	server := worktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "here") }))
	at, err := url.Parse(server.URL)
	require.NoError(t, err)

	for _, exceptions := range [][]string{{at.Host}, {"127.0.0.0/8"}} {
		text, err := get(t, client(t, exceptions...), server.URL)
		require.NoError(t, err)
		require.Equal(t, "200 OK here", text)
	}
	byName := "http://localhost:" + at.Port()
	_, err = get(t, client(t, "localhost:"+at.Port()), byName)
	require.NoError(t, err)
	named, err := egress.Parse([]string{"localhost:" + at.Port()})
	require.NoError(t, err)
	for _, allowed := range []string{byName, "https://graph.example.com/v21.0", "http://8.8.8.8", ""} {
		require.NoError(t, named.Check(allowed))
	}

	for _, c := range []*http.Client{client(t), client(t, "127.0.0.1:1", "10.0.0.0/8", "localhost:1")} {
		for _, address := range []string{
			server.URL, byName, "http://[::ffff:127.0.0.1]:" + at.Port(), "http://172.16.2.3:22", "http://169.254.169.254", "http://100.64.0.1",
			"http://[::1]",
			"http://0.0.0.0:" + at.Port(), "http://[64:ff9b::7f00:1]", "http://[fe80::1]", "http://203.0.113.9", "https://8.8.8.8:8443",
		} {
			_, err := get(t, c, address)
			require.ErrorIs(t, err, egress.ErrNotAllowed, address)
			require.ErrorContains(t, egress.Allowlist{}.Check(address), "is not a public address", "a setting is refused before it is used")
		}
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	asked := 0
	server := worktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}))
	text, err := get(t, client(t, strings.TrimPrefix(server.URL, "http://")), server.URL)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(text, "307 "), text)
	require.Equal(t, 1, asked)
}

func TestExceptionsThatCannotBeReadAreRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "localhost", ":80", "localhost:", "10.0.0.1/40", "http://localhost:80"} {
		_, err := egress.Parse([]string{text})
		require.ErrorContains(t, err, "expected host:port", text)
	}
}
