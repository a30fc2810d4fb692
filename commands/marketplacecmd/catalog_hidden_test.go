package marketplacecmd_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/xuri/excelize/v2"

	"bahi/domain/fault"
)

func TestHiddenRowsAndColumnsAreIgnoredAndListed(t *testing.T) {
	t.Parallel()
	book := workbook(t, [][]any{{"id", "x", "y", "z"}, {"name", "price", "cost", "category"}, {"a", 1, 0.5, "Rings"}, {"b", 2},
		{"c", 3, "#N/A"}, {}, {"d", 4}})
	require.NoError(t, book.MergeCell("Sheet1", "D3", "D4"))
	for _, row := range []int{1, 3, 6, 7} {
		require.NoError(t, book.SetRowVisible("Sheet1", row, false))
	}
	require.NoError(t, book.SetColVisible("Sheet1", "C", false))
	require.NoError(t, book.SetColVisible("Sheet1", "F:H", false))
	rightToLeft := true
	require.NoError(t, book.SetSheetView("Sheet1", 0, &excelize.ViewOptions{RightToLeft: &rightToLeft}))
	f, err := read(written(t, book))
	require.NoError(t, err)
	require.Equal(t, "b 200\nc 300", said(t, string(written(t, book))))
	require.Equal(t, "Rings", f.Items[0].Category.Value)
	require.Equal(t, []string{"hidden column C", "hidden row 1", "hidden row 3", "hidden row 7"}, f.Columns.Ignored)
	for row := range 200 {
		require.NoError(t, book.SetSheetRow("Sheet1", fmt.Sprintf("A%d", row+8), &[]any{"e", 5}))
		require.NoError(t, book.SetRowVisible("Sheet1", row+8, false))
	}
	f, err = read(written(t, book))
	require.NoError(t, err)
	require.Equal(t, []string{"hidden column C", "hidden row 1", "hidden row 3", "hidden rows 7 to 207"}, f.Columns.Ignored)
	for row := 2; row < 6; row++ {
		require.NoError(t, book.SetRowVisible("Sheet1", row, false))
	}
	_, err = read(written(t, book))
	refused, ok := errors.AsType[*fault.Error](err)
	require.True(t, ok)
	require.Equal(t, []fault.Field{{Field: "file", Message: "its first sheet has only hidden rows"}}, refused.Fields)
}
