package marketplacecmd_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/xuri/excelize/v2"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"bahi/commands/marketplacecmd"
	"bahi/commands/spreadsheet"
	"bahi/domain/fault"
)

func read(content []byte) (marketplacecmd.CatalogFile, error) {
	return marketplacecmd.ReadCatalog(context.Background(), io.NewSectionReader(bytes.NewReader(content), 0, int64(len(content))), false)
}

// said returns the content of a file: names with prices, and rows with faults.
func said(t *testing.T, content string) string {
	t.Helper()
	f, err := read([]byte(content))
	require.NoError(t, err, content)
	var all []string
	for _, i := range f.Items {
		all = append(all, fmt.Sprintf("%s %d", i.Name, i.Price))
	}
	for _, e := range f.Errors {
		all = append(all, fmt.Sprintf("%d: %s", e.Row, e.Error))
	}
	return strings.Join(all, "\n")
}

// workbook returns a workbook whose only sheet has these rows, from the first one on.
func workbook(t *testing.T, rows [][]any) *excelize.File {
	t.Helper()
	book := excelize.NewFile()
	t.Cleanup(func() { book.Close() })
	for i, row := range rows {
		require.NoError(t, book.SetSheetRow("Sheet1", fmt.Sprintf("A%d", i+1), &row))
	}
	return book
}

// sheet returns the file of a workbook with these rows.
func sheet(t *testing.T, rows ...[]any) []byte {
	t.Helper()
	return written(t, workbook(t, rows))
}

// written returns the file of a workbook.
func written(t *testing.T, book *excelize.File) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, book.Write(&b))
	return b.Bytes()
}

func TestTextFilesAreReadInTheEncodingsThatTheyComeIn(t *testing.T) {
	t.Parallel()
	const want = "Crème 1250\nહાર 300"
	text := "name;price\nCrème;12,50\nહાર;3\n"
	text = strings.Replace(text, "12,50", "12.50", 1)
	little, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(text)
	require.NoError(t, err)
	big, err := unicode.UTF16(unicode.BigEndian, unicode.UseBOM).NewEncoder().String(text)
	require.NoError(t, err)
	for name, content := range map[string]string{
		"UTF-8": text, "with a mark": "\ufeff" + text, "UTF-16": little, "UTF-16 of big computers": big,
		"tabs":   strings.ReplaceAll(text, ";", "\t"),
		"commas": strings.ReplaceAll(text, ";", ","), "CR LF": strings.ReplaceAll(text, "\n", "\r\n"),
		"CR": strings.ReplaceAll(text, "\n", "\r"), "no last line break": strings.TrimSpace(text), "the separator named": "sep=;\n" + text,
		"with a mark too": "\ufeffsep=;\r\n" + text,
	} {
		require.Equal(t, want, said(t, content), name)
	}
	old, err := charmap.Windows1252.NewEncoder().String("name,price\nCrème “brûlée” €,5")
	require.NoError(t, err)
	require.Equal(t, "Crème “brûlée” € 500", said(t, old))
	require.Equal(t, "હાર 100\n3: it has bytes that are not UTF-8", said(t, "name,price\nહાર,1\n\xff,1"))
}

func TestRowsHaveTheNumbersThatTheSpreadsheetShows(t *testing.T) {
	t.Parallel()
	require.Equal(t, "two\nlines 100\na 300\n4: price: is required\n9: name: must not be empty\n10: it has more cells than the row of names",
		said(t, "\nname,price\n\"two\nlines\",1\nx,\n\n,\n\na,3\n,4\nb,5,c\n"))
	require.Equal(t, "a 100\n3: a quote is not closed, or is inside a cell: the row, and the rows up to the next quote, cannot be read",
		said(t, "name,price\na,1\nb\"c,2\n"))
	require.Equal(t, "a 100\n4: price: is required", said(t, "sep=,\nname,price\na,1\nb,\n"))
	require.Equal(t, "b 100\n2: sku: is a rounded number: format the column as text (\"8.90123E+12\")",
		said(t, "name;sku;price\na;8.90123E+12;1\nb;00123;1"))
	content := sheet(t, []any{"Title", "MRP", "MOQ"}, []any{"a", 1.5, 2}, nil, []any{"b", "x"}, []any{nil, nil, 1.5})
	require.Equal(t, "a 150\n4: MRP: expected an amount, as in 1,250.50 (\"x\")\n5: Title: must not be empty; MOQ: expected a whole "+
		"number (\"1.5\"); MRP: is required", said(t, string(content)))
}

