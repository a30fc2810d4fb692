package pdftext_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/jung-kurt/gofpdf"
	"github.com/stretchr/testify/require"

	"bahi/internal/ocrtools"
	"bahi/providers/pdftext"
)

func reader(t *testing.T) *pdftext.Reader {
	t.Helper()
	tools, err := ocrtools.Find(t.Context(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return &pdftext.Reader{Tool: func(context.Context) (pdftext.Tool, error) {
		return pdftext.Tool{Path: tools.PDFToText, Env: tools.Env}, nil
	}}
}

// whole returns all pages of a PDF.
func whole(t *testing.T, r *pdftext.Reader, file []byte) (text string, err error) {
	t.Helper()
	for page, err := range r.Pages(t.Context(), file) {
		if err != nil {
			return text, err
		}
		text += page + "\f"
	}
	return text, nil
}

// pages returns a PDF with a number on each page.
func pages(t *testing.T, count int) []byte {
	t.Helper()
	pdf := gofpdf.New("P", "mm", "A4", "")
	pdf.SetFont("Helvetica", "", 12)
	for i := range count {
		pdf.AddPage()
		pdf.Cell(0, 10, fmt.Sprintf("Page %d.", i+1))
	}
	var file bytes.Buffer
	require.NoError(t, pdf.Output(&file))
	return file.Bytes()
}

func TestPagesComeInTheirOrder(t *testing.T) {
	t.Parallel()
	r, n := reader(t), 0
	for page, err := range r.Pages(t.Context(), pages(t, 300)) {
		require.NoError(t, err)
		n++
		require.Equal(t, fmt.Sprintf("Page %d.", n), strings.TrimSpace(page))
	}
	require.Equal(t, 300, n)
	for range r.Pages(t.Context(), pages(t, 300)) {
		break // the program is not waited for
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range r.Pages(ctx, pages(t, 1)) {
		require.ErrorIs(t, err, context.Canceled)
	}
}

func TestTheTextOfAPDFIsRead(t *testing.T) {
	t.Parallel()
	r := reader(t)
	file, err := os.ReadFile("testdata/hours.pdf")
	require.NoError(t, err)
	text, err := whole(t, r, file)
	require.NoError(t, err)
	require.Contains(t, text, "On Sunday we are open from 11 to 4.")
	for _, broken := range [][]byte{[]byte("%PDF-1.4\nnot one"), file[:len(file)/3]} {
		text, err := whole(t, r, broken)
		if err == nil {
			require.Empty(t, text)
			continue
		}
		var told *pdftext.Failure
		require.ErrorAs(t, err, &told)
		require.False(t, told.Temporary())
	}
}

func TestAnEncryptedPDFIsTold(t *testing.T) {
	t.Parallel()
	pdf := gofpdf.New("P", "mm", "A4", "")
	pdf.SetProtection(0, "for its readers", "for its owner")
	pdf.AddPage()
	pdf.SetFont("Helvetica", "", 12)
	pdf.Cell(0, 10, "secret")
	var file bytes.Buffer
	require.NoError(t, pdf.Output(&file))
	_, err := whole(t, reader(t), file.Bytes())
	require.ErrorIs(t, err, pdftext.ErrEncrypted)
}

func TestAMissingProgramIsTold(t *testing.T) {
	t.Parallel()
	r := &pdftext.Reader{Tool: func(context.Context) (pdftext.Tool, error) { return pdftext.Tool{}, errors.New("nothing found") }}
	_, err := whole(t, r, []byte("%PDF-1.4"))
	require.ErrorIs(t, err, pdftext.ErrNoTool)
}
