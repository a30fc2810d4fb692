// Package ledgercmd has those ledger commands that require more than load, decide, append: rules between an account, the lock of the books
// and a row, bulk posts, and cascading deletions.
package ledgercmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/bookslock"
	"bahi/domain/ledger/khata"
	"bahi/domain/ledger/period"
	"bahi/domain/number"
	"bahi/domain/unit"
)

// Reads are the queries of commands. A stale result only limits the records that a command finds.
type Reads interface {
	// EarliestRow returns the date of the account's oldest row, or nil. The result includes all rows that were in the log before the call.
	EarliestRow(ctx context.Context, workspace uuid.UUID, account int64) (*unit.Date, error)

	orderReads
	draftReads
}

// Books handles the commands of the ledgers.
type Books struct {
	Commands *commands.Handler
	Reads    Reads
	Today    func() unit.Date // in the workshop's time zone
	Log      *slog.Logger
	Reader   orderReader // nil: orders are read by rules
}

// standingOf loads the data that the rules for an account's rows require.
func standingOf(ctx context.Context, tx *commands.Tx, l *book.Ledger, account int64, workspace uuid.UUID) (s book.PostingContext,
	err error) {
	if s.AccountOpen, err = isOpen(ctx, tx, l, account, workspace); err != nil {
		return s, err
	}
	lock, err := commands.Load(ctx, tx, bookslock.Kind, workspace.String())
	s.LockedThrough = lock.State.Through
	return s, err
}

// AndLocked returns listed faults with that of the first locked date, and other errors alone.
func (b *Books) AndLocked(ctx context.Context, workspace uuid.UUID, err error, dates ...*unit.Date) error {
	lock, unread := commands.Load(ctx, b.Commands.Cached(), bookslock.Kind, workspace.String())
	for _, date := range dates {
		if locked := (book.PostingContext{AccountOpen: true, LockedThrough: lock.State.Through}); unread == nil && date != nil {
			err = fault.Besides(err, locked.CheckDates(*date))
		}
	}
	return err
}

// missing replaces an unknown account's error with that of the ledger.
func missing(l *book.Ledger, err error) error {
	if errors.Is(err, book.ErrNoAccount) {
		return l.NoAccount
	}
	return err
}

func id(number int64) string { return strconv.FormatInt(number, 10) }

// OpenAccount opens an account.
func OpenAccount(ctx context.Context, req commands.Request, b *Books, l *book.Ledger, c book.OpenAccount) (commands.Outcome[book.Account],
	error) {
	c.Ledger = l
	return commands.Create(ctx, b.Commands, req, l.Accounts, b.Commands.IDFromSeries(number.Accounts, 1), c)
}

// ChangeAccount changes an account's name, type or metal.
func ChangeAccount(ctx context.Context, req commands.Request, b *Books, l *book.Ledger, account int64,
	c book.ChangeAccount) (commands.Outcome[book.Account], error) {
	c.Ledger = l
	return commands.Handle(ctx, b.Commands, req, l.Accounts, id(account), c)
}

// DeleteAccount deletes an account and its rows; for a client, its orders and takadas too. It returns a conflict if one
// of the rows is locked.
func DeleteAccount(ctx context.Context, req commands.Request, b *Books, l *book.Ledger, account int64) (commands.Outcome[book.Account],
	error) {
	return commands.Do(ctx, b.Commands, req, l.Accounts, func(ctx context.Context, tx *commands.Tx) error {
		c := book.DeleteAccount{Ledger: l}
		var err error
		if c.Standing, err = standingOf(ctx, tx, l, account, req.Workspace); err != nil {
			return err
		}
		// The tables have all rows that were posted before the lock was read. Later rows are checked against the lock.
		if c.EarliestRow, err = b.Reads.EarliestRow(ctx, req.Workspace, account); err != nil {
			return fmt.Errorf("find the oldest row of account %d: %w", account, err)
		}
		_, err = commands.Decide(ctx, tx, l.Accounts, id(account), c)
		return err
	})
}

// AddRow posts a row to an account.
func AddRow(ctx context.Context, req commands.Request, b *Books, l *book.Ledger, account int64,
	asked book.RowInput) (commands.Outcome[book.Row], error) {
	c := book.AddRow{Ledger: l, Account: account, Today: b.Today(), RowInput: asked}
	return commands.Do(ctx, b.Commands, req, l.Rows, func(ctx context.Context, tx *commands.Tx) error {
		row, wrong := c.Row()
		s, err := standingOf(ctx, tx, l, account, req.Workspace)
		if err != nil {
			return err
		}
		locked := s.CheckDates(row.Date)
		if wrong != nil {
			return fault.Besides(wrong, locked)
		}
		if locked != nil {
			return missing(l, locked)
		}
		_, err = b.post(ctx, tx, []khata.Row{{Ledger: l, RowAdded: row}})
		return err
	})
}

// post posts checked rows with new ids. It returns the first id, 0 in a dry run.
func (b *Books) post(ctx context.Context, tx *commands.Tx, rows []khata.Row) (first int64, err error) {
	if tx.DryRun() {
		_, err = commands.DecideNew(ctx, tx, rows[0].Rows, nil,
			func(string) event.Command[book.Row] { return book.Post{RowAdded: rows[0].RowAdded} })
		return 0, err
	}
	first, err = b.numbers(ctx, tx, number.Rows, len(rows))
	for i, row := range rows {
		if err != nil {
			return 0, err
		}
		number := id(first + int64(i))
		commands.NewRecord(tx, row.Rows, number)
		_, err = commands.Decide(ctx, tx, row.Rows, number, book.Post{RowAdded: row.RowAdded})
	}
	return first, err
}

// ChangeRow handles a command on a row, such as [book.EditRow].
func ChangeRow(ctx context.Context, req commands.Request, b *Books, l *book.Ledger, row int64,
	c event.Command[book.Row]) (commands.Outcome[book.Row], error) {
	out, err := commands.Do(ctx, b.Commands, req, l.Rows, func(ctx context.Context, tx *commands.Tx) error {
		before, err := commands.Load(ctx, tx, l.Rows, id(row))
		if err != nil {
			return err
		}
		after, err := commands.Decide(ctx, tx, l.Rows, id(row), c)
		if edit, ok := c.(book.EditRow); ok && err != nil {
			return b.AndLocked(ctx, req.Workspace, err, &before.State.Date, edit.Date)
		}
		if err != nil {
			return err
		}
		s, err := standingOf(ctx, tx, l, after.State.Account, req.Workspace)
		if err == nil && !s.AccountOpen && after.Revision == before.Revision {
			err = l.NoRow
		}
		if err != nil {
			return err
		}
		if err := s.RefusesStep(before.State, after.State); err != nil {
			return missing(l, err)
		}
		return b.follow(ctx, tx, before.State, after.State, req.Workspace)
	})
	return out, ofRow(err, true)
}

// SetLock sets the lock of a workspace's books.
func (b *Books) SetLock(ctx context.Context, req commands.Request, c bookslock.Set) (commands.Outcome[bookslock.State], error) {
	c.Reason, c.Today = req.Reason, b.Today()
	return commands.Do(ctx, b.Commands, req, bookslock.Kind, func(ctx context.Context, tx *commands.Tx) error {
		closed, err := commands.Load(ctx, tx, period.Kind, req.Workspace.String())
		if err != nil {
			return err
		}
		c.Closed = closed.State.Through()
		_, err = commands.Decide(ctx, tx, bookslock.Kind, req.Workspace.String(), c)
		return err
	})
}