func TestPricesAreReadExactly(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"12.5": "a 1250", "₹ 1,25,000.50": "a 12500050", "Rs. 12": "a 1200", "rs12/-": "a 1200", "12 Rs.": "a 1200", "रु १२": "a 1200",
		"\u200e૧,૨૫૦.૫૦": "a 125050", "1,250": "a 125000", "0": "a 0", "12.": "a 1200",
		"12.5050": `2: price: at most 2 places ("12.5050")`, "-1": `2: price: must not be negative ("-1")`,
		"99999999999999999":       `2: price: the number is too large ("99999999999999999")`,
		strings.Repeat("9", 5000): `2: price: the number is too large ("` + strings.Repeat("9", 60) + `…")`,
	} {
		require.Equal(t, want, said(t, "name;price\na;"+text), text)
	}
	for _, text := range []string{"1,25", "1e3", "=1+1", "NaN", "(1250)", "1250-", "+1250", "1 250", "1'250", "1250,50", "1.2 lakh", "-"} {
		require.Equal(t, `2: price: expected an amount, as in 1,250.50 ("`+text+`")`, said(t, "name;price\na;"+text), text)
	}
	for row, want := range map[string]string{
		"a;;1250": "a 1250", "a;12.50;": "a 1250", "a;12.50;1250": "a 1250",
		"a;12.51;1250":            `2: price: is not price_amount divided by 100 ("12.51")`,
		"a;;12.5":                 `2: price amount (paise): expected a whole number ("12.5")`,
		"a;;99999999999999999999": `2: price amount (paise): the number is too large ("99999999999999999999")`,
	} {
		require.Equal(t, want, said(t, "name;price;price amount (paise)\n"+row), row)
	}
	require.Equal(t, "a 30\nb 100000000000000", said(t, string(sheet(t, []any{"name", "price"}, []any{"a", 0.1 + 0.2}, []any{"b", 1e12}))),
		"as the spreadsheet shows them")
}

func TestADotWithThreeDigitsBehindItIsNoPriceAndNoCount(t *testing.T) {
	t.Parallel()
	const why = "a dot with three digits behind it may mean thousands: write 1000 or 1000.00"
	for _, text := range []string{"1.000", "12.500", "₹ 1.250", "Rs 0.500", "1,250.500", "125.000/-", "12.505"} {
		require.Equal(t, "2: Rate: "+why+` ("`+text+`")`, said(t, "name;Rate\na;"+text), text)
	}
	require.Equal(t, "2: price: "+why+` ("1.000")`, said(t, string(sheet(t, []any{"name", "price"}, []any{"a", "1.000"}))))
	require.Equal(t, "2: Paise: "+why+` ("1.000")`, said(t, "name;Paise\na;1.000"))
	require.Equal(t, "b 100\n2: MOQ (pcs): "+why+` ("1.000")`, said(t, "name;price;MOQ (pcs)\na;1;1.000\nb;1;5.0"))
}

