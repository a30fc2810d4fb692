// Package ledger has what the five ledgers, orders and takadas need beyond load, decide, append: the rules between an
// account, the lock of the books and a row, rows posted in bulk, and what is deleted with another record.
package ledger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/domain/event"
	ledgers "bahi/domain/ledger"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/bookslock"
	"bahi/domain/ledger/client"
	"bahi/domain/number"
	"bahi/domain/unit"
	"bahi/eventstore"
)

// Reads is what commands ask of the read side. An answer that is late only narrows what a command decides, or where it
// looks.
type Reads interface {
	// EarliestRow is the date of the account's oldest row, nil when it has none, and the position of the log as of
	// which that is so.
	EarliestRow(ctx context.Context, workspace uuid.UUID, account int64) (*unit.Date, event.Position, error)
	// BulkOf is the id of the bulk that the row was posted in, and the number of the khata that posted it; 0 where there is none.
	BulkOf(ctx context.Context, workspace uuid.UUID, row int64) (bulk, khata int64, err error)
	// UnfinishedBulks are those of the ledger whose rows' own streams are not all filled.
	UnfinishedBulks(ctx context.Context, ledger string) ([]int64, error)
	// UnfinishedKhatas are those whose rows' own streams are not all filled.
	UnfinishedKhatas(ctx context.Context) ([]int64, error)

	OrderReads
	DraftReads
}

// Books carries out the ledgers' commands.
type Books struct {
	Commands *commands.Handler
	Reads    Reads
	Today    func() unit.Date // in the workshop's own zone
	Log      *slog.Logger
	Reader   OrderReader // nil: rules read messages

	filling sync.WaitGroup
}

// Wait returns when the work that follows answered requests is done.
func (b *Books) Wait() { b.filling.Wait() }

// AddRules adds the rules between streams to the kinds of all ledgers, of orders, takadas and order drafts.
func AddRules(h *commands.Handler) {
	for _, l := range ledgers.All {
		addRules(h, l)
	}
	addOrderRule(h)
	addTakadaRule(h)
	addDraftRule(h)
}

func addRules(h *commands.Handler, l *book.Ledger) {
	commands.Govern(h, l.Accounts, func(ctx context.Context, from commands.Source, _ book.Account, r event.Recorded[event.Event[book.Account]]) error {
		deleted, ok := r.Data.(book.AccountDeleted)
		if !ok {
			return nil
		}
		lock, err := commands.Load(ctx, from, bookslock.Kind, r.Meta.Workspace.String())
		if err != nil {
			return err
		}
		return book.Standing{
			AccountOpen: true, LockedThrough: lock.State.Through(r.Position), LockMoved: lock.State.MovedAt(r.Position),
		}.RefusesDeletion(deleted)
	})
	commands.Govern(h, l.Rows, func(ctx context.Context, from commands.Source, before book.Row, r event.Recorded[event.Event[book.Row]]) error {
		after := l.Rows.Evolve(before, r)
		return missing(l, book.RefusesStep(before, after, func() (book.Standing, error) {
			return standingOf(ctx, from, l, after.Account, r.Meta, at(r))
		}))
	})
	commands.Govern(h, l.Bulks, func(ctx context.Context, from commands.Source, before book.Bulk, r event.Recorded[event.Event[book.Bulk]]) error {
		after := l.Bulks.Evolve(before, r)
		if after.Posted == before.Posted {
			return nil // it posts nothing
		}
		s, err := standingOf(ctx, from, l, after.Account, r.Meta, at(r))
		if err == nil {
			err = missing(l, after.RefusedBy(s))
		}
		if err != nil || r.Position == eventstore.End { // before the append, it is the writer that reserves the rows
			return err
		}
		first, err := strconv.ParseInt(r.StreamID(), 10, 64)
		if err != nil {
			return book.ErrNotReserved
		}
		return after.NotReserved(first, r.Position, func(row int64) (book.Row, error) {
			found, err := commands.Load(ctx, from, l.Rows, id(row))
			return found.State, err
		})
	})
}

// missing names the ledger's kind of account in a refusal.
func missing(l *book.Ledger, err error) error {
	if errors.Is(err, book.ErrNoAccount) {
		return l.NoAccount
	}
	return err
}

// at returns the position at which the rules judge an event: its own, or that of the decisive event that it carries out.
func at[E any](r event.Recorded[E]) event.Position {
	if r.Meta.Of != 0 {
		return r.Meta.Of
	}
	return r.Position
}

// standingOf returns what the rules look at, as of a position.
func standingOf(ctx context.Context, from commands.Source, l *book.Ledger, account int64, meta event.Meta, at event.Position) (book.Standing, error) {
	open, err := isOpen(ctx, from, l, account, meta.Workspace, at)
	if err != nil {
		return book.Standing{}, err
	}
	lock, err := commands.Load(ctx, from, bookslock.Kind, meta.Workspace.String())
	return book.Standing{AccountOpen: open, LockedThrough: lock.State.Through(at)}, err
}

