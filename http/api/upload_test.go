package api_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/http/api"
	"bahi/internal/test/apitest"
)

const maxOfFile = 1 << 20

// seenFile is the stub's view of its file.
type seenFile struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

func seeFile(f api.File) (seenFile, error) {
	sum := sha256.New()
	_, err := io.Copy(sum, f.Open())
	return seenFile{f.Name, f.Type, f.Size, hex.EncodeToString(sum.Sum(nil))}, err
}

// withUploads adds operations that take files.
func (s *server) withUploads() *server {
	for name, strict := range map[string]bool{"lax": false, "strict": true} {
		api.Handle(s.API, api.Op{
			ID: "file-" + name, Method: "POST", Path: "/files/" + name, Status: 200, MaxBody: maxOfFile, StrictBody: strict,
		}, func(ctx context.Context, in *struct{ File api.File }) (*api.Body[seenFile], error) {
			s.note(ctx)
			return api.Answer(seeFile(in.File))
		})
	}
	return s
}

// part is a part of a form. Without a file name it is a text.
type part struct{ name, file, kind, content string }

func formOf(boundary string, parts ...part) (body, contentType string) {
	var b strings.Builder
	w := multipart.NewWriter(&b)
	if boundary != "" {
		_ = w.SetBoundary(boundary)
	}
	for _, p := range parts {
		h := textproto.MIMEHeader{}
		disposition := fmt.Sprintf(`form-data; name=%q`, p.name)
		if p.file != "" {
			disposition += fmt.Sprintf(`; filename=%q`, p.file)
		}
		h.Set("Content-Disposition", disposition)
		if p.kind != "" {
			h.Set("Content-Type", p.kind)
		}
		to, _ := w.CreatePart(h)
		_, _ = io.WriteString(to, p.content)
	}
	_ = w.Close()
	return b.String(), w.FormDataContentType()
}

func send(c *apitest.Client, path string, parts ...part) *apitest.Answer {
	body, kind := formOf("", parts...)
	return c.With("Content-Type", kind).POST(path, body)
}

func TestAFileArrivesAsItWasSent(t *testing.T) {
	t.Parallel()
	clerk := serve(t).withUploads().as(t, "bahi_clerk")
	for _, content := range []string{"x", "\r\n--", strings.Repeat("\x00\xff\r\n", maxOfFile/4)} {
		sum := sha256.Sum256([]byte(content))
		got := apitest.Read[seenFile](send(clerk, "/files/lax", part{"file", "../खाता.png", "Image/PNG; q=1", content}).Status(200))
		require.Equal(t, seenFile{"खाता.png", "image/png", int64(len(content)), hex.EncodeToString(sum[:])}, got)
	}
	got := apitest.Read[seenFile](send(clerk, "/files/lax", part{"file", "a", "no type", "x"}).Status(200))
	require.Empty(t, got.Type)
}

func TestAFormHasOneFile(t *testing.T) {
	t.Parallel()
	clerk := serve(t).withUploads().as(t, "bahi_clerk")
	file := part{"file", "a.png", "image/png", "x"}
	for message, parts := range map[string][]part{
		"is required":        {},
		"must be given once": {file, file},
		"expected a file":    {{name: "file", content: "a.png"}},
		"must not be empty":  {{name: "file", file: "a.png"}},
		"expected a name of at most 255 characters, without control characters": {{name: "file", file: strings.Repeat("é", 256), content: "x"}},
	} {
		send(clerk, "/files/lax", parts...).Problem(422, "Validation error", "file", message)
	}
	send(clerk, "/files/lax", part{"picture", "a.png", "", "x"}).Problem(422, "Validation error", "file", "is required")
	send(clerk, "/files/lax", part{name: "more", content: "x"}, file, part{"second", "b.png", "", "y"}).Status(200)
	send(clerk, "/files/strict", file).Status(200)
	send(clerk, "/files/strict", file, part{name: "more", content: "x"}).Problem(422, "Validation error", "more", "unknown field")
}

func TestAFileIsBounded(t *testing.T) {
	t.Parallel()
	clerk := serve(t).withUploads().as(t, "bahi_clerk")
	exact := strings.Repeat("x", maxOfFile)
	send(clerk, "/files/lax", part{"file", "a", "", exact}).Status(200)
	body, kind := formOf("", part{"file", "a", "", exact + "x"})
	for _, reader := range []io.Reader{strings.NewReader(body), io.MultiReader(strings.NewReader(body))} { // with and without its length
		a := clerk.With("Content-Type", kind).POST("/files/lax", reader).Problem(413, "The file is too large: at most 1 MB")
		require.True(t, a.Response.Close)
	}
}