func TestAPriceInAnotherCurrencyIsNoneInRupees(t *testing.T) {
	t.Parallel()
	book := workbook(t, [][]any{{"name", "price", "price_currency"}})
	row := 1
	priced := func(style excelize.Style, code string) {
		row++
		require.NoError(t, book.SetSheetRow("Sheet1", fmt.Sprint("A", row), &[]any{"a", 5, code}))
		id, err := book.NewStyle(&style)
		require.NoError(t, err)
		require.NoError(t, book.SetCellStyle("Sheet1", fmt.Sprint("B", row), fmt.Sprint("B", row), id))
	}
	foreign := []string{`[$$-409]#,##0.00`, `"$"#,##0.00_-`, `$#,##0`, `[$€-2] #,##0.00`, `#,##0.00\ [$USD]`, `0.00" AED"`, `[$£-809]#,##0`,
		`_("$"* #,##0.00_)`, `[$kr-414] #,##0`, "[$د.إ.\u200f-3801]#,##0.00", `#,##0\ [$zł-415]`}
	for _, format := range foreign {
		priced(excelize.Style{CustomNumFmt: &format}, "")
	}
	priced(excelize.Style{NumFmt: 44}, "")
	for _, format := range []string{`[$₹-4009]\ #,##0.00`, `"Rs" #,##0`, `#,##0.00 "INR"`, `[$-4009]#,##0.00`, `[$Rs.-4009] 0`, `[$रु-439]0`} {
		priced(excelize.Style{CustomNumFmt: &format}, "")
	}
	priced(excelize.Style{CustomNumFmt: &foreign[0]}, "USD")
	f, err := read(written(t, book))
	require.NoError(t, err)
	require.Len(t, f.Errors, len(foreign)+1)
	for _, e := range f.Errors {
		require.Regexp(t, `^price: is in .+, not in rupees \("5"\)$`, e.Error, e.Row)
	}
	require.Len(t, f.Items, 7)
	for _, text := range []string{"$12", "12 USD", "€ 5", "5 dollars", "AED 12.50", "US$ 7"} {
		require.Regexp(t, `^2: Rate: is in .+, not in rupees \(".+"\)$`, said(t, "name;Rate\na;"+text), text)
	}
	for _, header := range []string{"Price ($)", "MRP €", "Rate (USD)", "Price in dollars", "Price £"} {
		_, err := read([]byte("name;" + header + "\na;5"))
		require.ErrorContains(t, err, "The first row must name the columns name, and price", header)
		f, err := read([]byte("name;price;" + header + "\na;5;7"))
		require.NoError(t, err)
		require.Equal(t, []string{header}, f.Columns.Ignored)
	}
}

func TestEachColumnOfAFileIsUsedIgnoredOrGuessed(t *testing.T) {
	t.Parallel()
	const content = "Shree Jewellers, price list;;;\n\nItem Name;Price (Rs);Minimal Order;Remarks;Availability;Rate per " +
		"pc\nHook;12.50;25;old;Out of Stock;7\n"
	for _, accept := range []bool{false, true} {
		f, err := marketplacecmd.ReadCatalog(t.Context(), io.NewSectionReader(strings.NewReader(content), 0, int64(len(content))), accept)
		require.NoError(t, err)
		require.Equal(t, 3, f.Columns.Row)
		require.Equal(t, []spreadsheet.Column{{Header: "Item Name", Field: "name"}, {Header: "Price (Rs)", Field: "price"},
			{Header: "Availability", Field: "availability"}}, f.Columns.Used)
		require.Equal(t, []spreadsheet.Column{{Header: "Minimal Order", Field: "moq"}}, f.Columns.Guessed)
		require.Equal(t, []string{"Remarks", "Rate per pc"}, f.Columns.Ignored, "price has a column")
		require.Empty(t, f.Errors)
		require.Equal(t, "out of stock", f.Items[0].Availability.Value)
		require.Equal(t, map[bool]int64{false: 1, true: 25}[accept], f.Items[0].MOQ.Value)
	}
	for _, header := range []string{"नाम;मूल्य (₹)", "નામ;કિંમત (રૂ)", "वस्तु;भाव", "Product;Unit Price (INR)", "ITEM;M.R.P. (Rs.)",
		"Particulars\nName of Item;Rate (रुपये)", "Product Title;Selling Price",
		"उत्पाद का नाम;मूल्य", "આઇટમ;ભાવ",
		"વસ્તુનું નામ;કિંમત", "आइटम;दाम", "नाव;किंमत", "নাম;দাম",
		"ਨਾਮ;ਕੀਮਤ", "పేరు;ధర", "பெயர்;விலை", "ಹೆಸರು;ಬೆಲೆ", "പേര്;വില",
		"ନାମ;ଦାମ (₹)", "نام;قیمت"} {
		require.Equal(t, "a 1250", said(t, header+"\na;12.50"), header)
	}
	for _, header := range []string{"MOQ (pcs)", "Min Order Qty", "Min. Qty", "Minimum Order Quantity (nos)",
		"न्यूनतम मात्रा", "ઓછામાં ઓછો જથ્થો"} {
		f, err := read([]byte("name;price;" + header + "\na;1;7"))
		require.NoError(t, err)
		require.EqualValues(t, 7, f.Items[0].MOQ.Value, header)
	}
	_, err := read([]byte(strings.Repeat("Title\n", 12) + "name;price\na;1"))
	require.ErrorContains(t, err, "The first row must name")
}

