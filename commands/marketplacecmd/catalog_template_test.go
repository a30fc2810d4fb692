package marketplacecmd_test

import (
	"archive/zip"
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding/unicode"

	"bahi/commands/marketplacecmd"
	"bahi/commands/spreadsheet"
	"bahi/domain/fault"
)

func TestFilesThatAreNoSpreadsheetsAreRefused(t *testing.T) {
	t.Parallel()
	good := sheet(t, []any{"name", "price"}, []any{"a", 1})
	for what, content := range map[string][]byte{
		"a picture": []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"), "an old Excel file": []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1old"),
		"half an XLSX":              good[:len(good)/2],
		"a zip of something else":   packed(t, map[string]string{"a.txt": "name,price"}),
		"a workbook without sheets": packed(t, map[string]string{"xl/workbook.xml": "<workbook/>"}),
		"no XML in it": packed(t,
			map[string]string{"xl/workbook.xml": "nonsense", "[Content_Types].xml": "\x00", "xl/worksheets/sheet1.xml": "nonsense"}),
		"text with NUL": []byte("name,price\na\x00,1"),
	} {
		_, err := read(content)
		require.ErrorIs(t, err, spreadsheet.ErrFormat, what)
	}
	unmarked, err := unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM).NewEncoder().Bytes([]byte("name,price\na,1"))
	require.NoError(t, err)
	for why, content := range map[string][]byte{
		"an .ods file: save it as .xlsx": packed(t, map[string]string{"content.xml": "<office:document-content/>"}),
		"a web page or XML, whatever its name: open it in an office program and save it as .xlsx": []byte(
			"\ufeff\n<html><table><tr><td>name</td><td>price</td></tr></table>"),
		"it is no text, or a text in UTF-16 without a byte order mark: save it as CSV in UTF-8": unmarked,
	} {
		_, err := read(content)
		refused, ok := err.(*fault.Error) //nolint:errorlint // it is that
		require.True(t, ok)
		require.Equal(t, why, refused.Fields[0].Message)
	}
	tooLarge := func(what string, content []byte) {
		_, err := read(content)
		refused, ok := err.(*fault.Error) //nolint:errorlint // it is that
		require.True(t, ok, what)
		require.Equal(t, fault.TooLarge, refused.Kind, what)
	}
	var bomb bytes.Buffer
	w := zip.NewWriter(&bomb)
	_, err = w.CreateRaw(&zip.FileHeader{Name: "xl/workbook.xml", UncompressedSize64: 101 << 20})
	require.NoError(t, err)
	require.NoError(t, w.Close())
	tooLarge("an archive that becomes too large", bomb.Bytes())
	tooLarge("too many rows", []byte("name,price\n"+strings.Repeat("a,1\n", 10_001)))
	f, err := read([]byte("name,price\n" + strings.Repeat("a,1\n", 10_000)))
	require.NoError(t, err)
	require.Len(t, f.Items, 10_000)
	tooLarge("too many blank rows", []byte("name,price\n"+strings.Repeat(",\n", 200_001)))
	require.Equal(t, "2: name: at most 200 characters", said(t, "name,price\n"+strings.Repeat("a", 5<<20)+",1"), "a huge cell")
	_, err = read([]byte(strings.Repeat("a,", 1000)))
	require.ErrorContains(t, err, "The row of names has more than 500 cells")
	tooLarge("a line of 8 MB", []byte("name,price\n"+strings.Repeat("a,", 4<<20)))
	stopped, stop := context.WithCancel(t.Context())
	stop()
	_, err = marketplacecmd.ReadCatalog(stopped, io.NewSectionReader(bytes.NewReader(good), 0, int64(len(good))), false)
	require.ErrorIs(t, err, context.Canceled)
}

func TestTemplatesAreFilesThatAreRead(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	require.NoError(t, spreadsheet.Template(&b, marketplacecmd.Columns))
	for _, content := range []string{b.String(), "\ufeff" + strings.Join(marketplacecmd.Columns, ",")} {
		f, err := read([]byte(content))
		require.NoError(t, err)
		require.Empty(t, f.Items)
		require.Empty(t, f.Errors)
	}
}

func FuzzReadCatalog(f *testing.F) {
	for _, text := range []string{"name,price\na,1", "name;price\n\"a\nb\";1", "\ufeffname\tprice", "PK\x03\x04", "\xff\xfen\x00",
		"name,price\n\"", "\xd0\xcf\x11\xe0"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		found, err := read(content)
		if _, refused := err.(*fault.Error); err != nil && !refused { //nolint:errorlint // what a caller reads
			t.Fatal(err)
		}
		for _, e := range found.Errors {
			require.Greater(t, e.Row, 1)
			require.NotEmpty(t, e.Error)
		}
	})
}
