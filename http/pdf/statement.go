package pdf

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/shopspring/decimal"
)

// Side selects the entries of a statement.
type Side int

const (
	// Both shows IN and OUT beside each other, with the balance after each row.
	Both Side = iota
	// In shows receipts (jama), without balances of rows.
	In
	// Out shows issues (naame), without balances of rows.
	Out
)

// Unit is a unit of a ledger.
type Unit struct {
	Heading        string // over its columns: "Cash ₹"
	Prefix, Suffix string // around an amount in running text: "₹ ", " g"
	Places         int32  // decimal places shown; an amount with more shows all of them, never rounded
}

// Rupees, FineGrams and GrossGrams are the units of the ledgers, with the places of the contract (G21).
var (
	Rupees     = Unit{Heading: "Cash ₹", Prefix: "₹ ", Places: 2}
	FineGrams  = Unit{Heading: "Fine g", Suffix: " g", Places: 3}
	GrossGrams = Unit{Heading: "Weight g", Suffix: " g", Places: 3}
)

// Owed has the words of balances: of one above zero, of one below, and of zero.
type Owed struct{ Above, Below, Zero string }

// balance returns a balance with its words, or with its sign if there are none.
func (o Owed) balance(u Unit, b decimal.Decimal) string {
	if o == (Owed{}) {
		return u.number(b)
	}
	return u.number(b.Abs()) + " " + []string{o.Below, o.Zero, o.Above}[b.Sign()+1]
}

// Line is one entry of a row. Amounts has one amount per unit, in the order of Statement.Units; zero prints as blank.
type Line struct {
	Text    string
	Amounts []decimal.Decimal
}

// Row is one row of the ledger with all its entries. Balance has the account's balance after the row, one amount per unit.
type Row struct {
	Date    time.Time // only the day counts
	ID      int64
	In, Out []Line
	Balance []decimal.Decimal
}

// Extent has the maximum values, which determine the widths of the columns. An entry is no wider than the sum of its
// side, unless some entries are negative. A value wider than its column is drawn in a smaller size.
type Extent struct {
	ID              int64             // the greatest number of a row
	In, Out         []decimal.Decimal // one amount per unit: sums of the entries of all rows
	Lowest, Highest []decimal.Decimal // one amount per unit: the least and the greatest balance after a row
}

// Drawn is the state of the log in a document. With it, a reader can draw the document again and check it.
type Drawn struct {
	StoreID    string
	Position   uint64
	RecordedAt time.Time // time of the event at Position; shown in its own location
	Checkpoint string    // signed (C2SP tlog-checkpoint), whole; "" before the first
}

// Statement is the input of [Write].
type Statement struct {
	Title    string    // the workshop
	Account  string    // name of the account
	Ledger   string    // "Bank ledger"
	From, To time.Time // first and last day, inclusive; zero: no bound
	Side     Side
	Units    []Unit            // one to four
	Opening  []decimal.Decimal // balance of the account before the rows, one amount per unit
	Before   []decimal.Decimal // sum of the single side before the rows; nil: zero, or both sides are shown
	Owed     Owed              // words for the debtor of a balance; the zero Owed prints signs
	Drawn    Drawn
	Code     string   // text of the QR code, with the figures to check; "": none
	Notes    []string // under the period: "As of 31 Mar 2025", "As known at position 128445"
	Extent   Extent

	// Rows calls take for each row, in the order of the ledger and with both sides.
	Rows func(take func(Row) error) error
}

// errDoesNotAddUp reports that a balance of the statement differs from the sum of its entries.
var errDoesNotAddUp = errors.New("statement does not add up")

// maxDigits is the maximum number of digits before and after the point. The limits of ledgers are far lower. A longer
// number would be unreadable.
const maxDigits = 30