func TestTheFirstSheetThatIsShownIsRead(t *testing.T) {
	t.Parallel()
	book := workbook(t, nil)
	_, err := read(written(t, book))
	require.ErrorIs(t, err, spreadsheet.ErrFormat)
	refused, _ := errors.AsType[*fault.Error](err)
	require.Equal(t, []fault.Field{{Field: "file", Message: "its first sheet has no rows"}}, refused.Fields)
	require.NoError(t, book.SetSheetRow("Sheet1", "A1", &[]any{"units"}))
	second, err := book.NewSheet("Products")
	require.NoError(t, err)
	require.NoError(t, book.SetSheetRow("Products", "A1", &[]any{"name", "price"}))
	require.NoError(t, book.SetSheetRow("Products", "A2", &[]any{"a", 1}))
	book.SetActiveSheet(second)
	require.NoError(t, book.SetSheetVisible("Sheet1", false))
	require.Equal(t, "a 100", said(t, string(written(t, book))))
}

func TestUnreadSheetsAndColumnsWithoutAHeaderAreListed(t *testing.T) {
	t.Parallel()
	book := workbook(t, [][]any{{"name", "price", "", "", "notes"}, {"a", 1}, {"b", 2, "", "22K", "x"}, {"Total", 3}})
	for _, name := range []string{"Rings", "Empty", "Hidden"} {
		_, err := book.NewSheet(name)
		require.NoError(t, err)
	}
	require.NoError(t, book.SetSheetRow("Rings", "B3", &[]any{"x"}))
	require.NoError(t, book.SetSheetRow("Hidden", "A1", &[]any{"x"}))
	require.NoError(t, book.SetSheetVisible("Hidden", false))
	f, err := read(written(t, book))
	require.NoError(t, err)
	require.Equal(t, []string{"notes", "column D without a header", `sheet "Rings"`}, f.Columns.Ignored)
	require.Equal(t, "a 100\nb 200\n4: name: is the name of a total, not of a product (\"Total\")", said(t, string(written(t, book))))
	for _, name := range []string{"Grand Total:", "SUB-TOTAL", "कुल योग", "કુલ"} {
		require.Contains(t, said(t, "name;price\n"+name+";1"), "is the name of a total", name)
	}
	require.Equal(t, "Total Eclipse Ring 100", said(t, "name;price\nTotal Eclipse Ring;1"))
}

func TestAMergedCellIsTheValueOfEachOfItsRows(t *testing.T) {
	t.Parallel()
	book := workbook(t, [][]any{{"Price list"}, {"name", "price", "category"}, {"a", 1, "Rings"}, {"b"}, {}, {"c", 3}, {"d", 4}})
	for _, cells := range [][2]string{{"A1", "C1"}, {"C3", "C6"}, {"B3", "B4"}} {
		require.NoError(t, book.MergeCell("Sheet1", cells[0], cells[1]))
	}
	f, err := read(written(t, book))
	require.NoError(t, err)
	require.Equal(t, "a 100\nb 100\nc 300\nd 400", said(t, string(written(t, book))))
	var categories []string
	for _, i := range f.Items {
		categories = append(categories, i.Category.Value)
	}
	require.Equal(t, []string{"Rings", "Rings", "Rings", ""}, categories)
	dollars, err := book.NewStyle(&excelize.Style{CustomNumFmt: new("[$$-409]#,##0.00")})
	require.NoError(t, err)
	require.NoError(t, book.SetCellStyle("Sheet1", "B3", "B3", dollars))
	require.Contains(t, said(t, string(written(t, book))), "4: price: is in $, not in rupees")
}

