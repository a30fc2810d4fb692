package khatapages

import (
	"fmt"
	"slices"

	"bahi/domain/ledger/khatapage"
	"bahi/domain/unit"
)

// Score counts the results of reading pages.
type Score struct {
	True, Read int // rows of the pages, and entries read
	Rows       int // entries with the side and the numbers of a row, one for each row
	Wrong      int // entries above 0.6 that are not among these, or have another date
}

// Recall is the share of rows that were read correctly, in percent.
func (s Score) Recall() int { return 100 * s.Rows / max(1, s.True) }

// Precision is the share of the entries that are right, in percent.
func (s Score) Precision() int { return 100 * s.Rows / max(1, s.Read) }

// Plus adds.
func (s Score) Plus(o Score) Score {
	return Score{s.True + o.True, s.Read + o.Read, s.Rows + o.Rows, s.Wrong + o.Wrong}
}

// sure is the confidence above which no value may be wrong (CONTRACT.md R1).
const sure = 6 * unit.Whole / 1000

// Compare matches the entries read with a page's rows.
func Compare(rows []Row, entries []khatapage.Entry) Score {
	s := Score{True: len(rows), Read: len(entries)}
	left := slices.Clone(rows)
	for _, e := range entries {
		read := Row{Side: e.Side, Weight: text(e.Weight), Touch: text(e.Touch), Fine: text(e.Fine), Amount: text(e.Amount)}
		right, date := -1, text(e.Date)
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

func text[T fmt.Stringer](v *T) string {
	if v == nil {
		return ""
	}
	return (*v).String()
}

// Styles are the looks of the measured pages: clean and noisy ones.
func Styles() (clean, noisy []Style) {
	for script := Latin; script <= Gujarati; script++ {
		for _, sides := range []int{1, 2} {
			for n := range 5 {
				s := Style{Script: script, Sides: sides, Headers: n != 4, Digits: n == 1, Ditto: n == 2 || n == 3, Rows: 22 + 3*n, Party: "Imran",
					Close: n == 3}
				clean = append(clean, s)
				s.Skew, s.Noise, s.Quality, s.Shadow, s.Speckle = []float64{-5, 3, 1.5, -2, 5}[n], 20+5*n, 60, n%2 == 0, 20*(n%3)
				noisy = append(noisy, s)
			}
		}
	}
	return clean, noisy
}

// Photo returns a JPEG with the camera's orientation, 1 to 8, in EXIF's form (CIPA DC-008, 4.6.5).
func Photo(file []byte, orientation byte) []byte {
	exif := append([]byte("\xff\xe1\x00\x22Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00"),
		orientation, 0, 0, 0, 0, 0, 0)
	return slices.Insert(slices.Clone(file), 2, exif...) // after the mark that begins a JPEG
}
