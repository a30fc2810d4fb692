package spreadsheet

import (
	"fmt"
	"slices"

	"github.com/xuri/excelize/v2"
)

// maxHidden is the maximum number of ranges of hidden rows that are listed.
const maxHidden = 100

// hidden are the hidden parts of a sheet that have values.
type hidden struct {
	columns []int    // from 0
	rows    [][2]int // ranges, with their last rows
}

// add adds the hidden columns of a row with values, and the row if it is hidden. Rows are added in ascending order.
func (h *hidden) add(r Row) {
	for _, column := range r.hiddenColumns {
		if !slices.Contains(h.columns, column) {
			h.columns = append(h.columns, column)
		}
	}
	if last := len(h.rows) - 1; r.hidden && last >= 0 && h.rows[last][1]+1 == r.Number {
		h.rows[last][1]++
	} else if r.hidden {
		h.rows = append(h.rows, [2]int{r.Number, r.Number})
	}
}

func (h *hidden) names() (all []string) {
	for _, column := range slices.Sorted(slices.Values(h.columns)) {
		name, _ := excelize.ColumnNumberToName(column + 1) // valid: it was parsed from a name
		all = append(all, "hidden column "+name)
	}
	for i, rows := range h.rows {
		switch {
		case i == maxHidden:
			return append(all, fmt.Sprintf("hidden rows after row %d", rows[0]-1))
		case rows[0] == rows[1]:
			all = append(all, fmt.Sprintf("hidden row %d", rows[0]))
		default:
			all = append(all, fmt.Sprintf("hidden rows %d to %d", rows[0], rows[1]))
		}
	}
	return all
}