func id(number int64) string { return strconv.FormatInt(number, 10) }

// OpenAccount opens an account.
func OpenAccount(ctx context.Context, req commands.Request, b *Books, l *book.Ledger, c book.OpenAccount) (commands.Outcome[book.Account], error) {
	c.Ledger = l
	return commands.Create(ctx, b.Commands, req, l.Accounts, b.Commands.Numbered(number.Accounts, 1), c)
}

// ChangeAccount gives an account another name or type.
func ChangeAccount(ctx context.Context, req commands.Request, b *Books, l *book.Ledger, account int64, c book.ChangeAccount) (commands.Outcome[book.Account], error) {
	c.Ledger = l
	return commands.Handle(ctx, b.Commands, req, l.Accounts, id(account), c)
}

// DeleteAccount ends an account and its rows, and a client's orders and takadas. It returns a conflict while one of the rows is locked.
func DeleteAccount(ctx context.Context, req commands.Request, b *Books, l *book.Ledger, account int64) (commands.Outcome[book.Account], error) {
	earliest, asOf, err := b.Reads.EarliestRow(ctx, req.Workspace, account)
	if err != nil {
		return commands.Outcome[book.Account]{}, fmt.Errorf("find the oldest row of account %d: %w", account, err)
	}
	out, err := commands.Handle(ctx, b.Commands, req, l.Accounts, id(account), book.DeleteAccount{Ledger: l, EarliestRow: earliest, RowsAsOf: asOf})
	if err == nil && out.Changed && !req.DryRun && l == client.Ledger {
		b.closeAfterwards(ctx)
	}
	return out, err
}

// AddRow posts a row to an account.
func AddRow(ctx context.Context, req commands.Request, b *Books, l *book.Ledger, account int64, asked book.Asked) (commands.Outcome[book.Row], error) {
	return commands.Create(ctx, b.Commands, req, l.Rows, b.Commands.Numbered(number.Rows, 1), book.AddRow{Ledger: l, Account: account, Today: b.Today(), Asked: asked})
}

// EditRow changes a row of an account.
func EditRow(ctx context.Context, req commands.Request, b *Books, l *book.Ledger, account, row int64, asked book.Asked) (commands.Outcome[book.Row], error) {
	return handleRow(ctx, req, b, l, row, book.EditRow{Ledger: l, Account: account, Today: b.Today(), Asked: asked})
}

// DeleteRow ends a row of an account; of any account where that is 0.
func DeleteRow(ctx context.Context, req commands.Request, b *Books, l *book.Ledger, account, row int64) (commands.Outcome[book.Row], error) {
	return handleRow(ctx, req, b, l, row, book.DeleteRow{Ledger: l, Account: account})
}

// EmptySide removes the entries of a row's OUT side, or of its IN side.
func EmptySide(ctx context.Context, req commands.Request, b *Books, l *book.Ledger, row int64, out bool) (commands.Outcome[book.Row], error) {
	return handleRow(ctx, req, b, l, row, book.EmptySide{Ledger: l, Out: out})
}

// handleRow handles a command on a row. The row's stream may still lack what its bulk has decided.
func handleRow(ctx context.Context, req commands.Request, b *Books, l *book.Ledger, row int64, c event.Command[book.Row]) (commands.Outcome[book.Row], error) {
	out, err := commands.Handle(ctx, b.Commands, req, l.Rows, id(row), c)
	if err == nil && !out.Changed { // no rule was asked, and the account may be deleted
		a, loadErr := commands.Load(ctx, b.Commands.Fresh(), l.Accounts, id(out.State.Account))
		if loadErr == nil && !a.State.Open(eventstore.End) {
			return out, l.NoRow
		}
		return out, loadErr
	}
	if errors.Is(err, book.ErrReversing) {
		if err := finish(ctx, req, b, l, row, out.State.Reserved); err != nil {
			return out, err
		}
		return commands.Handle(ctx, b.Commands, req, l.Rows, id(row), c)
	}
	if !errors.Is(err, l.NoRow) || out.Revision >= 0 {
		return out, err
	}
	bulk, page, readErr := b.Reads.BulkOf(ctx, req.Workspace, row)
	if readErr != nil {
		return out, fmt.Errorf("find the bulk of row %d: %w", row, readErr)
	}
	if bulk == 0 {
		return out, err
	}
	if page != 0 {
		readErr = resumeKhata(ctx, b, page)
	} else {
		readErr = resume(ctx, b, l, bulk)
	}
	if readErr != nil {
		return out, readErr
	}
	return commands.Handle(ctx, b.Commands, req, l.Rows, id(row), c)
}

// SetLock puts the lock of a workspace's books.
func (b *Books) SetLock(ctx context.Context, req commands.Request, c bookslock.Set) (commands.Outcome[bookslock.State], error) {
	c.Reason, c.Today = req.Reason, b.Today()
	return commands.Handle(ctx, b.Commands, req, bookslock.Kind, req.Workspace.String(), c)
}