func TestAFormulaWithoutAValueIsAnErrorOfItsRow(t *testing.T) {
	t.Parallel()
	book := workbook(t, [][]any{{"name", "price", "moq", "total"}, {"a", 1, 2}, {"b", nil, 2}, {nil, nil}, {"d", 4, 2}, {"e", "#N/A", 2},
		{"f", 6, nil}})
	_, err := book.NewSheet("Other")
	require.NoError(t, err)
	for _, cell := range []string{"B3", "A4", "C4", "D5"} { // as written by programs that compute no formulas
		require.NoError(t, book.SetCellFormula("Sheet1", cell, "1+1"))
	}
	require.NoError(t, book.SetCellFormula("Other", "A2", "1+1"))
	parts := unpacked(t, written(t, book))
	const name = "xl/worksheets/sheet1.xml"
	good := strings.Replace(parts[name], `<c r="B3" t="str"><f>1+1</f></c>`, `<c r="B3"><f>1+1</f><v></v></c>`, 1)
	require.NotEqual(t, good, parts[name])
	parts[name] = strings.Replace(strings.Replace(good, `<c r="B6" t="s"><v>8</v>`, `<c r="B6" t="e"><v>#N/A</v>`, 1),
		`<c r="B7"><v>6</v></c>`, `<c r="B7"><f>1+1</f><v>6</v></c><c r="C7" t="str"><f>""</f><v></v></c>`, 1)
	const saved = "has a formula whose value is not in the file: open it in an office program and save it"
	require.Equal(t, "a 100\nd 400\nf 600\n3: price: B3 "+saved+"\n4: name: A4 "+saved+"; moq: C4 "+saved+"\n6: price: B6 has the error #N/A",
		said(t, string(packed(t, parts))))
	parts[name] = strings.Replace(good, `<c r="B1" t="s"><v>1</v></c>`, `<c r="B1"><f>"price"</f><v></v></c>`, 1)
	_, err = read(packed(t, parts))
	require.ErrorContains(t, err, "B1 "+saved)
}

func TestATextOfAFailedFormulaIsAnErrorOfItsRow(t *testing.T) {
	t.Parallel()
	require.Equal(t, "# 1 100\n2: Item: has the error #REF!; Rate: has the error #N/A\n3: Rate: has the error #DIV/0!\n"+
		"4: Item: has the error ########", said(t, "Item,Rate,Notes\n#REF!,#N/A,\na,#DIV/0!,\n########,1,\n# 1,1,#NAME?\n"))
}

func TestADateIsNoCodeAndNoName(t *testing.T) {
	t.Parallel()
	book := workbook(t, [][]any{{"Item", "Rate", "Item Code"}, {"a", 1, 46093}, {46093, 1, "b"}, {"c", 1, "2026-03-12"}})
	day, err := book.NewStyle(&excelize.Style{NumFmt: 16})
	require.NoError(t, err)
	for _, at := range []string{"C2", "A3", "C4"} {
		require.NoError(t, book.SetCellStyle("Sheet1", at, at, day))
	}
	const why = `: is a date: format the column as text ("2026-03-12")`
	require.Equal(t, "c 100\n2: Item Code"+why+"\n3: Item"+why, said(t, string(written(t, book))))
}

func TestALongCodeIsNotRounded(t *testing.T) {
	t.Parallel()
	parts := unpacked(t, sheet(t, []any{"name", "price", "sku"}, []any{"a", 1, 123456789012345678}, []any{"b", 1, 7}))
	const name = "xl/worksheets/sheet1.xml"
	parts[name] = strings.Replace(parts[name], `<v>7</v>`, `<v>1.2345678901234568E+17</v>`, 1)
	f, err := read(packed(t, parts))
	require.NoError(t, err)
	require.Equal(t, "123456789012345678", f.Items[0].SKU.Value)
	require.Equal(t, `sku: is a rounded number: format the column as text ("1.2345678901234568E+17")`, f.Errors[0].Error)
}

