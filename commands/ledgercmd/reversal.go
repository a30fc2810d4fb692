package ledgercmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"bahi/commands"
	"bahi/domain/fault"
	"bahi/domain/ledger/book"
	"bahi/domain/unit"
)

// maxReversed is how many rows one request may reverse. Each takes two events.
const maxReversed = 1000

// Reversal asks to reverse rows.
type Reversal struct {
	Rows []int64
	Date *unit.Date // of the new rows; nil: today, or the latest of the rows' own dates
}

// ReverseRows reverses rows of an account by new ones that mirror them, all or none (see package book). It returns the domain's refusal: a
// conflict that names the reversal where a row is reversed already.
func ReverseRows(ctx context.Context, req commands.Request, b *Books, l *book.Ledger, account int64, c Reversal) (Posted, error) {
	if err := checkReversal(req, c); err != nil {
		return Posted{}, err
	}
	err := commands.InParallel(len(c.Rows), func(i int) error { // the decision finds them in the cache
		_, err := commands.Load(ctx, b.Commands.Cached(), l.Rows, id(c.Rows[i]))
		return err
	})
	if err != nil {
		return Posted{}, err
	}
	ifMatch := req.IfMatch
	req.IfMatch = nil // it is about the rows that are reversed
	p, err := postTogether(ctx, req, b, l, len(c.Rows), func(ctx context.Context, tx *commands.Tx) ([]book.RowAdded, error) {
		d := book.ReverseRows{Ledger: l, Account: account, Date: c.Date, Today: b.Today(), IDs: c.Rows, Rows: make([]book.Row, len(c.Rows))}
		for i, row := range c.Rows {
			found, err := commands.Load(ctx, tx, l.Rows, id(row))
			if err == nil && found.Workspace != req.Workspace {
				found.State = book.Row{}
			}
			if err == nil {
				_, err = book.ReverseRow{Ledger: l, Account: account}.Decide(found.State)
			}
			if err == nil && ifMatch != nil && *ifMatch != found.Revision {
				err = commands.ErrStale
			}
			if err != nil {
				return nil, &rowError{row, err}
			}
			d.Rows[i] = found.State
		}
		s, err := standingOf(ctx, tx, l, account, req.Workspace)
		if err != nil {
			return nil, err
		}
		added, err := d.Decide(s)
		if err != nil {
			return nil, missing(l, err)
		}
		first, err := b.post(ctx, tx, rowsOf(l, added))
		for i, row := range c.Rows {
			if err == nil {
				_, err = commands.Decide(ctx, tx, l.Rows, id(row), book.ReverseRow{Ledger: l, Account: account, By: first + int64(i)})
			}
		}
		return added, err
	})
	return p, ofRow(err, len(c.Rows) > 1)
}

func checkReversal(req commands.Request, c Reversal) error {
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
	if wrong = append(wrong, reasoned(req)...); len(wrong) > 0 {
		return fault.Fields(wrong...)
	}
	return nil
}

// reasoned returns what is wrong with a correction that has no reason.
func reasoned(req commands.Request) []fault.Field {
	if strings.TrimSpace(req.Reason) != "" {
		return nil
	}
	return []fault.Field{{Field: "reason", Message: "is required, here or in the header Bahi-Reason"}}
}

// VoidRow makes a row of an account void: it keeps its place and counts nothing.
func VoidRow(ctx context.Context, req commands.Request, b *Books, l *book.Ledger, account, row int64) (commands.Outcome[book.Row], error) {
	if wrong := reasoned(req); wrong != nil {
		return commands.Outcome[book.Row]{Revision: -1}, fault.Fields(wrong...)
	}
	return handleRow(ctx, req, b, l, row, book.VoidRow{Ledger: l, Account: account})
}

// rowError is the error of one of several rows.
type rowError struct {
	row int64
	error
}

func (e *rowError) Unwrap() error { return e.error }

// ofRow returns the error, with the row that it is about if there are several.
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
