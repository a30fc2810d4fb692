package sheet_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"
	"github.com/xuri/excelize/v2"

	"bahi/domain/unit"
	"bahi/http/sheet"
)

func TestNoTextIsAFormula(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"=1+1", "+1", "-1", "@A1", ";=1+1", "\t=1", "\r=1", "\n=1", "\uFEFF=1", "＝1", "＋1", "－1", "＠A1", "；=1", "="} {
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
	require.NoError(t, sheet.Write(sheet.CSV)(&out, table([]any{"=पायल, \"x\"", int64(-7), day, number("-1250.50"), true}, []any{nil, nil, nil, nil, false})))
	require.Equal(t, sheet.ByteOrderMark+"line,id,date,amount,void\n\"'=पायल, \"\"x\"\"\",-7,2025-03-31,-1250.5,true\n,,,,false\n", out.String())
}

func TestXLSXHasTypedValues(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, sheet.Write(sheet.XLSX)(&out, table(
		[]any{"=1+1", int64(7), day, number("1250.5"), true}, []any{"पायल", nil, nil, number("9999999999999.99"), false}, []any{"", nil, nil, number("99999999999999.99"), nil})))
	file, err := excelize.OpenReader(&out)
	require.NoError(t, err)
	raw, err := file.GetRows("Statement", excelize.Options{RawCellValue: true})
	require.NoError(t, err)
	require.Equal(t, [][]string{{"line", "id", "date", "amount", "void"}, {"=1+1", "7", "45747", "1250.5", "1"}, {"पायल", "", "", "9999999999999.99", "0"}, {"", "", "", "99999999999999.99"}}, raw)
	shown, err := file.GetRows("Statement")
	require.NoError(t, err)
	require.Equal(t, "2025-03-31", shown[1][2])
	formula, err := file.GetCellFormula("Statement", "A2")
	require.NoError(t, err)
	require.Empty(t, formula)
	for cell, want := range map[string]excelize.CellType{"A2": excelize.CellTypeInlineString, "D2": excelize.CellTypeUnset, "D4": excelize.CellTypeInlineString, "E2": excelize.CellTypeBool} {
		kind, err := file.GetCellType("Statement", cell)
		require.NoError(t, err)
		require.Equal(t, want, kind, cell)
	}
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
