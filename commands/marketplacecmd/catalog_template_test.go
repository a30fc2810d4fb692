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
	"bahi/domain/marketplace/product"
	"bahi/domain/patch"
)

func TestFilesThatAreNoSpreadsheetsAreRefused(t *testing.T) {
	t.Parallel()
	good := sheet(t, []any{"name", "price"}, []any{"a", 1})
	for what, content := range map[string][]byte{
		"a picture":                 []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"),
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
		"a PDF: save the table as .xlsx or CSV in the program that has made it": []byte("%PDF-1.7\nname,price\n"),
		"an .xls file, or one with a password: save it as .xlsx":                []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1old"),
		"an .ods file: save it as .xlsx": packed(t,
			map[string]string{"content.xml": "<a/>", "mimetype": "application/vnd.oasis.opendocument.spreadsheet"}),
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
	require.Equal(t, `2: name: at most 200 characters ("`+strings.Repeat("a", 60)+`…")`,
		said(t, "name,price\n"+strings.Repeat("a", 5<<20)+",1"), "a huge cell")
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

func TestAColumnOfCodesIsTheSKU(t *testing.T) {
	t.Parallel()
	for header, used := range map[string]string{
		"SKU": "SKU", "sku code": "sku code", "Item Code": "Item Code", "PRODUCT CODE": "PRODUCT CODE",
		"Style No.": "Style No.", "Design No": "Design No", "Article Number": "Article Number",
		"Model #": "", "कोड": "कोड", "કોડ": "કોડ", "Code": "Code",
		"Style": "", "HSN Code": "", "Sr No": "", "Style No;Item code": "Item code", "Item code;sku": "sku",
		"Item Code;Product Code": "Item Code", "Design No;SKU;Item No": "SKU", "Barcode": "",
	} {
		f, err := read([]byte("name;price;" + header + "\na;1" + strings.Repeat(";X1", 1+strings.Count(header, ";"))))
		require.NoError(t, err, header)
		found := ""
		for _, c := range f.Columns.Used {
			if c.Field == "sku" {
				found = c.Header
			}
		}
		require.Equal(t, used, found, header)
		require.Empty(t, f.Errors, header)
		require.Equal(t, used != "", f.Items[0].SKU.Value == "X1", header)
	}
	const content = "name;price;Our SKU;HSN code\na;1;X1;7113"
	f, err := marketplacecmd.ReadCatalog(t.Context(), io.NewSectionReader(strings.NewReader(content), 0, int64(len(content))), true)
	require.NoError(t, err)
	require.Equal(t, []spreadsheet.Column{{Header: "Our SKU", Field: "sku"}}, f.Columns.Guessed)
	require.Equal(t, []string{"HSN code"}, f.Columns.Ignored)
	require.Equal(t, "X1", f.Items[0].SKU.Value)
}

func TestRowsWithOneSKUAreTold(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a 100\nb 100\nc 100\nd 100\n4: Item code: rows 2 and 4 have the same\n8: Item code: at most 64 characters "+
		"(\""+strings.Repeat("a", 60)+"…\")",
		said(t, "name,price,Item code\na,1,X-1\nb,1,X-2\nx,1,x-1 \nc,1,\nd,1,\n\ne,1,"+strings.Repeat("a", 65)+"\n"))
	require.Equal(t, "b 100\n2: price: expected an amount, as in 1,250.50 (\"x\")", said(t, "name,price,sku\na,x,X-1\nb,1,X-1\n"),
		"the first one is not read")
}

// Values that a list of SKUs lacks stay unchanged.
func TestAListOfSKUsNeedsNeitherNamesNorPrices(t *testing.T) {
	t.Parallel()
	f, err := read([]byte("Price list 2026,,\nItem Code,MRP,MOQ\nX-1,5,\nX-2,-,3\nX-3,,3\n,7,\n"))
	require.NoError(t, err)
	require.Equal(t, []spreadsheet.RowError{
		{Row: 4, Error: `MRP: expected an amount, as in 1,250.50 ("-")`, Source: []string{"X-2", "-", "3"}},
		{Row: 6, Error: "name: must not be empty", Source: []string{"", "7", ""}},
	}, f.Errors)
	require.Len(t, f.Items, 2)
	require.Equal(t, &product.Edit{Price: patch.Set[int64](500)}, f.Items[0].Given)
	require.Equal(t, &product.Edit{Details: product.Details{MOQ: patch.Set[int64](3)}}, f.Items[1].Given)
	require.Equal(t, "no product has this SKU, and for a new one: name: must not be empty; MRP: is required", f.Items[1].New.Error)
	for text, why := range map[string]string{
		"sku\nX-1":                        "The first row must name the columns name, and price or price_amount",
		"sku,Naam of item,price\nX-1,a,1": `row 1 has unknown columns: "Naam of item"`,
	} {
		_, err := read([]byte(text))
		require.ErrorContains(t, err, why)
	}
}