// Write draws s as a PDF on w. Its only input is s: the same s gives the same bytes. It holds one page in memory.
//
// It fails with errDoesNotAddUp when a balance differs from the sum of the entries, and with another error when s is malformed (the wrong
// number of amounts, an amount of more than 30 digits), or when Rows or w fails. After an error, the bytes written so far are not a valid
// document.
func Write(w io.Writer, s Statement) error {
	if err := s.check(); err != nil {
		return err
	}
	d, sums := newDocument(w, s), newRunning(s.Opening)
	d.page()
	d.balance("Opening", sums)
	err := s.Rows(func(row Row) error {
		if err := s.add(&sums, &row); err != nil {
			return err
		}
		d.row(&row)
		return d.file.err
	})
	if err != nil {
		return err
	}
	d.closing(sums)
	d.under = func() {}
	d.code()
	return d.check("statement", fmt.Sprintf("A request with known_at=%d returns the same statement.", s.Drawn.Position))
}

// check fails if a part besides the rows cannot be printed.
func (s *Statement) check() error {
	if len(s.Units) < 1 || len(s.Units) > 4 {
		return fmt.Errorf("statement with %d units, not 1 to 4", len(s.Units))
	}
	if s.Side < Both || s.Side > Out {
		return fmt.Errorf("statement of unknown side %d", s.Side)
	}
	if err := s.amounts(s.Opening); err != nil {
		return fmt.Errorf("opening balance %w", err)
	}
	if s.Before != nil {
		if err := s.amounts(s.Before); err != nil {
			return fmt.Errorf("opening total %w", err)
		}
	}
	for _, widest := range [][]decimal.Decimal{s.Extent.In, s.Extent.Out, s.Extent.Lowest, s.Extent.Highest} {
		if err := s.amounts(widest); err != nil {
			return fmt.Errorf("extent of its rows %w", err)
		}
	}
	return nil
}

// add adds a row to the sums of all rows, and compares its balance with the sum.
func (s *Statement) add(sums *running, row *Row) error {
	for _, side := range []Side{In, Out} {
		for _, l := range row.of(side) {
			if err := s.amounts(l.Amounts); err != nil {
				return fmt.Errorf("entry of row %d %w", row.ID, err)
			}
			sums.add(side, l.Amounts)
		}
	}
	if err := s.amounts(row.Balance); err != nil {
		return fmt.Errorf("balance of row %d %w", row.ID, err)
	}
	for i, given := range row.Balance {
		if !given.Equal(sums[Both][i]) {
			return fmt.Errorf("%w: row %d has %s, its entries give %s", errDoesNotAddUp, row.ID, given, sums[Both][i])
		}
	}
	return nil
}

func (s *Statement) amounts(amounts []decimal.Decimal) error {
	if len(amounts) != len(s.Units) {
		return fmt.Errorf("has %d amounts for %d units", len(amounts), len(s.Units))
	}
	for _, a := range amounts {
		if a.Exponent() < -maxDigits || a.Exponent() > maxDigits || a.NumDigits() > maxDigits {
			return fmt.Errorf("has an amount of more than %d digits", maxDigits)
		}
	}
	return nil
}

func (r *Row) of(side Side) []Line {
	if side == In {
		return r.In
	}
	return r.Out
}

// total returns the total of each side: the sum of these rows and of the earlier rows.
func (s *Statement) total(rows running) running {
	sum := newRunning(s.Opening)
	for _, side := range []Side{In, Out} {
		sum.add(side, s.Before)
		sum.add(side, rows[side])
	}
	return sum
}

// running has the sums at a line of the statement.
type running groups[decimal.Decimal]

func newRunning(opening []decimal.Decimal) running {
	return running{Both: slices.Clone(opening), In: make([]decimal.Decimal, len(opening)), Out: make([]decimal.Decimal, len(opening))}
}

// add adds an entry: balance = IN - OUT, in every ledger and unit (CONTRACT.md 6.3).
func (r *running) add(side Side, amounts []decimal.Decimal) {
	for i, a := range amounts {
		if a.IsZero() {
			continue
		}
		r[side][i] = r[side][i].Add(a)
		if side == Out {
			a = a.Neg()
		}
		r[Both][i] = r[Both][i].Add(a)
	}
}
