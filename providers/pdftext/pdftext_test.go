package pdftext_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jung-kurt/gofpdf"
	"github.com/stretchr/testify/require"

	"bahi/domain/messaging/botsource"
	"bahi/internal/ocrtools"
	"bahi/internal/test/worktest"
	"bahi/providers/jail"
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
	err = r.Read(t.Context(), uuid.Nil, file, func(page [][]botsource.Cell) error {
		for _, line := range page {
			for i, c := range line {
				if i > 0 {
					text += " | "
				}
				text += c.Text
			}
			text += "\n"
		}
		return nil
	})
	return text, err
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
	require.NoError(t, r.Read(t.Context(), uuid.Nil, pages(t, 300), func(page [][]botsource.Cell) error {
		n++
		require.Len(t, page, 1)
		require.Equal(t, fmt.Sprintf("Page %d.", n), page[0][0].Text)
		return nil
	}))
	require.Equal(t, 300, n)
	enough := errors.New("enough")
	require.ErrorIs(t, r.Read(t.Context(), uuid.Nil, pages(t, 300), func([][]botsource.Cell) error { return enough }), enough)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, r.Read(ctx, uuid.Nil, pages(t, 1), ignore), context.Canceled)
}

func ignore([][]botsource.Cell) error { return nil }

// text is a text on a page, in millimetres. A line break begins a new line below.
type text struct {
	x, y float64
	text string
}

// drawn returns a PDF with texts.
func drawn(t *testing.T, texts ...text) []byte {
	t.Helper()
	pdf := gofpdf.New("P", "mm", "A4", "")
	pdf.SetFont("Helvetica", "", 10)
	pdf.AddPage()
	for _, part := range texts {
		for i, line := range strings.Split(part.text, "\n") {
			pdf.Text(part.x, part.y+4.5*float64(i), line)
		}
	}
	var file bytes.Buffer
	require.NoError(t, pdf.Output(&file))
	return file.Bytes()
}

func TestTheCellsOfATableStayInTheirRows(t *testing.T) {
	t.Parallel()
	r := reader(t)
	head := []text{{20, 20, "Service"}, {50, 20, "What we do"}, {120, 20, "Price"}}
	for name, c := range map[string]struct {
		texts []text
		want  string
	}{
		"cells in the middle of their rows": {append(head, text{20, 34.5, "Polishing"},
			text{50, 30, "We clean and polish by\nhand and machine until\nit shines"}, text{120, 34.5, "Rs 50"},
			text{20, 52, "Repair"}, text{50, 52, "Hooks"}, text{120, 52, "Rs 180"}), "Service | What we do | Price\n\n" +
			"Polishing | We clean and polish by hand and machine until it shines | Rs 50\n\nRepair | Hooks | Rs 180\n"},
		"cells at the top of their rows": {append(head, text{20, 30, "Repair"}, text{50, 30, "Chains and hooks\nare soldered"},
			text{120, 30, "Rs 180"}), "Service | What we do | Price\n\nRepair | Chains and hooks are soldered | Rs 180\n"},
		"rows without gaps": {[]text{{20, 20, "Item\nPayal\nKada\nNath\nRing"}, {60, 20, "Charge\n120\n300\n95\n80"}},
			"Item | Charge\nPayal | 120\nKada | 300\nNath | 95\nRing | 80\n"},
		"an empty cell": {[]text{{20, 20, "Item"}, {50, 20, "Min"}, {80, 20, "Max"}, {20, 27, "Kada"}, {80, 27, "20"}},
			"Item | Min | Max\n\nKada | 20\n"},
		"a cell beside two rows": {[]text{{20, 33, "Mumbai"}, {50, 31, "Weekdays"}, {90, 31, "80"}, {50, 35, "Sunday"}, {90, 35, "140"}},
			"Mumbai | Weekdays | 80\nMumbai | Sunday | 140\n"},
		"a text in two columns": {[]text{
			{20, 20, "We have been a family workshop in Rajkot\nsince 1952. We make silver anklets for\nshops in all of India."},
			{110, 20, "Call us between ten and six. The address\nis 14 Soni Bazaar, Rajkot. Returns are\npossible within seven days."}},
			"We have been a family workshop in Rajkot\nsince 1952. We make silver anklets for\nshops in all of India.\n\n" +
				"Call us between ten and six. The address\nis 14 Soni Bazaar, Rajkot. Returns are\npossible within seven days.\n"},
		"things beside each other": {[]text{{20, 20, "Payal\nCode P10\nRs 1,250"}, {80, 20, "Kada\nCode K20\nRs 2,800"}},
			"Payal; Code P10; Rs 1,250\nKada; Code K20; Rs 2,800\n"},
	} {
		got, err := whole(t, r, drawn(t, c.texts...))
		require.NoError(t, err, name)
		require.Equal(t, c.want, got, name)
	}
}

func TestTheTextOfAPDFIsRead(t *testing.T) {
	t.Parallel()
	r := reader(t)
	file := worktest.File(t, "testdata/hours.pdf")
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

// bomb is a small PDF whose page draws a form that draws another ten times, and so on. Reading it would take hours.
func bomb() []byte {
	const depth = 12
	var b bytes.Buffer
	b.WriteString("%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n" +
		"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 4 0 R/Resources<</XObject<</F 5 0 R>>>>>>endobj\n" +
		"4 0 obj<</Length 4>>stream\n/F Do\nendstream endobj\n")
	for i := range depth {
		draw := strings.Repeat("/F Do ", 10)
		if i == depth-1 {
			draw = "0 0 m 9 9 l S"
		}
		fmt.Fprintf(&b, "%d 0 obj<</Type/XObject/Subtype/Form/BBox[0 0 595 842]/Resources<</XObject<</F %d 0 R>>>>/Length "+
			"%d>>stream\n%s\nendstream endobj\n", 5+i, 6+i, len(draw), draw)
	}
	b.WriteString("trailer<</Root 1 0 R>>\n")
	return b.Bytes()
}

func TestABombEndsAndOthersAreReadMeanwhile(t *testing.T) {
	t.Parallel()
	require.Less(t, len(bomb()), 4000)
	r := reader(t)
	r.Processor = 2 * time.Second
	hostile, other := uuid.New(), uuid.New()
	ended := make(chan error, 1)
	read := func(file []byte) error { return r.Read(t.Context(), hostile, file, ignore) }
	go func() {
		err := read(bomb())
		for errors.Is(err, jail.ErrBusy) {
			err = read(bomb())
		}
		ended <- err
	}()
	require.Eventually(t, func() bool { return errors.Is(read(pages(t, 1)), jail.ErrBusy) }, time.Minute, time.Millisecond,
		"a workspace has one file at a time")
	require.NoError(t, r.Read(t.Context(), other, pages(t, 1), ignore))
	require.Empty(t, ended, "the other workspace did not wait for the bomb")
	require.ErrorIs(t, <-ended, pdftext.ErrLarge)
}
