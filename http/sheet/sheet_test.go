package sheet_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"
	"github.com/xuri/excelize/v2"

	"bahi/domain/unit"
	"bahi/http/sheet"
)

func TestNoTextIsAFormula(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"=1+1", "+1", "-1", "@A1", ";=1+1", "\t=1", "\r=1", "\n=1", "\uFEFF=1", "＝1", "＋1", "－1", "＠A1",
		"；=1", "="} {
		require.Equal(t, "'"+text, sheet.Text(text))
	}
	for _, text := range []string{"", "Rent", "a=b", "दुकान", "'=1", "1", "\xff=1"} {
		require.Equal(t, text, sheet.Text(text))
	}
}

func number(text string) decimal.Decimal { return decimal.RequireFromString(text) }

// table has a row of each type of value.
func table(rows ...[]any) sheet.Table {
	return sheet.Table{Name: "Statement", Columns: []string{"line", "id", "date", "amount", "void"}, Rows: func(take func([]any) error) error {
		for _, row := range rows {
			if err := take(row); err != nil {
				return err
			}
		}
		return nil
	}}
}

var day, _ = unit.ParseDate("2025-03-31")

func TestCSVHasTypedValues(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, sheet.Write(sheet.CSV)(&out,
		table([]any{"=पायल, \"x\"", int64(-7), day, number("-1250.50"), true}, []any{nil, nil, nil, nil, false})))
	require.Equal(t, sheet.ByteOrderMark+"line,id,date,amount,void\n\"'=पायल, \"\"x\"\"\",-7,2025-03-31,-1250.5,true\n,,,,false\n",
		out.String())
}

func TestXLSXHasTypedValues(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, sheet.Write(sheet.XLSX)(&out, table(
		[]any{"=1+1", int64(7), day, number("1250.5"), true}, []any{"पायल", nil, nil, number("9999999999999.99"), false},
		[]any{"", nil, nil, number("99999999999999.99"), nil})))
	file, err := excelize.OpenReader(&out)
	require.NoError(t, err)
	raw, err := file.GetRows("Statement", excelize.Options{RawCellValue: true})
	require.NoError(t, err)
	require.Equal(t, [][]string{{"line", "id", "date", "amount", "void"}, {"=1+1", "7", "45747", "1250.5", "1"},
		{"पायल", "", "", "9999999999999.99", "0"}, {"", "", "", "99999999999999.99"}}, raw)
	shown, err := file.GetRows("Statement")
	require.NoError(t, err)
	require.Equal(t, "2025-03-31", shown[1][2])
	formula, err := file.GetCellFormula("Statement", "A2")
	require.NoError(t, err)
	require.Empty(t, formula)
	for cell, want := range map[string]excelize.CellType{"A2": excelize.CellTypeInlineString, "D2": excelize.CellTypeUnset,
		"D4": excelize.CellTypeInlineString, "E2": excelize.CellTypeBool} {
		kind, err := file.GetCellType("Statement", cell)
		require.NoError(t, err)
		require.Equal(t, want, kind, cell)
	}
}

func TestMoreRowsThanASheetHasGoOnInAnother(t *testing.T) {
	t.Parallel()
	row := func(text string) []any { return []any{text, nil, day, nil, nil} }
	for count, sheets := range map[int][]string{0: {"Statement"}, 2: {"Statement"}, 3: {"Statement", "Statement 2"},
		5: {"Statement", "Statement 2", "Statement 3"}} {
		rows := [][]any{row("a"), row("b"), row("c"), row("d"), row("e")}[:count]
		var out bytes.Buffer
		require.NoError(t, sheet.WriteLines(&out, table(rows...), 3))
		file, err := excelize.OpenReader(&out)
		require.NoError(t, err)
		require.Equal(t, sheets, file.GetSheetList())
		var got []string
		for _, name := range sheets {
			lines, err := file.GetRows(name)
			require.NoError(t, err)
			require.Equal(t, []string{"line", "id", "date", "amount", "void"}, lines[0])
			for _, line := range lines[1:] {
				require.Equal(t, "2025-03-31", line[2])
				got = append(got, line[0])
			}
		}
		require.Equal(t, []string{"a", "b", "c", "d", "e"}[:count], append([]string{}, got...))
	}
}

func TestTextsAndOldDaysArriveUnchangedInXLSX(t *testing.T) {
	t.Parallel()
	texts := []string{" <b>&amp; \"x\" ", "a\nb\tc", "_x000D_x000E_ and _x005F", "पायल", "=1+1"}
	days := []string{"1900-01-01", "1900-02-28", "1900-03-01", "2199-12-31"}
	var rows [][]any
	for _, text := range texts {
		rows = append(rows, []any{text})
	}
	for _, text := range days {
		day, err := unit.ParseDate(text)
		require.NoError(t, err)
		rows = append(rows, []any{nil, nil, day})
	}
	var out bytes.Buffer
	require.NoError(t, sheet.Write(sheet.XLSX)(&out, table(rows...)))
	file, err := excelize.OpenReader(&out)
	require.NoError(t, err)
	for i, want := range texts {
		got, err := file.GetCellValue("Statement", fmt.Sprint("A", i+2))
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for i, want := range days {
		got, err := file.GetCellValue("Statement", fmt.Sprint("C", i+2+len(texts)))
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

// A long sheet leaves while it is written: no part of it waits for the last row.
func TestRowsOfXLSXAreSentAsTheyCome(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	long := table()
	long.Rows = func(take func([]any) error) error {
		for i := range int64(100_000) {
			if err := take([]any{"in", i * 7919}); err != nil {
				return err
			}
		}
		require.Greater(t, out.Len(), 400_000)
		return nil
	}
	require.NoError(t, sheet.Write(sheet.XLSX)(&out, long))
}

var errGone = errors.New("gone")

// gone is a client that hangs up.
type gone struct{}

func (gone) Write([]byte) (int, error) { return 0, errGone }

func TestErrorsOfTheTableAndOfTheClientAreReturned(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{sheet.CSV, sheet.XLSX} {
		broken := table()
		broken.Rows = func(func([]any) error) error { return errGone }
		require.ErrorIs(t, sheet.Write(kind)(&bytes.Buffer{}, broken), errGone, kind)
		require.ErrorIs(t, sheet.Write(kind)(gone{}, table([]any{"a", nil, nil, nil, nil})), errGone, kind)
	}
}
