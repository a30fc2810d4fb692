package console_test

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/app/apptest"
)

func TestUploadIsShownWithItsPictureBesideTheEntries(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	v := o.Sign()
	v.Get("/khatas").Is(200).Says("No page was uploaded yet.")
	file, err := os.ReadFile("../../docs/khata-page.png")
	require.NoError(t, err)
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	part, err := form.CreateFormFile("file", "page.png")
	require.NoError(t, err)
	_, err = part.Write(file)
	require.NoError(t, err)
	require.NoError(t, form.Close())
	var upload struct {
		ID int64 `json:"upload_id"`
	}
	apptest.Lenient(t, o.Clerk(o.Home).With("Content-Type", form.FormDataContentType()).POST("/khata-upload", b.Bytes()).Status(200), &upload)
	v.Get("/khatas").Is(200).Says("1 pages", fmt.Sprint(upload.ID), "done")
	shown := v.Get(fmt.Sprintf("/khatas/%d", upload.ID)).Is(200).Says("image/png", "out", "Imran")
	require.Contains(t, shown.Text, `src="data:image/png;base64,`)
	v.Get("/khatas/999999").Is(404).Says("Khata upload not found")
	v.Get("/khatas/x").Is(404)
}
