package blob_test

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	signer "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/stretchr/testify/require"

	"bahi/internal/test/worktest"
	"bahi/providers/blob"
)

const (
	accessKey = "test-access-key"
	secretKey = "test-secret-key"
	region    = "ap-south-1"
)

// objects starts an S3 server with an empty bucket. The server checks no signatures. So a handler in front refuses a request without an
// Authorization header, unless its URL is presigned and valid at the time now.
func objects(t *testing.T, now func() time.Time) (blobURL string) {
	t.Helper()
	backend := s3mem.New()
	require.NoError(t, backend.CreateBucket("bahi"))
	s3 := gofakes3.New(backend).Server()
	server := worktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" && !presigned(r, now()) {
			http.Error(w, "AccessDenied", http.StatusForbidden)
			return
		}
		if r.Method == http.MethodPut && r.Header.Get("Cache-Control") != "private" { // which this server does not keep
			http.Error(w, "InvalidArgument", http.StatusBadRequest)
			return
		}
		s3.ServeHTTP(w, r)
	}))
	return "s3://bahi?region=" + region + "&use_path_style=true&endpoint=" + url.QueryEscape(server.URL)
}

// presigned signs the request again and compares (Signature Version 4, query parameters).
func presigned(r *http.Request, now time.Time) bool {
	query := r.URL.Query()
	at, err := time.Parse("20060102T150405Z", query.Get("X-Amz-Date"))
	if err != nil {
		return false
	}
	seconds, err := strconv.Atoi(query.Get("X-Amz-Expires"))
	if err != nil || now.After(at.Add(time.Duration(seconds)*time.Second)) {
		return false
	}
	want := query.Get("X-Amz-Signature")
	for _, own := range []string{"X-Amz-Signature", "X-Amz-Date", "X-Amz-Credential", "X-Amz-Algorithm", "X-Amz-SignedHeaders"} {
		query.Del(own)
	}
	again, err := http.NewRequestWithContext(r.Context(), r.Method, "http://"+r.Host+r.URL.EscapedPath()+"?"+query.Encode(), nil)
	if err != nil {
		return false
	}
	credentials := aws.Credentials{AccessKeyID: accessKey, SecretAccessKey: secretKey}
	text, _, err := signer.NewSigner(func(o *signer.SignerOptions) { o.DisableURIPathEscaping = true }).
		PresignHTTP(r.Context(), credentials, again, "UNSIGNED-PAYLOAD", "s3", region, at)
	if err != nil {
		return false
	}
	u, err := url.Parse(text)
	return err == nil && want != "" && u.Query().Get("X-Amz-Signature") == want &&
		u.Query().Get("X-Amz-Credential") == r.URL.Query().Get("X-Amz-Credential") &&
		r.URL.Query().Get("X-Amz-Algorithm") == "AWS4-HMAC-SHA256" && r.URL.Query().Get("X-Amz-SignedHeaders") == "host"
}

func TestS3KeepsBlobs(t *testing.T) {
	t.Parallel()
	s, err := blob.Open(t.Context(), objects(t, time.Now), blob.Files{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	keeps(t, s)
}

func TestS3KeepsBlobsBelowAPrefix(t *testing.T) {
	t.Parallel()
	address := objects(t, time.Now)
	s, err := blob.Open(t.Context(), address+"&prefix=one/", blob.Files{})
	require.NoError(t, err)
	require.NoError(t, s.Put(t.Context(), "a.png", "image/png", picture))
	answer, _ := get(t, link(t, s, "a.png"))
	require.Equal(t, http.StatusOK, answer.StatusCode)
	keys, err := s.List(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, []string{"a.png"}, keys)
	other, err := blob.Open(t.Context(), address+"&prefix=two/", blob.Files{})
	require.NoError(t, err)
	keys, err = other.List(t.Context(), "")
	require.NoError(t, err)
	require.Empty(t, keys)
}

func TestS3LinksExpire(t *testing.T) {
	t.Parallel()
	later := time.Duration(0)
	s, err := blob.Open(t.Context(), objects(t, func() time.Time { return time.Now().Add(later) }), blob.Files{})
	require.NoError(t, err)
	require.NoError(t, s.Put(t.Context(), "a.png", "image/png", picture))
	address := link(t, s, "a.png") // for a minute
	answer, _ := get(t, address)
	require.Equal(t, http.StatusOK, answer.StatusCode)
	later = 2 * time.Minute
	answer, _ = get(t, address)
	require.Equal(t, http.StatusForbidden, answer.StatusCode)
}

func TestS3HasNoHandlerOfOurs(t *testing.T) {
	t.Parallel()
	s, err := blob.Open(t.Context(), "s3://bahi?region=ap-south-1", blob.Files{})
	require.NoError(t, err)
	w := httptest.NewRecorder()
	s.Handler(slog.New(slog.DiscardHandler)).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/blobs/?obj=a.png", nil))
	require.Equal(t, http.StatusNotFound, w.Code)
}

func TestS3SaysWhetherAnotherTryHelps(t *testing.T) {
	t.Parallel()
	for status, away := range map[int]bool{ // the SDK retries none of these, which would take seconds
		http.StatusInsufficientStorage: true, http.StatusTooManyRequests: true, http.StatusForbidden: false,
	} {
		server := worktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		s, err := blob.Open(t.Context(), "s3://bahi?region="+region+"&use_path_style=true&endpoint="+url.QueryEscape(server.URL), blob.Files{})
		require.NoError(t, err)
		_, _, got := s.Get(t.Context(), "a.png")
		_, listed := s.List(t.Context(), "")
		for _, err := range []error{s.Put(t.Context(), "a.png", "image/png", picture), got, s.Delete(t.Context(), "a.png"), listed} {
			require.Error(t, err)
			require.Equal(t, away, errors.Is(err, blob.ErrUnavailable), "%d: %v", status, err)
		}
	}
}

func TestInvalidBlobURLIsRefused(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"s3://bahi%zz":                    "BLOB_URL is invalid; expected s3://bucket?region=…",
		"gs://bahi":                       `BLOB_URL: scheme "gs" is none of: s3; leave it empty for files`,
		"file:///etc":                     `BLOB_URL: scheme "file" is none of: s3; leave it empty for files`,
		"s3://id:s3cret@bahi?region=any":  "BLOB_URL has credentials; put these into the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)",
		"s3://bahi?region=any&speed=high": "unknown query parameter",
		"s3://?region=any":                "bucketName is required",
	} {
		_, err := blob.Open(t.Context(), address, blob.Files{})
		require.ErrorContains(t, err, want, address)
		require.NotContains(t, err.Error(), "s3cret")
	}
}
