package ocrtools_test

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/ocrtools"
)

func TestFoundToolsReadTheThreeScripts(t *testing.T) {
	t.Parallel()
	shelf := &ocrtools.Locator{Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	require.Equal(t, "not looked for yet", shelf.Known())
	found, err := shelf.Tools(t.Context())
	require.NoError(t, err)
	require.Empty(t, found.Missing())
	require.ElementsMatch(t, ocrtools.Languages, found.Languages)
	require.NotEmpty(t, found.Version)
	require.Equal(t, found.String(), shelf.Known())
}

func TestMissingToolsAreNamed(t *testing.T) {
	t.Parallel()
	found := ocrtools.Tools{Tesseract: "/usr/bin/tesseract", Version: "5.3.0", Languages: []string{"eng"}, PDFInfo: "/usr/bin/pdfinfo"}
	require.Equal(t, "pdftoppm, pdftotext, tesseract's data for guj, tesseract's data for hin", found.Missing())
	require.Contains(t, found.String(), "tesseract 5.3.0 (eng); missing: pdftoppm")
	require.Contains(t, found.String(), "apt-get install tesseract-ocr")
	off := &ocrtools.Locator{Off: true}
	_, err := off.Tools(t.Context())
	require.ErrorIs(t, err, ocrtools.ErrOff)
	require.Equal(t, "none: BAHI_OCR=off", off.Known())
}
