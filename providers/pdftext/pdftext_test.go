package pdftext_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
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

func TestTheTextOfAPDFIsRead(t *testing.T) {
	t.Parallel()
	r := reader(t)
	file, err := os.ReadFile("testdata/hours.pdf")
	require.NoError(t, err)
	text, err := r.Text(t.Context(), file)
	require.NoError(t, err)
	require.Contains(t, text, "On Sunday we are open from 11 to 4.")
	for _, broken := range [][]byte{[]byte("%PDF-1.4\nnot one"), file[:len(file)/3]} {
		text, err := r.Text(t.Context(), broken)
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
	_, err := reader(t).Text(t.Context(), file.Bytes())
	require.ErrorIs(t, err, pdftext.ErrEncrypted)
}

func TestAMissingProgramIsTold(t *testing.T) {
	t.Parallel()
	r := &pdftext.Reader{Tool: func(context.Context) (pdftext.Tool, error) { return pdftext.Tool{}, errors.New("nothing found") }}
	_, err := r.Text(t.Context(), []byte("%PDF-1.4"))
	require.ErrorIs(t, err, pdftext.ErrNoTool)
}
