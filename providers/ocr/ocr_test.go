package ocr_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/jpeg"
	"image/png"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/image/tiff"

	"bahi/domain/fault"
	"bahi/domain/ledger/khatapage"
	"bahi/domain/unit"
	"bahi/internal/ocrtools"
	"bahi/internal/test/khatapages"
	"bahi/providers/jail"
	"bahi/providers/ocr"
)

// reader returns a reader with this machine's tools. It installs missing ones.
func reader(t testing.TB, change ...func(*ocr.Tools)) *ocr.Reader {
	t.Helper()
	shelf := &ocrtools.Locator{Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	found, err := shelf.Tools(t.Context())
	require.NoError(t, err)
	tools := ocr.Tools{
		Tesseract: found.Tesseract, Languages: found.Languages, PDFInfo: found.PDFInfo, PDFToText: found.PDFToText, PDFToPPM: found.PDFToPPM,
		Env: found.Env,
	}
	for _, c := range change {
		c(&tools)
	}
	r := ocr.New(func(context.Context) (ocr.Tools, error) { return tools, nil }, 2)
	r.Timeout, r.Processor = 20*time.Minute, 20*time.Minute // however busy the machine is
	return r
}

func pages(t testing.TB, r *ocr.Reader, file []byte) (all []ocr.Page, err error) {
	t.Helper()
	err = r.Read(t.Context(), jail.Owner{}, file, func(p ocr.Page) error { all = append(all, p); return nil })
	return all, err
}

// score compares the words read from a page with those drawn on it.
func score(t testing.TB, r *ocr.Reader, seed uint64, s khatapages.Style) result {
	t.Helper()
	file, rows := khatapages.Page(seed, s)
	read, err := pages(t, r, file)
	require.NoError(t, err)
	require.NotEmpty(t, read)
	today, err := unit.ParseDate("2026-11-23")
	require.NoError(t, err)
	got := khatapage.Read([]khatapage.Page{read[0].Page}, khatapage.Options{Today: today})
	return compare(rows, got.Entries)
}

// Two short pages: `make soak` measures sixty.
func TestPrintedPagesAreRead(t *testing.T) {
	t.Parallel()
	r := reader(t)
	clean := score(t, r, 3, khatapages.Style{Script: khatapages.Devanagari, Sides: 1, Headers: true, Rows: 8, Party: "Imran"})
	require.GreaterOrEqual(t, clean.Recall(), 95, clean)
	require.GreaterOrEqual(t, clean.Precision(), 95, clean)
	noisy := score(t, r, 5, khatapages.Style{Sides: 1, Headers: true, Rows: 10, Skew: -5, Noise: 20, Quality: 60, Shadow: true,
		Party: "Imran"})
	require.GreaterOrEqual(t, noisy.Recall(), 80, noisy)
}

func TestDigitsOfIndiaAreReadByTheirOwnLanguage(t *testing.T) {
	t.Parallel()
	r := reader(t)
	for _, script := range []int{khatapages.Devanagari, khatapages.Gujarati} {
		s := score(t, r, 8, khatapages.Style{Script: script, Digits: true, Sides: 1, Headers: true, Rows: 6})
		require.GreaterOrEqual(t, s.Recall(), 80, "script %d: %v", script, s)
	}
}

// small is a picture of some words.
func small() image.Image {
	file, _ := khatapages.Page(2, khatapages.Style{Sides: 1, Headers: true, Rows: 3})
	page, err := png.Decode(bytes.NewReader(file))
	if err != nil {
		panic(err)
	}
	part := image.NewGray(image.Rect(0, 0, 1654, 600))
	for y := range 600 {
		for x := range 1654 {
			part.Set(x, y, page.At(x, y))
		}
	}
	return part
}

func encoded(t testing.TB, encode func(*bytes.Buffer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, encode(&b))
	return b.Bytes()
}

func TestPicturesOfEveryTypeAreRead(t *testing.T) {
	t.Parallel()
	r, m := reader(t), small()
	for name, file := range map[string][]byte{
		"jpeg": encoded(t, func(b *bytes.Buffer) error { return jpeg.Encode(b, m, nil) }),
		"tiff": encoded(t, func(b *bytes.Buffer) error { return tiff.Encode(b, m, &tiff.Options{Compression: tiff.Deflate}) }),
	} {
		read, err := pages(t, r, file)
		require.NoError(t, err, name)
		require.Len(t, read, 1, name)
		require.Equal(t, []int{1, 1}, []int{read[0].Number, read[0].Of})
		var text strings.Builder
		for _, w := range read[0].Words {
			text.WriteString(w.Text + " ")
		}
		require.Contains(t, text.String(), "2025-26", name)
		require.NotEmpty(t, read[0].Image, name)
	}
}

// scanOf is a PDF that has a picture and no text.
func scanOf(t testing.TB, m image.Image) []byte {
	t.Helper()
	picture := encoded(t, func(b *bytes.Buffer) error { return jpeg.Encode(b, m, &jpeg.Options{Quality: 80}) })
	draw := "q 595 0 0 216 0 600 cm /I Do Q"
	var b bytes.Buffer
	fmt.Fprintf(&b, "%%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"+
		"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 4 0 R/Resources<</XObject<</I 5 0 R>>>>>>endobj\n"+
		"4 0 obj<</Length %d>>stream\n%s\nendstream endobj\n5 0 obj<</Type/XObject/Subtype/Image/Width %d/Height "+
		"%d/ColorSpace/DeviceGray/BitsPerComponent 8/Filter/DCTDecode/Length %d>>stream\n",
		len(draw), draw, m.Bounds().Dx(), m.Bounds().Dy(), len(picture))
	b.Write(picture)
	b.WriteString("\nendstream endobj\ntrailer<</Root 1 0 R>>\n")
	return b.Bytes()
}

func TestPDFWithoutTextIsDrawnAndRecognised(t *testing.T) {
	t.Parallel()
	read, err := pages(t, reader(t), scanOf(t, small()))
	require.NoError(t, err)
	require.Len(t, read, 1)
	require.NotEmpty(t, read[0].Image)
	require.Greater(t, len(read[0].Words), 10)
}

// many is a PDF with so many empty pages.
func many(n int) []byte {
	return fmt.Appendf(nil, "%%PDF-1.1\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[%s]/Count %d>>endobj\n3 0 "+
		"obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>endobj\ntrailer<</Root 1 0 R>>\n",
		strings.Repeat("3 0 R ", n), n)
}

// head is a PNG that begins a picture of some size.
func head(width, height uint32) []byte {
	file := encodedPixel()
	binary.BigEndian.PutUint32(file[16:], width)
	binary.BigEndian.PutUint32(file[20:], height)
	binary.BigEndian.PutUint32(file[29:], crc32.ChecksumIEEE(file[12:29]))
	return file
}

func encodedPixel() []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// looped is a TIFF whose only directory follows itself.
func looped() []byte {
	b := append([]byte("II*\x00"), 8, 0, 0, 0, 0, 0)
	return binary.LittleEndian.AppendUint32(b, 8)
}

func TestHostileFilesAreRefused(t *testing.T) {
	t.Parallel()
	r := reader(t)
	truncated := encoded(t, func(b *bytes.Buffer) error { return jpeg.Encode(b, small(), nil) })
	for name, of := range map[string]struct {
		file []byte
		want error
	}{
		"text":                   {[]byte("hello"), ocr.ErrType},
		"nothing":                {nil, ocr.ErrType},
		"an ELF":                 {[]byte("\x7fELF\x02\x01\x01"), ocr.ErrType},
		"a HEIC":                 {[]byte("\x00\x00\x00\x18ftypheic\x00\x00"), ocr.ErrHEIC},
		"a picture cut off":      {truncated[:len(truncated)/3], ocr.ErrBroken},
		"only a signature":       {[]byte("\xff\xd8\xff"), ocr.ErrBroken},
		"a wide picture":         {head(30_000, 10), ocr.ErrPixels},
		"a picture bomb":         {head(19_000, 19_000), ocr.ErrPixels},
		"a TIFF without end":     {looped(), ocr.ErrBroken},
		"a short TIFF":           {[]byte("MM\x00*"), ocr.ErrBroken},
		"a WebP without picture": {[]byte("RIFF\x04\x00\x00\x00WEBP"), ocr.ErrBroken},
		"a PDF without objects":  {[]byte("%PDF-1.7\nnothing"), ocr.ErrBroken},
		"a PDF of many pages":    {many(11), ocr.ErrPages},
		"a PDF of billions":      {bytes.Replace(many(1), []byte("/Count 1"), []byte("/Count 2000000000"), 1), nil},
		"a PDF in a circle":      {bytes.Replace(many(1), []byte("Kids[3 0 R"), []byte("Kids[2 0 R"), 1), nil},
		"an encrypted PDF": {bytes.Replace(many(1), []byte("/Root 1 0 R"),
			[]byte("/Root 1 0 R/ID[<00><00>]/Encrypt<</Filter/Standard/V 1/R 2/Length 40/P -4"+
				"/O<"+strings.Repeat("ab", 32)+">/U<"+strings.Repeat("cd", 32)+">>>"), 1), nil},
		"a gigantic page": {bytes.Replace(many(1), []byte("[0 0 9 9]"), []byte("[0 0 9000000000 9000000000]"), 1), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := pages(t, r, of.file)
			if of.want != nil {
				require.ErrorIs(t, err, of.want)
			} else if err != nil { // poppler repairs some of these: then there are pages without text
				_, refused := errors.AsType[*fault.Error](err)
				require.True(t, refused, "%v", err)
			}
		})
	}
}

func TestReadingEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	file := encoded(t, func(b *bytes.Buffer) error { return png.Encode(b, small()) })
	ctx, cancel := context.WithCancel(t.Context())
	shelf := &ocrtools.Locator{Log: slog.New(slog.DiscardHandler)}
	found, err := shelf.Tools(ctx)
	require.NoError(t, err)
	r := ocr.New(func(context.Context) (ocr.Tools, error) {
		cancel()
		return ocr.Tools{Tesseract: found.Tesseract, Languages: found.Languages, Env: found.Env}, nil
	}, 1)
	require.ErrorIs(t, r.Read(ctx, jail.Owner{}, file, func(ocr.Page) error { return errors.New("a page was read") }), context.Canceled)
}

func TestWithoutToolsTheReasonIsGiven(t *testing.T) {
	t.Parallel()
	none := reader(t, func(tools *ocr.Tools) { *tools = ocr.Tools{} })
	for _, file := range [][]byte{scanOf(t, small()), encodedPixel()} {
		_, err := pages(t, none, file)
		refused, ok := errors.AsType[*fault.Error](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, fault.Unavailable, refused.Kind)
	}
}
