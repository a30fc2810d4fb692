package blob_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gocloud.dev/blob/driver"
	"gocloud.dev/blob/fileblob"

	"bahi/internal/test/worktest"
	"bahi/providers/blob"
)

var linkKey = bytes.Repeat([]byte{7}, 32)

// files opens a store and serves its links.
func files(t *testing.T) (s *blob.Store, folder string, server *httptest.Server) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), "data", "blobs")
	mux := http.NewServeMux()
	server = worktest.Serve(t, mux)
	s, err := blob.Open(t.Context(), "", blob.Files{Folder: folder, BaseURL: server.URL + "/blobs/", Key: linkKey})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	mux.Handle("/blobs/", s.Handler(slog.New(slog.DiscardHandler)))
	return s, folder, server
}

// signed returns a link with our signature for any query.
func signed(t *testing.T, server *httptest.Server, key string, o driver.SignedURLOptions) string {
	t.Helper()
	base, err := url.Parse(server.URL + "/blobs/")
	require.NoError(t, err)
	u, err := fileblob.NewURLSignerHMAC(base, linkKey).URLFromKey(t.Context(), key, &o)
	require.NoError(t, err)
	return u.String()
}

func TestFilesKeepBlobs(t *testing.T) {
	t.Parallel()
	s, _, _ := files(t)
	keeps(t, s)
}

func TestFilesArePrivate(t *testing.T) {
	t.Parallel()
	s, folder, _ := files(t)
	require.NoError(t, s.Put(t.Context(), "pictures/7/a.png", "image/png", picture))
	for _, path := range []string{folder, filepath.Join(folder, "pictures", "7")} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	}
	left, err := os.ReadDir(filepath.Join(folder, "pictures", "7"))
	require.NoError(t, err)
	require.Len(t, left, 2, "the blob and its type")
	require.NoError(t, s.Delete(t.Context(), "pictures/7/a.png"))
	left, err = os.ReadDir(filepath.Join(folder, "pictures", "7"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestFilesListTheRestOfACrashedWrite(t *testing.T) {
	t.Parallel()
	s, folder, _ := files(t)
	require.NoError(t, s.Put(t.Context(), "pictures/7/a.png", "image/png", picture))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "pictures", "7", "b.png.18c0ffee.tmp"), picture, 0o600))
	keys, err := s.List(t.Context(), "pictures/7/")
	require.NoError(t, err)
	require.Equal(t, []string{"pictures/7/a.png", "pictures/7/b.png.18c0ffee.tmp"}, keys)
	for _, key := range keys {
		require.NoError(t, s.Delete(t.Context(), key))
	}
	keys, err = s.List(t.Context(), "")
	require.NoError(t, err)
	require.Empty(t, keys)
}

func TestFilesLinksOpenOnlyTheirBlob(t *testing.T) {
	t.Parallel()
	s, folder, server := files(t)
	require.NoError(t, s.Put(t.Context(), "a.png", "image/png", picture))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "..", "secret"), []byte("secret"), 0o600))
	status := func(link string) int {
		answer, body := get(t, link)
		require.NotContains(t, string(body), "secret")
		return answer.StatusCode
	}
	require.Equal(t, http.StatusOK, status(signed(t, server, "a.png", driver.SignedURLOptions{Method: http.MethodGet, Expiry: time.Minute})))
	require.Equal(t, http.StatusForbidden,
		status(signed(t, server, "a.png", driver.SignedURLOptions{Method: http.MethodGet, Expiry: -2 * time.Second})), "expired")
	require.Equal(t, http.StatusForbidden,
		status(signed(t, server, "a.png", driver.SignedURLOptions{Method: http.MethodPut, Expiry: time.Minute})), "for something else")
	for _, key := range []string{"../secret", "/../secret", "..", "", "a.png/../../secret", "a.png.attrs", "/etc/passwd"} {
		require.Equal(t, http.StatusForbidden,
			status(signed(t, server, key, driver.SignedURLOptions{Method: http.MethodGet, Expiry: time.Minute})), "not a key: %s", key)
	}
	for _, path := range []string{"a.png", "%2e%2e%2fsecret", "?obj=a.png", ""} {
		require.Equal(t, http.StatusForbidden, status(server.URL+"/blobs/"+path), path)
	}
	other, err := blob.Open(t.Context(), "", blob.Files{Folder: folder, BaseURL: server.URL + "/blobs/", Key: bytes.Repeat([]byte{8}, 32)})
	require.NoError(t, err)
	require.Equal(t, http.StatusForbidden, status(link(t, other, "a.png")), "another key")
	require.Equal(t, http.StatusOK, status(link(t, s, "a.png")))
}

