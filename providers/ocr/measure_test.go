package ocr_test

import (
	"fmt"
	"slices"

	"bahi/domain/ledger/khatapage"
	"bahi/domain/unit"
	"bahi/internal/test/khatapages"
)

// result counts the results of reading pages.
type result struct {
	True, Read int // rows of the pages, and entries read
	Rows       int // entries with the side and the numbers of a row, one for each row
	Wrong      int // entries above 0.6 that are not among these, or have another date
}

// Recall is the share of rows that were read correctly, in percent.
func (s result) Recall() int { return 100 * s.Rows / max(1, s.True) }

// Precision is the share of the entries that are right, in percent.
func (s result) Precision() int { return 100 * s.Rows / max(1, s.Read) }

// Plus adds.
func (s result) Plus(o result) result {
	return result{s.True + o.True, s.Read + o.Read, s.Rows + o.Rows, s.Wrong + o.Wrong}
}

// sure is the confidence above which no value may be wrong (CONTRACT.md R1).
const sure = 6 * unit.Whole / 1000

// compare matches the entries read with a page's rows.
func compare(rows []khatapages.Row, entries []khatapage.Entry) result {
	s := result{True: len(rows), Read: len(entries)}
	left := slices.Clone(rows)
	for _, e := range entries {
		read := khatapages.Row{Side: e.Side, Weight: fieldOf(e.Weight), Touch: fieldOf(e.Touch), Fine: fieldOf(e.Fine), Amount: fieldOf(e.Amount)}
		right, date := -1, fieldOf(e.Date)
		for i, r := range left {
			of := r.Date
			if r.Date, r.Item = "", ""; r == read && (right < 0 || of == date) {
				right = i
			}
		}
		if e.Confidence > sure && (right < 0 || left[right].Date != date) {
			s.Wrong++
		}
		if right >= 0 {
			s.Rows++
			left = slices.Delete(left, right, right+1)
		}
	}
	return s
}

func fieldOf[T fmt.Stringer](v *T) string {
	if v == nil {
		return ""
	}
	return (*v).String()
}
