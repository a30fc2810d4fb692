package console

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// kept stores sessions in memory.
type kept struct{ sync.Map }

func (k *kept) Begin(_ context.Context, session uuid.UUID, _ time.Time) error {
	k.Store(session, true)
	return nil
}

func (k *kept) Alive(_ context.Context, session uuid.UUID) (bool, error) {
	_, alive := k.Load(session)
	return alive, nil
}

func (k *kept) Revoke(_ context.Context, session uuid.UUID) error {
	k.Delete(session)
	return nil
}

func build(t *testing.T, public string, now func() time.Time) *Console {
	t.Helper()
	c, err := New(Config{Sessions: &kept{}, Key: bytes.Repeat([]byte{7}, 32), PublicURL: public, Zone: time.UTC, Now: now, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	return c
}

// begun returns the cookie of a session with the key.
func begun(t *testing.T, c *Console, key string) *http.Cookie {
	t.Helper()
	w := httptest.NewRecorder()
	require.NoError(t, c.visit(w, httptest.NewRequest(http.MethodGet, Path+"/", nil)).begin(key))
	return w.Result().Cookies()[0]
}

func TestCookieOpensUntilItExpires(t *testing.T) {
	t.Parallel()
	now := time.Date(2025, 3, 1, 9, 0, 0, 0, time.UTC)
	c := build(t, "https://bahi.example", func() time.Time { return now })
	cookie := begun(t, c, "bahi_key")
	require.True(t, cookie.HttpOnly)
	require.True(t, cookie.Secure)
	require.Equal(t, http.SameSiteStrictMode, cookie.SameSite)
	require.Equal(t, Path, cookie.Path)
	require.Equal(t, 12*60*60, cookie.MaxAge)
	require.NotContains(t, cookie.Value, "bahi_key")
	require.NotEqual(t, cookie.Value, begun(t, c, "bahi_key").Value)

	s, known := c.unseal(cookie.Value)
	require.True(t, known)
	require.Equal(t, "bahi_key", s.Key)
	require.True(t, s.holds(s.Token))
	require.False(t, s.holds(""))
	require.False(t, s.holds(s.Token+"x"))
	require.False(t, session{}.holds(""))

	for _, bad := range []string{"", "x", cookie.Value[1:], cookie.Value + "A", cookie.Value[:len(cookie.Value)-4] + "AAAA"} {
		_, known = c.unseal(bad)
		require.False(t, known, bad)
	}
	other := c.Config
	other.Key = bytes.Repeat([]byte{8}, 32)
	elsewhere, err := New(other)
	require.NoError(t, err)
	_, known = elsewhere.unseal(cookie.Value)
	require.False(t, known)
	now = now.Add(12 * time.Hour)
	_, known = c.unseal(cookie.Value)
	require.False(t, known, "after twelve hours")
}

func TestCookieIsSecureOverHTTPS(t *testing.T) {
	t.Parallel()
	require.False(t, begun(t, build(t, "http://127.0.0.1:8080", time.Now), "").Secure)
}

func TestRedirectsStayInTheConsole(t *testing.T) {
	t.Parallel()
	for next, want := range map[string]string{
		"/console/events?type=A&page=2": "/console/events?type=A&page=2", "": "/console/", "/": "/console/", "//evil.example/console/": "/console/",
		"https://evil.example/console/": "/console/", `/\evil.example`: "/console/", `/console/\..\x`: "/console/", "console/": "/console/", "/consoles/": "/console/",
		"javascript:alert(1)": "/console/", "/console/%zz": "/console/",
	} {
		require.Equal(t, want, (&Console{site: site{path: Path}}).within(next), next)
	}
}

func TestConsoleRequiresAKeyAndAnAddress(t *testing.T) {
	t.Parallel()
	_, err := New(Config{Key: []byte("short"), PublicURL: "http://127.0.0.1"})
	require.Error(t, err)
	_, err = New(Config{Key: make([]byte, 32), PublicURL: "://"})
	require.Error(t, err)
}
