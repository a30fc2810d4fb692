package apptest

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gocloud.dev/blob/driver"
	"gocloud.dev/blob/fileblob"

	"bahi/internal/app"
	"bahi/internal/test/apitest"
)

const Me = "/api/v1/users/me"

// Form returns a body with a file, and its Content-Type.
func Form(t testing.TB, kind string, content []byte, texts ...string) (body []byte, contentType string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for i := 0; i < len(texts); i += 2 {
		require.NoError(t, w.WriteField(texts[i], texts[i+1]))
	}
	part, err := w.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {`form-data; name="file"; filename="asha.png"`}, "Content-Type": {kind},
	})
	require.NoError(t, err)
	_, err = part.Write(content)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes(), w.FormDataContentType()
}

// Painted returns a PNG of one colour.
func Painted(t testing.TB, c color.Color, width, height int) []byte {
	t.Helper()
	img := image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{c})
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, img))
	return b.Bytes()
}

// Upload sets a user's picture.
func Upload(t testing.TB, c *apitest.Client, kind string, content []byte) *apitest.Answer {
	t.Helper()
	body, contentType := Form(t, kind, content)
	return c.With("Content-Type", contentType).POST(Me+"/profile-picture", body)
}

// Path returns the part of a link after the server's address.
func (o *Server) Path(link string) string {
	o.T.Helper()
	path, ours := strings.CutPrefix(link, app.OwnAddress)
	require.True(o.T, ours, link)
	return path
}

// BlobLink signs a link to a picture like the system, with the test's own expiry.
func (o *Server) BlobLink(key string, lasts time.Duration) string {
	o.T.Helper()
	secret, err := o.Sys.Vault.Named(o.T.Context(), "blob-links", app.KeySize)
	require.NoError(o.T, err)
	base, err := url.Parse(app.OwnAddress + app.BlobsPath)
	require.NoError(o.T, err)
	link, err := fileblob.NewURLSignerHMAC(base, secret).URLFromKey(o.T.Context(), key,
		&driver.SignedURLOptions{Method: http.MethodGet, Expiry: lasts})
	require.NoError(o.T, err)
	return o.Path(link.String())
}
