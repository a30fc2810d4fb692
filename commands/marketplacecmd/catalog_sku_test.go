package marketplacecmd_test

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/commands/marketplacecmd"
	"bahi/commands/spreadsheet"
	"bahi/domain/marketplace/product"
	"bahi/domain/patch"
)

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
	require.Equal(t, "a 100\nb 100\nc 100\nd 100\n4: Item code: rows 2 and 4 have the same\n8: Item code: at most 64 characters",
		said(t, "name,price,Item code\na,1,X-1\nb,1,X-2\nx,1,x-1 \nc,1,\nd,1,\n\ne,1,"+strings.Repeat("a", 65)+"\n"))
	require.Equal(t, "b 100\n2: price: expected an amount, as in 1,250.50", said(t, "name,price,sku\na,x,X-1\nb,1,X-1\n"),
		"the first one is not read")
}

// Values that a list of SKUs lacks stay unchanged.
func TestAListOfSKUsNeedsNeitherNamesNorPrices(t *testing.T) {
	t.Parallel()
	f, err := read([]byte("Price list 2026,,\nItem Code,MRP,MOQ\nX-1,5,\nX-2,-,3\nX-3,,3\n,7,\n"))
	require.NoError(t, err)
	require.Equal(t, []spreadsheet.RowError{{Row: 4, Error: "MRP: expected an amount, as in 1,250.50", Source: []string{"X-2", "-", "3"}}, {
		Row: 6, Error: "name: must not be empty", Source: []string{"", "7", ""},
	}}, f.Errors)
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