func TestFilesAreServedWithTheUsualHeaders(t *testing.T) {
	t.Parallel()
	s, _, _ := files(t)
	require.NoError(t, s.Put(t.Context(), "a.png", "image/png", picture))
	address := link(t, s, "a.png")

	answer, body := request(t, http.MethodHead, address)
	require.Equal(t, http.StatusOK, answer.StatusCode)
	require.EqualValues(t, len(picture), answer.ContentLength)
	require.Empty(t, body)
	require.Equal(t, "private", answer.Header.Get("Cache-Control"))
	require.Equal(t, "nosniff", answer.Header.Get("X-Content-Type-Options"))
	require.Equal(t, "default-src 'none'; sandbox", answer.Header.Get("Content-Security-Policy"))

	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions, "TRACE"} {
		answer, _ := request(t, method, address)
		require.Equal(t, http.StatusMethodNotAllowed, answer.StatusCode, method)
		require.Equal(t, "GET, HEAD", answer.Header.Get("Allow"))
	}
}

func TestReplacedFilesAreReadWhole(t *testing.T) {
	t.Parallel()
	s, _, _ := files(t)
	old, fresh := bytes.Repeat([]byte("a"), 1<<18), bytes.Repeat([]byte("b"), 1<<17)
	require.NoError(t, s.Put(t.Context(), "x", "image/png", old))
	var writer sync.WaitGroup
	defer writer.Wait()
	writer.Go(func() {
		for i := range 40 {
			data := old
			if i%2 == 0 {
				data = fresh
			}
			if err := s.Put(t.Context(), "x", "image/png", data); err != nil {
				t.Error(err)
			}
		}
	})
	for range 40 {
		data, _, err := s.Get(t.Context(), "x")
		require.NoError(t, err)
		require.True(t, bytes.Equal(data, old) || bytes.Equal(data, fresh))
	}
}

func TestFilesReportDiskErrors(t *testing.T) {
	t.Parallel()
	s, folder, server := files(t)
	require.NoError(t, s.Put(t.Context(), "a.png", "image/png", picture))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "a.png.attrs"), []byte("torn"), 0o600))
	var logged bytes.Buffer
	handler := s.Handler(slog.New(slog.NewTextHandler(&logged, nil)))
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet,
		signed(t, server, "a.png", driver.SignedURLOptions{Method: http.MethodGet, Expiry: time.Minute}), nil))
	require.Equal(t, http.StatusInternalServerError, w.Code)
	require.Equal(t, "Internal server error\n", w.Body.String())
	require.Contains(t, logged.String(), "key=a.png")
	require.Error(t, s.Put(t.Context(), "a.png/below", "image/png", picture), "a file is no folder")
}

func TestFilesNeedAKeyAndAnAddress(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	unfit := filepath.Join(folder, "file")
	require.NoError(t, os.WriteFile(unfit, nil, 0o600))
	for want, f := range map[string]blob.Files{
		"the key for links to blobs has 31 bytes, not 32":  {Folder: folder, BaseURL: "http://127.0.0.1/blobs/", Key: linkKey[1:]},
		`address of links to blobs: "/blobs/" has no host`: {Folder: folder, BaseURL: "/blobs/", Key: linkKey},
		"address of links to blobs: parse":                 {Folder: folder, BaseURL: "http://%zz/", Key: linkKey},
		"open the blobs' folder: ":                         {Folder: unfit, BaseURL: "http://127.0.0.1/blobs/", Key: linkKey},
	} {
		_, err := blob.Open(t.Context(), "", f)
		require.ErrorContains(t, err, want)
	}
}
