package pdf

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/shopspring/decimal"
)

// Side says which entries a statement shows.
type Side int

const (
	// Both shows IN and OUT beside each other, with the balance after each row.
	Both Side = iota
	// In shows what came in (jama), and no balance after each row.
	In
	// Out shows what was given (naame), and no balance after each row.
	Out
)

// Unit is one thing that a ledger counts.
type Unit struct {
	Heading        string // over its columns: "Cash ₹"
	Prefix, Suffix string // around an amount in running text: "₹ ", " g"
	Places         int32  // decimal places shown; an amount with more is shown with all that it has, never rounded
}

// Rupees and FineGrams are the two units of the ledgers, with the places of the contract (G21).
var (
	Rupees    = Unit{Heading: "Cash ₹", Prefix: "₹ ", Places: 2}
	FineGrams = Unit{Heading: "Fine g", Suffix: " g", Places: 3}
)

// Line is one entry of a row. Amounts has one amount a unit, in the order of Statement.Units; zero is left blank.
type Line struct {
	Text    string
	Amounts []decimal.Decimal
}

// Row is one row of the ledger with all its entries. Balance, one amount a unit, is that of the account after the row.
type Row struct {
	Date    time.Time // only the day counts
	ID      int64
	In, Out []Line
	Balance []decimal.Decimal
}

// Drawn says from which state of the log a statement was drawn, so that it can be drawn again and checked.
type Drawn struct {
	StoreID    string
	Position   uint64
	RecordedAt time.Time // of the event at Position; shown in its own location
	Checkpoint string    // signed (C2SP tlog-checkpoint), whole; empty while there is none
}

// Statement is what Write prints.
type Statement struct {
	Title            string    // the workshop
	Account          string    // whose ledger
	Ledger           string    // "Bank ledger"
	From, To         time.Time // first and last day, inclusive; zero is open
	Side             Side
	Units            []Unit            // one to four
	Opening, Closing []decimal.Decimal // one amount a unit, of the account (both sides) before and after Rows
	Rows             []Row             // in the order of the ledger, always with both sides
	Drawn            Drawn
	Notes            []string // under the period: "As of 31 Mar 2025", "As known at position 128445"
}

// ErrDoesNotAddUp says that a balance of the statement is not what its entries give.
var ErrDoesNotAddUp = errors.New("statement does not add up")

// maxDigits bounds an amount, before and after the point. The ledgers allow far fewer; beyond it a column is unreadable.
const maxDigits = 30

// Write draws s as a PDF on w. It reads s only, and nothing else: the same s gives the same bytes.
//
// It fails with ErrDoesNotAddUp when a balance differs from what the entries give, with another error when s is malformed
// (a number of amounts other than that of the units, an amount of more than 30 digits) or w fails. Before such an error of s nothing is written to w.
func Write(w io.Writer, s Statement) error {
	sums, err := s.check()
	if err != nil {
		return err
	}
	d := newDocument(s, sums)
	d.draw()
	if err := d.pdf.Output(w); err != nil {
		return fmt.Errorf("write statement of %d rows: %w", len(s.Rows), err)
	}
	return nil
}

// check recomputes the statement from its entries and gives the totals of both sides.
func (s *Statement) check() (running, error) {
	sums := running{}
	if len(s.Units) < 1 || len(s.Units) > 4 {
		return sums, fmt.Errorf("statement with %d units, not 1 to 4", len(s.Units))
	}
	if s.Side < Both || s.Side > Out {
		return sums, fmt.Errorf("statement of unknown side %d", s.Side)
	}
	if err := s.amounts("opening balance", s.Opening); err != nil {
		return sums, err
	}
	if err := s.amounts("closing balance", s.Closing); err != nil {
		return sums, err
	}
	sums = newRunning(s.Opening)
	for _, row := range s.Rows {
		for _, side := range []Side{In, Out} {
			for _, l := range row.of(side) {
				if err := s.amounts(fmt.Sprintf("entry of row %d", row.ID), l.Amounts); err != nil {
					return sums, err
				}
				sums.add(side, l.Amounts)
			}
		}
		if err := s.amounts(fmt.Sprintf("balance of row %d", row.ID), row.Balance); err != nil {
			return sums, err
		}
		if err := sums.same(fmt.Sprintf("row %d", row.ID), row.Balance); err != nil {
			return sums, err
		}
	}
	return sums, sums.same("closing balance", s.Closing)
}

func (s *Statement) amounts(what string, amounts []decimal.Decimal) error {
	if len(amounts) != len(s.Units) {
		return fmt.Errorf("%s has %d amounts for %d units", what, len(amounts), len(s.Units))
	}
	for _, a := range amounts {
		if a.Exponent() < -maxDigits || a.Exponent() > maxDigits || a.NumDigits() > maxDigits {
			return fmt.Errorf("%s has an amount of more than %d digits", what, maxDigits)
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

// running is the state of the sums at some line of the statement.
type running struct {
	in, out, balance []decimal.Decimal
}

func newRunning(opening []decimal.Decimal) running {
	return running{
		in:      make([]decimal.Decimal, len(opening)),
		out:     make([]decimal.Decimal, len(opening)),
		balance: append([]decimal.Decimal(nil), opening...),
	}
}

// add counts an entry: balance = IN - OUT, in every ledger and unit (CONTRACT.md 6.3).
func (r *running) add(side Side, amounts []decimal.Decimal) {
	for i, a := range amounts {
		switch {
		case a.IsZero():
		case side == In:
			r.in[i], r.balance[i] = r.in[i].Add(a), r.balance[i].Add(a)
		default:
			r.out[i], r.balance[i] = r.out[i].Add(a), r.balance[i].Sub(a)
		}
	}
}

func (r *running) same(what string, given []decimal.Decimal) error {
	for i := range given {
		if !given[i].Equal(r.balance[i]) {
			return fmt.Errorf("%w: %s says %s, its entries give %s", ErrDoesNotAddUp, what, given[i], r.balance[i])
		}
	}
	return nil
}