func TestOtherPartsOfAFormAreBounded(t *testing.T) {
	t.Parallel()
	clerk := serve(t).withUploads().as(t, "bahi_clerk")
	file := part{"file", "a", "", "x"}
	many := make([]part, 10_000)
	for i := range many {
		many[i] = part{name: "n"}
	}
	for name, parts := range map[string][]part{
		"parts before":  append(slices.Clip(many), file),
		"parts after":   append([]part{file}, many...),
		"a long field":  {{name: "n", content: strings.Repeat("x", 70_000)}, file},
		"a long header": {{"file", "a", strings.Repeat("x", 70_000), "x"}},
		"a long name":   {{name: strings.Repeat("n", 70_000)}, file},
	} {
		require.Equal(t, "The request body is too large", problemIn(t, send(clerk, "/files/lax", parts...).Status(413)), name)
	}
}

func problemIn(t *testing.T, a *apitest.Answer) string {
	t.Helper()
	var p apitest.Problem
	require.NoError(t, json.Unmarshal([]byte(a.Text), &p))
	return p.Detail
}

func TestInvalidFormsAreRefused(t *testing.T) {
	t.Parallel()
	clerk := serve(t).withUploads().as(t, "bahi_clerk")
	body, kind := formOf("cut", part{"file", "a.png", "", "x"})
	for _, other := range []string{"application/json", "image/png", "multipart/mixed; boundary=cut", "application/x-www-form-urlencoded",
		";"} {
		clerk.With("Content-Type", other).POST("/files/lax", body).Problem(415, "The body must be multipart/form-data")
	}
	clerk.With("Content-Type", kind, "Content-Encoding", "gzip").POST("/files/lax", body).Problem(415, "The body must be multipart/form-data")
	for _, end := range []string{"", "\r\n", "\r\nbehind it"} {
		clerk.With("Content-Type", kind).POST("/files/lax", strings.TrimSuffix(body, "\r\n")+end).Status(200)
	}
	for contentType, bodies := range map[string][]string{
		"multipart/form-data":                {body},
		"multipart/form-data; boundary=":     {body},
		"multipart/form-data; boundary=else": {body},
		kind: {
			"", "--cut", "--cut\r\n", "nothing", strings.TrimSuffix(body, "--\r\n"), strings.TrimSuffix(body, "--\r\n") + "\r\n",
			strings.TrimSuffix(body, "\r\n--cut--\r\n"),
			"--cut\r\nContent-Disposition\r\n\r\nx\r\n--cut--\r\n",
			"--cut\r\nContent-Disposition: attachment; name=\"file\"; filename=\"a\"\r\n\r\nx\r\n--cut--\r\n",
			"--cut\r\n\r\nx\r\n--cut--\r\n",
		},
	} {
		for _, text := range bodies {
			clerk.With("Content-Type", contentType).POST("/files/lax", text).Problem(400, "The form cannot be read, or breaks off")
		}
	}
}

func TestWrongContentLengthOfAFormIsFound(t *testing.T) {
	t.Parallel()
	s := serve(t).withUploads()
	body, kind := formOf("cut", part{"file", "a.png", "", strings.Repeat("x", 1000)})
	head := "POST /files/lax HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer bahi_clerk\r\nContent-Type: " + kind + "\r\n"
	length := func(n int) string { return fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, n, body) }
	require.Equal(t, "HTTP/1.1 200 OK", s.raw(t, length(len(body))))
	require.Equal(t, "HTTP/1.1 400 Bad Request", s.raw(t, length(len(body)-20)), "too small")
	require.Equal(t, "HTTP/1.1 400 Bad Request", s.raw(t, length(100)), "far too small")
	require.Equal(t, "HTTP/1.1 413 Request Entity Too Large", s.raw(t, length(1<<40)), "too large to be true")
	short := head + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body[:len(body)-50])
	require.Equal(t, "HTTP/1.1 400 Bad Request", s.raw(t, short), "the connection ends")
	require.Equal(t, "HTTP/1.1 400 Bad Request", s.raw(t, head+"Transfer-Encoding: chunked\r\n\r\n5\r\n--c"))
}