func TestCellsAreReadAsTheSheetShowsThem(t *testing.T) {
	t.Parallel()
	book := workbook(t, [][]any{{"name", "price", "description"}})
	styled := func(s excelize.Style) int {
		id, err := book.NewStyle(&s)
		require.NoError(t, err)
		return id
	}
	day, percent, rupees := styled(excelize.Style{CustomNumFmt: new("[$-4009]dd\\/mm\\/yyyy;@")}), styled(excelize.Style{NumFmt: 10}),
		styled(excelize.Style{CustomNumFmt: new(`[$₹-4009]\ #,##0.00;[Red]-0.00 "days"`)})
	want := []string{}
	for i, c := range []struct {
		value any
		style int
		shown string
	}{
		{46082, day, "2026-03-01"}, {46082.5, styled(excelize.Style{NumFmt: 22}), "2026-03-01 12:00:00"},
		{0.25, styled(excelize.Style{NumFmt: 20}), "06:00:00"}, {1e9, day, "1000000000"},
		{0.5, styled(excelize.Style{CustomNumFmt: new("hh:mm:ss.000")}), "12:00:00"},
		{5, styled(excelize.Style{CustomNumFmt: new("Rs #,##0")}), "5"},
		{0.915, percent, "91.5%"}, {0.1 + 0.2, 0, "0.3"}, {1250.5, rupees, "1250.5"}, {true, 0, "TRUE"}, {false, day, "FALSE"},
		{123, styled(excelize.Style{CustomNumFmt: new("00000")}), "00123"}, {"46082", day, "46082"}, {"1.0E9", 0, "1.0E9"}, {22, 0, "22"},
		{5, styled(excelize.Style{CustomNumFmt: new(`"KT-"0000`)}), "KT-0005"},
		{5, styled(excelize.Style{CustomNumFmt: new(`\K\-00_)`)}), "K-05"},
		{9812345678, styled(excelize.Style{CustomNumFmt: new(`"+91 "00000-00000`)}), "+91 98123-45678"},
		{1234, styled(excelize.Style{CustomNumFmt: new(`[Red]0-00;"minus "000`)}), "12-34"},
		{-5, styled(excelize.Style{CustomNumFmt: new(`000;"minus "000`)}), "-5"},
		{12345678, styled(excelize.Style{CustomNumFmt: new(`[>=10000000]##\,##\,##\,##0;##,##0`)}), "12345678"},
		{1.5, styled(excelize.Style{CustomNumFmt: new("[h]:mm")}), "36:00:00"}, {1.25, styled(excelize.Style{NumFmt: 46}), "30:00:00"},
		{123456789012345678, 0, "123456789012345678"},
	} {
		at := fmt.Sprint("C", i+2)
		require.NoError(t, book.SetSheetRow("Sheet1", fmt.Sprint("A", i+2), &[]any{"a", 1250.5, c.value}))
		require.NoError(t, book.SetCellStyle("Sheet1", at, at, c.style))
		require.NoError(t, book.SetCellStyle("Sheet1", fmt.Sprint("B", i+2), fmt.Sprint("B", i+2), rupees))
		want = append(want, c.shown)
	}
	require.NoError(t, book.SetSheetRow("Sheet1", "A40", &[]any{"b", 46082}))
	require.NoError(t, book.SetCellStyle("Sheet1", "B40", "B40", day))
	f, err := read(written(t, book))
	require.NoError(t, err)
	var got []string
	for _, i := range f.Items {
		require.EqualValues(t, 125050, i.Price)
		got = append(got, i.Description.Value)
	}
	require.Equal(t, want, got)
	require.Equal(t, `price: expected an amount, as in 1,250.50 ("2026-03-01")`, f.Errors[0].Error)
}

func TestADamagedFileIsRefusedAsAWhole(t *testing.T) {
	t.Parallel()
	content := sheet(t, []any{"name", "price"}, []any{"Hook", 1.25})
	stored := stored(t, unpacked(t, content), zip.Store)
	require.Equal(t, "Hook 125", said(t, string(stored)))
	refused := func(content []byte) string {
		_, err := read(content)
		require.ErrorIs(t, err, spreadsheet.ErrFormat)
		why, _ := errors.AsType[*fault.Error](err)
		return why.Fields[0].Message
	}
	const damaged = "it is damaged: a part of it cannot be unpacked"
	require.Equal(t, damaged, refused(bytes.Replace(stored, []byte("1.25"), []byte("9.25"), 1))) // as on a bad disk

	// One sheet has broken XML, because its program does not escape texts. Another one would take gigabytes.
	parts := unpacked(t, content)
	const name = "xl/worksheets/sheet1.xml"
	with := func(text string) []byte {
		changed := maps.Clone(parts)
		changed[name] = text
		return packed(t, changed)
	}
	good := parts[name]
	require.Equal(t, "Hook 125", said(t, string(with(good))))
	before, _, _ := strings.Cut(good, "1.25")
	for _, text := range []string{strings.Replace(good, "1.25", "1.25\v", 1), strings.Replace(good, "1.25", "1 & 2", 1), before} {
		require.Equal(t, damaged, refused(with(text)), text)
	}
	const made = "it cannot be read as .xlsx"
	require.Equal(t, made, refused(with(strings.Replace(good, "<sheetData>", "<sheetData>"+strings.Repeat("<a>", 2000), 1))))
	require.Equal(t, made, refused(with(strings.Replace(good, "<sheetData>", "<sheetData "+strings.Repeat(`b=">" `, 200_000)+">", 1))))
	parts["customXml/item1.xml"] = "<a>" + strings.Repeat("x", 2<<20) + "</a>"
	parts["xl/drawings/vmlDrawing1.vml"] = "<xml><br></xml>"
	require.Equal(t, "Hook 125", said(t, string(with(good))))
}

