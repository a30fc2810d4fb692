package ledgercmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"bahi/commands"
	"bahi/domain/fault"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/khata"
	"bahi/domain/unit"
)

// maxReversed is the maximum number of rows in one request. Each requires two events.
const maxReversed = 1000

// Reversal is a request to reverse rows.
type Reversal struct {
	Rows []int64
	Date *unit.Date // date of the new rows; nil: today, or the latest date of the reversed rows if that is later
}

// ReverseRows reverses rows of an account, all or none (see package book). If a row is already reversed, it returns a
// conflict that names the reversal.
func ReverseRows(ctx context.Context, req commands.Request, b *Books, l *book.Ledger, account int64, c Reversal) (Posted, error) {
	if err := b.checkReversal(req, c); err != nil {
		return Posted{}, b.AndLocked(ctx, req.Workspace, err, c.Date)
	}
	err := commands.InParallel(len(c.Rows), func(i int) error { // the decision finds them in the cache
		_, err := commands.Load(ctx, b.Commands.Cached(), l.Rows, id(c.Rows[i]))
		return err
	})
	if err != nil {
		return Posted{}, err
	}
	ifMatch := req.IfMatch
	req.IfMatch = nil // the revision is that of the reversed rows
	p, err := postTogether(ctx, req, b, l, len(c.Rows), func(ctx context.Context, tx *commands.Tx) ([]book.Row, error) {
		rows, pairs, err := b.reversing(ctx, tx, l, account, c.Rows, ifMatch)
		if err != nil {
			return nil, err
		}
		s, err := standingOf(ctx, tx, l, account, req.Workspace)
		if err != nil {
			return nil, err
		}
		added, err := book.ReverseRows{Date: c.Date, Today: b.Today(), Rows: rows, Reason: req.Reason}.Decide(s)
		if err != nil {
			return nil, missing(l, err)
		}
		posted := make([]khata.Row, len(added))
		for i, row := range added {
			posted[i] = khata.Row{Ledger: rows[i].Ledger, RowAdded: row}
		}
		first, err := b.post(ctx, tx, posted)
		if err != nil {
			return nil, err
		}
		for i, row := range rows {
			reverse := book.ReverseRow{Ledger: row.Ledger, Account: row.Account, By: first + int64(i)}
			if _, err := commands.Decide(ctx, tx, row.Ledger.Rows, id(row.ID), reverse); err != nil {
				return nil, &rowError{row.ID, err}
			}
		}
		now := evolved(added)
		for _, p := range pairs {
			both := make([]pairedRow, len(p))
			var sum book.Effect
			for side, i := range p {
				both[side].LedgerRow = book.LedgerRow{Ledger: rows[i].Ledger, ID: first + int64(i), Row: now[i]}
				sum = sum.Plus(rows[i].Ledger.Debit(now[i]))
			}
			if first == 0 || sum != (book.Effect{}) { // wastage is restored
				continue
			}
			if err := pair(ctx, tx, both); err != nil {
				return nil, err
			}
			now[p[0]] = both[0].Row
		}
		return now[:len(c.Rows)], nil
	})
	return p, ofRow(err, len(c.Rows) > 1)
}

// reversing returns the rows to reverse, followed by the other rows of their pairs, and the indexes of the rows of each
// pair.
func (b *Books) reversing(ctx context.Context, tx *commands.Tx, l *book.Ledger, account int64, ids []int64, ifMatch *int64) (
	rows []book.LedgerRow, pairs [][2]int, err error) {
	for _, row := range ids {
		found, err := commands.Load(ctx, tx, l.Rows, id(row))
		if err == nil && found.Workspace != tx.Workspace() {
			found.State = book.Row{}
		}
		if err == nil {
			_, err = book.ReverseRow{Ledger: l, Account: account}.Decide(found.State)
		}
		if err == nil && ifMatch != nil && *ifMatch != found.Revision {
			err = commands.ErrStale
		}
		if err != nil {
			return nil, nil, &rowError{row, err}
		}
		rows = append(rows, book.LedgerRow{Ledger: l, ID: row, Row: found.State})
	}
	for i := range ids {
		other, err := b.other(ctx, tx, rows[i].Row, tx.Workspace())
		if err != nil {
			return nil, nil, err
		}
		if other.ID != 0 {
			pairs = append(pairs, [2]int{i, len(rows)})
			rows = append(rows, other)
		}
	}
	if len(rows) > maxReversed {
		message := fmt.Sprintf("at most %d rows, including their paired rows", maxReversed)
		return nil, nil, fault.Wrong("rows", message)
	}
	return rows, pairs, nil
}

func (b *Books) checkReversal(req commands.Request, c Reversal) error {
	var wrong []fault.Field
	switch seen := make(map[int64]bool, len(c.Rows)); {
	case len(c.Rows) == 0:
		wrong = append(wrong, fault.Field{Field: "rows", Message: "at least one row is needed"})
	case len(c.Rows) > maxReversed:
		wrong = append(wrong, fault.Field{Field: "rows", Message: fmt.Sprintf("at most %d rows", maxReversed)})
	default:
		for i, row := range c.Rows {
			if seen[row] {
				wrong = append(wrong, fault.Field{Field: fmt.Sprintf("rows[%d]", i), Message: "is named twice"})
			}
			seen[row] = true
		}
	}
	if c.Date != nil && *c.Date > b.Today()+1 {
		wrong = append(wrong, fault.Field{Field: "date", Message: "must not be after tomorrow"})
	}
	return fault.Found(append(wrong, reasoned(req)...))
}

// reasoned returns the fault of a correction without a reason.
func reasoned(req commands.Request) []fault.Field {
	if strings.TrimSpace(req.Reason) != "" {
		return nil
	}
	return []fault.Field{{Field: "reason", Message: "is required, here or in the header Bahi-Reason"}}
}

// VoidRow voids a row of an account: it stays in the ledger and has no effect.
func VoidRow(ctx context.Context, req commands.Request, b *Books, l *book.Ledger, account, row int64) (commands.Outcome[book.Row], error) {
	if wrong := reasoned(req); wrong != nil {
		return commands.Outcome[book.Row]{Revision: -1}, fault.Fields(wrong...)
	}
	return ChangeRow(ctx, req, b, l, row, book.VoidRow{Ledger: l, Account: account})
}

// rowError is the error of one of several rows.
type rowError struct {
	row int64
	error
}

func (e *rowError) Unwrap() error { return e.error }

// ofRow returns the error, with the id of its row if there are several.
func ofRow(err error, several bool) error {
	one, isOne := errors.AsType[*rowError](err)
	if !isOne {
		return err
	}
	refused, isRefused := errors.AsType[*fault.Error](one.error)
	if !isRefused || !several {
		return one.error
	}
	named := *refused
	named.Detail = fmt.Sprintf("Row %d: %s", one.row, refused.Detail)
	return &named
}