func TestAnUploadMayTakeLongerThanOtherBodies(t *testing.T) {
	t.Parallel()
	s := serve(t).withUploads()
	short := httptest.NewUnstartedServer(s.API)
	short.Config.ReadTimeout, short.Config.WriteTimeout = 2*time.Second, 2*time.Second
	short.Start()
	t.Cleanup(short.Close)
	clerk := apitest.New(t, short.URL, "bahi_clerk")
	body, kind := formOf("", part{"file", "a", "", strings.Repeat("x", 1000)})
	reader, pen := io.Pipe()
	go func() {
		_, _ = io.WriteString(pen, body[:500])
		<-time.After(3 * time.Second) // longer than the server's own deadlines, which the test is about
		_, _ = io.WriteString(pen, body[500:])
		_ = pen.Close()
	}()
	clerk.With("Content-Type", kind).POST("/files/lax", reader).Status(200)
	clerk.GET("/me").Status(200)
}

func TestStalledUploadIsCutOff(t *testing.T) {
	t.Parallel()
	s := serve(t, func(c *api.Config) { c.Uploads = api.Pace{Grace: 50 * time.Millisecond} }).withUploads()
	body, kind := formOf("", part{"file", "a", "", strings.Repeat("x", 1000)})
	reader, pen := io.Pipe()
	defer pen.Close()
	go func() { _, _ = io.WriteString(pen, body[:500]) }()
	s.as(t, "bahi_clerk").With("Content-Type", kind).POST("/files/lax", reader).
		Problem(408, "The request took too long to arrive")
}

func TestUploadsLeaveNoFiles(t *testing.T) {
	t.Parallel()
	spool := t.TempDir()
	var during []os.DirEntry
	s := serve(t, func(c *api.Config) { c.Spool = spool }).withUploads()
	api.Handle(s.API, api.Op{ID: "panics", Method: "PUT", Path: "/files/panics"},
		func(_ context.Context, in *struct{ File api.File }) (*api.Nothing, error) {
			during, _ = os.ReadDir(spool)
			panic(in.File.Name)
		})
	body, kind := formOf("", part{"file", "a", "", "x"})
	s.as(t, "bahi_clerk").With("Content-Type", kind).PUT("/files/panics", body).Problem(500, "Internal error")
	require.Empty(t, during)

	require.NoError(t, os.Remove(spool))
	s.as(t, "bahi_clerk").With("Content-Type", kind).PUT("/files/panics", body).Problem(500, "Internal error")
	require.Contains(t, s.logs.String(), "keep an upload")
}

func TestBoundaryDoesNotChangeAFormsFingerprint(t *testing.T) {
	t.Parallel()
	s := serve(t).withUploads()
	clerk := s.as(t, "bahi_clerk").With("Idempotency-Key", "k1")
	file, note := part{"file", "a.png", "image/png", strings.Repeat("x", 100_000)}, part{name: "note", content: "n"}
	printOf := func(boundary string, parts ...part) string {
		t.Helper()
		body, kind := formOf(boundary, parts...)
		clerk.With("Content-Type", kind).POST("/files/lax", io.MultiReader(strings.NewReader(body))).Status(200)
		return string(s.last().Fingerprint)
	}
	first := printOf("one", file, note)
	require.Equal(t, first, printOf("another-one", file, note))
	for name, parts := range map[string][]part{
		"content":       {{"file", "a.png", "image/png", strings.Repeat("x", 99_999) + "y"}, note},
		"name":          {{"file", "b.png", "image/png", file.content}, note},
		"type":          {{"file", "a.png", "image/jpeg", file.content}, note},
		"another field": {file, {name: "note", content: "m"}},
		"field's name":  {file, {name: "remark", content: "n"}},
		"no field":      {file},
	} {
		require.NotEqual(t, first, printOf("one", parts...), name)
	}
}

// FuzzForm tries bodies of forms. Invalid ones are refused, and accepted ones have a file.
func FuzzForm(f *testing.F) {
	whole, kind := formOf("cut", part{"file", "a.png", "image/png", "x"}, part{name: "more", content: "y"})
	for _, seed := range []string{whole, whole[:len(whole)/2], "--cut--", "", "\r\n--cut\r\nContent-Disposition: form-data; name=\"file\"; " +
		"filename*=UTF-8''%ff\r\n\r\n\r\n--cut--"} {
		f.Add(kind, []byte(seed))
	}
	f.Add(`multipart/form-data; boundary="`+strings.Repeat("b", 200)+`"`, []byte(whole))
	s := quiet()
	s.withUploads()
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		header := http.Header{"Authorization": {"Bearer bahi_clerk"}, "Content-Type": {contentType}}
		w := s.do("POST", "/files/lax", header, string(body))
		require.Less(t, w.Code, 500, w.Body.String())
		require.True(t, json.Valid(w.Body.Bytes()))
		if w.Code == http.StatusOK {
			var got seenFile
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
			require.NotEmpty(t, got.Name)
			require.Positive(t, got.Size)
		}
	})
}