func TestColumnsAreKnownByManyNames(t *testing.T) {
	t.Parallel()
	f, err := read([]byte("Product Name,DESC.,Sub-Category,Rate,Currency,Min. Order,C.O.O.,Importer Name,Image URL,weight\n" +
		"=Hook,<b>Brass</b>,Hooks,1,usd,5,China,Asha,https://a.example/1|https://a.example/2,7\n"))
	require.NoError(t, err)
	require.Empty(t, f.Errors)
	i := f.Items[0]
	require.Equal(t, []any{"=Hook", "<b>Brass</b>", "Hooks", "USD", int64(5), "China", "Asha",
		[]string{"https://a.example/1", "https://a.example/2"}},
		[]any{i.Name, i.Description.Value, i.SubCategory.Value, i.Currency.Value, i.MOQ.Value, i.OriginCountry.Value, i.ImporterName.Value,
			i.Images.Value})
	for text, why := range map[string]string{
		"name":             "The first row must name the columns name, and price or price_amount",
		"price":            "The first row must name the columns name, and price or price_amount",
		"name,title,price": "Two columns are name", "name,mrp,price": "Two columns are price", "a\"b": "The row of names cannot be read",
		"": "File must be CSV or Excel", "\n\n": "File must be CSV or Excel",
	} {
		_, err := read([]byte(text))
		require.ErrorIs(t, err, fault.New(fault.Malformed, why), text)
	}
	for _, name := range []string{"Price (Rs)", "Price (Rs.)", "PRICE (INR)", "Rate (₹)", "Price in Rs.", "MRP (in INR)", "Price ₹",
		"MRP Rs", "Price in rupees"} {
		require.Equal(t, "a 1250", said(t, "name;"+name+"\na;12.50"), name)
	}
	require.Equal(t, "a 1250", said(t, "name;Price (paise)\na;1250"))
	for text, why := range map[string]string{
		"Shree Jewellers,,2026":      `file: row 1 has unknown columns: "Shree Jewellers", "2026"`,
		"\nItem,Price (USD)":         `file: row 2 has unknown columns: "Price (USD)"`,
		"name,Price (Rs),weight,MRP": `price: "Price (Rs)" and "MRP"`,
		strings.Repeat("ક", 70):      `file: row 1 has unknown columns: "` + strings.Repeat("ક", 60) + `…"`,
	} {
		_, err := read([]byte(text))
		require.ErrorContains(t, err, "; "+why)
	}
	f, err = read([]byte("name,price"))
	require.NoError(t, err)
	require.Equal(t, spreadsheet.ImportResult{Success: true, Errors: []spreadsheet.RowError{}, Columns: f.Columns},
		f.Result(marketplacecmd.Imported{}).ImportResult)
}

// packed returns an archive of files.
func packed(t *testing.T, files map[string]string) []byte {
	t.Helper()
	return stored(t, files, zip.Deflate)
}

func stored(t *testing.T, files map[string]string, method uint16) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, content := range files {
		f, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: method})
		require.NoError(t, err)
		_, err = io.WriteString(f, content)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

// unpacked returns the files of an archive.
func unpacked(t *testing.T, content []byte) map[string]string {
	t.Helper()
	archive, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	require.NoError(t, err)
	parts := map[string]string{}
	for _, f := range archive.File {
		r, err := f.Open()
		require.NoError(t, err)
		text, err := io.ReadAll(r)
		require.NoError(t, err)
		parts[f.Name] = string(text)
	}
	return parts
}
