package ocr_test

import (
	"context"
	"log/slog"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/ledger/khatapage"
	"bahi/domain/unit"
	"bahi/internal/khatatest"
	"bahi/internal/ocrtools"
	"bahi/providers/ocr"
)

// reader returns a reader with the tools of this machine, which are installed if they are missing.
func reader(t testing.TB) *ocr.Reader {
	t.Helper()
	shelf := &ocrtools.Shelf{Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	found, err := shelf.Tools(t.Context())
	require.NoError(t, err)
	return ocr.New(func(context.Context) (ocr.Tools, error) { return toolsOf(found), nil }, 2)
}

func toolsOf(t ocrtools.Tools) ocr.Tools {
	return ocr.Tools{Tesseract: t.Tesseract, Languages: t.Languages, PDFInfo: t.PDFInfo, PDFToText: t.PDFToText, PDFToPPM: t.PDFToPPM, Env: t.Env}
}

// read returns what is read of a file.
func read(t testing.TB, r *ocr.Reader, file []byte) khatapage.Result {
	t.Helper()
	var pages []khatapage.Page
	require.NoError(t, r.Read(t.Context(), file, func(p ocr.Page) error { pages = append(pages, p.Page); return nil }))
	today, err := unit.ParseDate("2026-11-23")
	require.NoError(t, err)
	return khatapage.Read(pages, khatapage.Options{Today: today, Accounts: []khatapage.Account{{Ledger: "karigar", ID: 4, Name: "Imran"}}})
}

func TestMeasureDebug(t *testing.T) {
	r := reader(t)
	clean, noisy := khatatest.Styles()
	which := clean
	if os.Getenv("NOISY") != "" {
		which = noisy
	}
	var sum khatatest.Score
	for i, s := range which {
		if only := os.Getenv("ONLY"); only != "" && only != string(rune('a'+i)) {
			continue
		}
		file, rows := khatatest.Page(uint64(i+1), s)
		_ = os.WriteFile("/tmp/khata-page-"+string(rune('a'+i))+".img", file, 0o644)
		got := read(t, r, file)
		score := khatatest.Compare(rows, got.Entries)
		sum = sum.Plus(score)
		t.Log(string(rune('a'+i)), s.Script, s.Sides, s.Headers, s.Digits, s.Ditto, s.Skew, score, len(got.Warnings))
		if os.Getenv("VERBOSE") != "" {
			for _, w := range got.Warnings {
				t.Log(w)
			}
			for _, e := range got.Entries {
				t.Logf("%s %v %v %v %v %v %v | %s", e.Side, s2(e.Date), s2(e.Item), s2(e.Weight), s2(e.Touch), s2(e.Fine), s2(e.Amount), e.Raw)
			}
			for _, r := range rows {
				t.Log(r)
			}
		}
	}
	t.Log("SUM", sum)
}

func s2[T any](v *T) any {
	if v == nil {
		return nil
	}
	return *v
}
