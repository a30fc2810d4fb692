package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"bahi/commands"
	"bahi/domain/fault"
	"bahi/domain/ledger/book"
	"bahi/domain/number"
	"bahi/domain/unit"
)

const (
	// maxReversed is how many rows one request may reverse. Each takes an event in its own stream.
	maxReversed = 1000

	// maxAtOnce is how many rows are reserved at once. The log commits them together.
	maxAtOnce = 32

	// maxOvertaken is how often a reversal is tried again after another change has overtaken it.
	maxOvertaken = 8
)

// Reversal asks to reverse rows.
type Reversal struct {
	Rows []int64
	Date *unit.Date // of the new rows; nil: today, or the latest of the rows' own dates
}

// ReverseRows reverses rows of an account by new ones that mirror them, all or none (see package book).
// Like [PostRows] it returns as soon as the decisive event is in the log. It returns the domain's refusal:
// a conflict that names the reversal where a row is reversed already.
func ReverseRows(ctx context.Context, req commands.Request, b *Books, l *book.Ledger, account int64, c Reversal) (commands.Outcome[book.Bulk], error) {
	none := commands.Outcome[book.Bulk]{Revision: -1}
	if err := checkReversal(req, c); err != nil {
		return none, err
	}
	if out, done, err := commands.Earlier(ctx, b.Commands, req, l.Bulks); done || err != nil {
		return out, err
	}
	for tries := 1; ; tries++ {
		out, err := reverse(ctx, req, b, l, account, c)
		overtaken := errors.Is(err, book.ErrOvertaken) || errors.Is(err, book.ErrNotReserved) || errors.Is(err, book.ErrReversing)
		if _, refused := errors.AsType[*fault.Error](err); refused {
			// Another process may have carried out this very request.
			if out, done, err := commands.Earlier(ctx, b.Commands, req, l.Bulks); done || err != nil {
				return out, err
			}
		}
		if !overtaken || req.DryRun {
			return out, ofRow(err, len(c.Rows) > 1)
		}
		if tries == maxOvertaken {
			return none, commands.ErrBusy
		}
		select {
		case <-time.After(time.Duration(tries) * decideWithin / maxOvertaken): // the other request ends meanwhile
		case <-ctx.Done():
			return none, ctx.Err()
		}
	}
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

// reverse tries once: it reads the rows, reserves them, and decides.
func reverse(ctx context.Context, req commands.Request, b *Books, l *book.Ledger, account int64, c Reversal) (commands.Outcome[book.Bulk], error) {
	none := commands.Outcome[book.Bulk]{Revision: -1}
	if err := finishAll(ctx, req, b, l, c.Rows); err != nil {
		return none, err
	}
	reserve := book.ReserveRow{Ledger: l, Account: account}

	// A refusal uses up no number.
	reserving := req
	reserving.Key = ""
	look := reserving
	look.DryRun = true
	rows, err := reserveEach(ctx, look, b, l, c.Rows, reserve)
	if err != nil {
		return none, err
	}
	plan, err := mirrored(b, l, account, c, rows)
	if err != nil {
		return none, err
	}
	out, err := commands.Create(ctx, b.Commands, unmatched(look), l.Bulks, nil, plan)
	if err != nil || req.DryRun {
		return out, err
	}

	first, err := b.Commands.Numbers(ctx, number.Rows, int64(len(c.Rows)))
	if err != nil {
		return none, err
	}
	reserve.Bulk = first
	rows, err = reserveEach(ctx, reserving, b, l, c.Rows, reserve)
	if err == nil {
		plan, err = mirrored(b, l, account, c, rows)
	}
	if err == nil {
		numbered := func(context.Context) (string, error) { return id(first), nil }
		out, err = commands.Create(ctx, b.Commands, unmatched(req), l.Bulks, numbered, plan)
	}
	if err != nil {
		giveUp(ctx, req, b, l, c.Rows, first)
		return out, err
	}
	fillAfterwards(ctx, b, l, out)
	return out, nil
}

// unmatched returns the request without If-Match, which is about the row and not about the bulk's stream.
func unmatched(req commands.Request) commands.Request {
	req.IfMatch = nil
	return req
}

// mirrored returns the command that reverses rows as they are.
func mirrored(b *Books, l *book.Ledger, account int64, c Reversal, rows []book.Row) (book.ReverseRows, error) {
	d := book.ReverseRows{Account: account, Today: b.Today(), Latest: rows[0].Date, Rows: make([]book.ReversalRow, len(rows))}
	for i, row := range rows {
		in, out, err := l.Mirror(row.In, row.Out)
		if err != nil {
			return d, fmt.Errorf("mirror row %d: %w", c.Rows[i], err)
		}
		d.Rows[i] = book.ReversalRow{Reverses: c.Rows[i], In: in, Out: out}
		d.Latest = max(d.Latest, row.Date)
	}
	d.Date = max(d.Today, d.Latest)
	if c.Date != nil {
		d.Date = *c.Date
	}
	return d, nil
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

// reserveEach reserves each row, and returns the reserved rows.
func reserveEach(ctx context.Context, req commands.Request, b *Books, l *book.Ledger, rows []int64, c book.ReserveRow) ([]book.Row, error) {
	states := make([]book.Row, len(rows))
	err := manyAtOnce(rows, func(i int, row int64) error {
		out, err := handleRow(ctx, req, b, l, row, c)
		states[i] = out.State
		return err
	})
	return states, err
}

// manyAtOnce does something to each row, and returns the error of the first row that has one.
func manyAtOnce(rows []int64, do func(i int, row int64) error) error {
	var (
		all  sync.WaitGroup
		free = make(chan struct{}, maxAtOnce)
		errs = make([]error, len(rows))
	)
	for i, row := range rows {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			errs[i] = do(i, row)
		})
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			return &rowError{rows[i], err}
		}
	}
	return nil
}
