package khatapages

import (
	"fmt"
	"slices"

	"bahi/domain/ledger/khatapage"
	"bahi/domain/unit"
)

// Score counts the results of reading pages. A field's share is of the rows that were found.
type Score struct {
	True, Read int // rows of the pages, and entries read
	Rows       int // rows with the right side and numbers
	Wrong      int // entries above 0.6 of which a number or the date is wrong

	Side, Date, Item, Weight, Amount, Of int // of rows that were found: one entry for each, in order
}

// Recall is the share of rows that were read correctly, in percent.
func (s Score) Recall() int { return 100 * s.Rows / max(1, s.True) }

// Precision is the share of the entries that are right, in percent.
func (s Score) Precision() int { return 100 * s.Rows / max(1, s.Read) }

// Plus adds.
func (s Score) Plus(o Score) Score {
	return Score{
		s.True + o.True, s.Read + o.Read, s.Rows + o.Rows, s.Wrong + o.Wrong, s.Side + o.Side, s.Date + o.Date, s.Item + o.Item,
		s.Weight + o.Weight, s.Amount + o.Amount, s.Of + o.Of,
	}
}

func (s Score) String() string {
	share := func(n int) string { return fmt.Sprintf("%d %%", 100*n/max(1, s.Of)) }
	return fmt.Sprintf("rows %d, right %d: recall %d %%, precision %d %%; side %s, date %s, item %s, weight %s, amount %s; %d wrong above 0.6",
		s.True, s.Rows, s.Recall(), s.Precision(), share(s.Side), share(s.Date), share(s.Item), share(s.Weight), share(s.Amount), s.Wrong)
}

// sure is the confidence above which no value may be wrong (CONTRACT.md R1).
const sure = 6 * unit.Whole / 1000

// Compare matches the entries read with a page's rows: as many as possible, in the order of their sides.
func Compare(rows []Row, entries []khatapage.Entry) (s Score) {
	s.True, s.Read = len(rows), len(entries)
	for _, e := range entries {
		if e.Confidence > sure {
			s.Wrong++
		}
	}
	for _, side := range []string{khatapage.In, khatapage.Out} {
		var truth, read []Row
		var sures []bool
		for _, r := range rows {
			if r.Side == side {
				truth = append(truth, r)
			}
		}
		for _, e := range entries {
			if e.Side == side {
				read, sures = append(read, rowOf(e)), append(sures, e.Confidence > sure)
			}
		}
		align(truth, read, sures, &s)
	}
	return s
}

func rowOf(e khatapage.Entry) Row {
	r := Row{Side: e.Side, Date: text(e.Date), Weight: text(e.Weight), Touch: text(e.Touch), Fine: text(e.Fine), Amount: text(e.Amount)}
	if e.Item != nil {
		r.Item = *e.Item
	}
	return r
}

func text[T fmt.Stringer](v *T) string {
	if v == nil {
		return ""
	}
	return (*v).String()
}

// same counts the equal fields of two rows.
func same(a, b Row) int {
	n := 0
	for _, equal := range []bool{a.Weight == b.Weight, a.Touch == b.Touch, a.Fine == b.Fine, a.Amount == b.Amount} {
		if equal {
			n += 4
		}
	}
	for _, equal := range []bool{a.Date == b.Date, a.Item == b.Item} {
		if equal {
			n++
		}
	}
	return n
}

// align pairs rows in order so that most fields are equal (Needleman-Wunsch).
func align(truth, read []Row, sures []bool, s *Score) {
	best := make([][]int, len(truth)+1)
	for i := range best {
		best[i] = make([]int, len(read)+1)
	}
	for i := range slices.Backward(truth) {
		for j := range slices.Backward(read) {
			best[i][j] = max(best[i+1][j], best[i][j+1], best[i+1][j+1]+same(truth[i], read[j]))
		}
	}
	for i, j := 0, 0; i < len(truth) && j < len(read); {
		switch best[i][j] {
		case best[i+1][j+1] + same(truth[i], read[j]):
			s.count(truth[i], read[j], sures[j])
			i, j = i+1, j+1
		case best[i+1][j]:
			i++
		default:
			j++
		}
	}
}

func (s *Score) count(truth, read Row, sure bool) {
	s.Of++
	s.Side++
	add := func(into *int, equal bool) {
		if equal {
			*into++
		}
	}
	add(&s.Date, truth.Date == read.Date)
	add(&s.Item, truth.Item == read.Item)
	add(&s.Weight, truth.Weight == read.Weight)
	add(&s.Amount, truth.Amount == read.Amount)
	numbers := truth.Weight == read.Weight && truth.Touch == read.Touch && truth.Fine == read.Fine && truth.Amount == read.Amount
	add(&s.Rows, numbers)
	if sure && numbers && truth.Date == read.Date {
		s.Wrong--
	}
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
