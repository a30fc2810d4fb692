package blob_test

import (
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/providers/blob"
)

// TestMain hides this machine's credentials from S3's SDK, and keeps the SDK from looking for some on the network.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": accessKey, "AWS_SECRET_ACCESS_KEY": secretKey, "AWS_SESSION_TOKEN": "", "AWS_PROFILE": "",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_EC2_METADATA_DISABLED": "true",
	} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

var picture = []byte("\x89PNG\r\n\x1a\n and more")

// keeps is the suite that both kinds of store pass.
func keeps(t *testing.T, s *blob.Store) {
	t.Helper()
	put := func(key, kind string, data []byte) { require.NoError(t, s.Put(t.Context(), key, kind, data), key) }
	t.Run("a blob keeps its content and type, and has a link", func(t *testing.T) {
		put("pictures/7/a.png", "image/png", picture)
		data, kind, err := s.Get(t.Context(), "pictures/7/a.png")
		require.NoError(t, err)
		require.Equal(t, picture, data)
		require.Equal(t, "image/png", kind)

		answer, body := get(t, link(t, s, "pictures/7/a.png"))
		require.Equal(t, http.StatusOK, answer.StatusCode, string(body))
		require.Equal(t, picture, body)
		require.Equal(t, "image/png", answer.Header.Get("Content-Type"))
		require.Equal(t, "inline; filename=a.png", answer.Header.Get("Content-Disposition"))
	})
	t.Run("a browser saves content that it could run", func(t *testing.T) {
		for key, kind := range map[string]string{"x.html": "text/html; charset=utf-8", "x.svg": "image/svg+xml", "x.pdf": "application/pdf"} {
			put(key, kind, []byte("<script>alert(1)</script>"))
			answer, _ := get(t, link(t, s, key))
			require.Equal(t, kind, answer.Header.Get("Content-Type"))
			require.Equal(t, "attachment; filename="+key, answer.Header.Get("Content-Disposition"))
		}
	})
	t.Run("a second put replaces the blob", func(t *testing.T) {
		put("again", "image/png", picture)
		put("again", "text/plain", nil)
		data, kind, err := s.Get(t.Context(), "again")
		require.NoError(t, err)
		require.Empty(t, data)
		require.Equal(t, "text/plain", kind)
	})
	t.Run("a delete may be repeated", func(t *testing.T) {
		put("gone", "image/png", picture)
		old := link(t, s, "gone")
		require.NoError(t, s.Delete(t.Context(), "gone"))
		require.NoError(t, s.Delete(t.Context(), "gone"))
		require.NoError(t, s.Delete(t.Context(), "never/was"))
		_, _, err := s.Get(t.Context(), "gone")
		require.ErrorIs(t, err, blob.ErrNotFound)
		answer, body := get(t, old)
		require.Equal(t, http.StatusNotFound, answer.StatusCode)
		require.NotContains(t, string(body), "\x89PNG")
	})
	t.Run("a list has the keys below a prefix, in order", func(t *testing.T) {
		for _, key := range []string{"users/7/b", "users/7/a", "users/70", "users/7.png"} {
			put(key, "image/png", picture)
		}
		for prefix, want := range map[string][]string{
			"users/7/": {"users/7/a", "users/7/b"}, "users/7": {"users/7.png", "users/7/a", "users/7/b", "users/70"}, "users/8": nil, "nobody/": nil,
		} {
			keys, err := s.List(t.Context(), prefix)
			require.NoError(t, err)
			require.Equal(t, want, keys, prefix)
		}
		all, err := s.List(t.Context(), "")
		require.NoError(t, err)
		require.Contains(t, all, "users/70")
	})
	t.Run("a malformed key is refused", func(t *testing.T) {
		for _, key := range []string{
			"", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/..", ".hidden", "a/.hidden", "a b", "a\\b", "a\x00", "a\n", "ä",
			"a?b", "a%2e", "a.attrs",
			strings.Repeat("a", 201), strings.Repeat("abc/", 128) + "a",
		} {
			require.ErrorIs(t, s.Put(t.Context(), key, "image/png", picture), blob.ErrKey, "%q", key)
			require.ErrorIs(t, s.Delete(t.Context(), key), blob.ErrKey, "%q", key)
			_, _, err := s.Get(t.Context(), key)
			require.ErrorIs(t, err, blob.ErrKey, "%q", key)
			_, err = s.URL(t.Context(), key, time.Minute)
			require.ErrorIs(t, err, blob.ErrKey, "%q", key)
			if key != "" && key != "a/" {
				_, err = s.List(t.Context(), key)
				require.ErrorIs(t, err, blob.ErrKey, "%q", key)
			}
		}
		longest := strings.Repeat("a", 200) + "/" + strings.Repeat("b", 200) + "/" + strings.Repeat("c", 110)
		put(longest, "image/png", picture)
		require.Error(t, s.Put(t.Context(), "untyped", "", picture))
	})
	t.Run("a link lives for a second to seven days", func(t *testing.T) {
		for ttl, fits := range map[time.Duration]bool{-1: false, 0: false, time.Millisecond: false, time.Second: true, 168 * time.Hour: true,
			169 * time.Hour: false} {
			_, err := s.URL(t.Context(), "a", ttl)
			if fits {
				require.NoError(t, err, ttl)
			} else {
				require.ErrorIs(t, err, blob.ErrTTL, ttl)
			}
		}
	})
	t.Run("an altered link opens nothing", func(t *testing.T) {
		put("mine", "image/png", picture)
		put("theirs", "image/png", picture)
		u, err := url.Parse(link(t, s, "mine"))
		require.NoError(t, err)
		for name := range u.Query() {
			for _, value := range []string{"", "1", "theirs", "PUT", "99999999999"} {
				altered, query := *u, u.Query()
				query.Set(name, value)
				altered.RawQuery = query.Encode()
				answer, body := get(t, altered.String())
				require.NotEqual(t, http.StatusOK, answer.StatusCode, altered.RawQuery)
				require.NotContains(t, string(body), "\x89PNG")
			}
		}
		bare := *u
		bare.RawQuery = ""
		answer, _ := get(t, bare.String())
		require.Equal(t, http.StatusForbidden, answer.StatusCode)
	})
}

func link(t *testing.T, s *blob.Store, key string) string {
	t.Helper()
	text, err := s.URL(t.Context(), key, time.Minute)
	require.NoError(t, err)
	return text
}

// get requests the link without credentials.
func get(t *testing.T, link string) (*http.Response, []byte) { return request(t, http.MethodGet, link) }

func request(t *testing.T, method, link string) (*http.Response, []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, link, nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer, body
}
