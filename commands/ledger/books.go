// Package ledger has what the five ledgers need beyond load, decide, append: the rules between an
// account, the lock of the books and a row, and rows posted in bulk.
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
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/bookslock"
	"bahi/domain/number"
	"bahi/domain/unit"
	"bahi/eventstore"
)

// Reads is what commands ask of the read side: questions whose answer only narrows what is decided,
// or says where to look.
type Reads interface {
	// EarliestRow is the date of the account's oldest row, nil when it has none, and the position of the log as of
	// which that is so.
	EarliestRow(ctx context.Context, workspace uuid.UUID, account int64) (*unit.Date, event.Position, error)
	// BulkOf is the id of the bulk that the row was posted in, 0 when there is none.
	BulkOf(ctx context.Context, workspace uuid.UUID, row int64) (int64, error)
	// UnfinishedBulks are those of the ledger whose rows' own streams are not all filled.
	UnfinishedBulks(ctx context.Context, ledger string) ([]int64, error)
}

// Books carries out the ledgers' commands.
type Books struct {
	Commands *commands.Handler
	Reads    Reads
	Today    func() unit.Date // in the workshop's own zone
	Log      *slog.Logger

	filling sync.WaitGroup
}

// Wait ends when what goes on after the answers is done.
func (b *Books) Wait() { b.filling.Wait() }

// Govern makes the rules between streams part of a ledger's kinds.
func Govern[L any, In, Out book.Entry](h *commands.Handler, l book.Ledger[L, In, Out]) {
	commands.Govern(h, l.Accounts, commands.Rule[book.Account[L]]{
		Refuses: func(ctx context.Context, from commands.Source, _ book.Account[L], r event.Recorded[event.Event[book.Account[L]]]) error {
			change, ok := r.Data.(book.AccountChange)
			if !ok || !change.AccountChange().Deleted {
				return nil
			}
			lock, err := commands.Load(ctx, from, bookslock.Kind, r.Meta.Workspace.String())
			if err != nil {
				return err
			}
			return book.Standing{
				AccountOpen: true, LockedThrough: lock.State.Through(r.Position), LockMoved: lock.State.MovedAt(r.Position),
			}.RefusesDeletion(change.AccountChange())
		},
		Refusal: func(at event.Position, why string) event.Event[book.Account[L]] {
			return book.AccountDeletionRefused[L]{Position: at, Why: why}
		},
	})
	commands.Govern(h, l.Rows, commands.Rule[book.Row[In, Out]]{
		Refuses: func(ctx context.Context, from commands.Source, before book.Row[In, Out], r event.Recorded[event.Event[book.Row[In, Out]]]) error {
			if change, ok := r.Data.(book.RowChange); ok {
				switch change.RowChange().Op {
				case book.Edit, book.Delete, book.Void:
					if err := before.Settled(); err != nil {
						return err
					}
				case book.Announce, book.Drop, book.Reverse, book.Refuse:
					return nil // of itself it changes nothing of what the books say
				case book.Add:
				}
			}
			after := r.Data.Evolve(before)
			return refuses(ctx, from, l, after.Account, r.Meta, at(r), book.Dates(before, after)...)
		},
		Refusal: func(at event.Position, why string) event.Event[book.Row[In, Out]] {
			return book.RowRefused[In, Out]{Position: at, Why: why}
		},
	})
	commands.Govern(h, l.Bulks, commands.Rule[book.Bulk[In, Out]]{
		Refuses: func(ctx context.Context, from commands.Source, before book.Bulk[In, Out], r event.Recorded[event.Event[book.Bulk[In, Out]]]) error {
			after := l.Bulks.Evolve(before, r)
			if after.Posted == before.Posted {
				return nil // it posts nothing
			}
			if err := refuses(ctx, from, l, after.Account, r.Meta, at(r), after.Dates()...); err != nil {
				return err
			}
			return notHeld(ctx, from, l, after, r.StreamID(), r.Position)
		},
		Refusal: func(at event.Position, why string) event.Event[book.Bulk[In, Out]] {
			return book.RowsRefused[In, Out]{Position: at, Why: why}
		},
	})
}

// at is the position that an event is judged at: its own, or that of the decisive event that it only
// carries out.
func at[E any](r event.Recorded[E]) event.Position {
	if r.Meta.Of != 0 {
		return r.Meta.Of
	}
	return r.Position
}

func refuses[L any, In, Out book.Entry](
	ctx context.Context, from commands.Source, l book.Ledger[L, In, Out], account int64, meta event.Meta, at event.Position, dates ...unit.Date,
) error {
	a, err := commands.Load(ctx, from, l.Accounts, id(account))
	if err != nil {
		return err
	}
	through, err := lockedThrough(ctx, from, meta.Workspace, at)
	if err != nil {
		return err
	}
	err = book.Standing{
		AccountOpen: a.State.Open(at) && a.Workspace == meta.Workspace, LockedThrough: through,
	}.Refuses(dates...)
	if errors.Is(err, book.ErrNoAccount) {
		return l.NoAccount
	}
	return err
}

func lockedThrough(ctx context.Context, from commands.Source, workspace uuid.UUID, at event.Position) (*unit.Date, error) {
	lock, err := commands.Load(ctx, from, bookslock.Kind, workspace.String())
	return lock.State.Through(at), err
}

func id(number int64) string { return strconv.FormatInt(number, 10) }

func (b *Books) number(series string, count int64) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		n, err := b.Commands.Numbers(ctx, series, count)
		return id(n), err
	}
}

// OpenAccount opens an account.
func OpenAccount[L any, In, Out book.Entry](ctx context.Context, req commands.Request, b *Books, l book.Ledger[L, In, Out], c book.OpenAccount[L]) (commands.Outcome[book.Account[L]], error) {
	return commands.Create(ctx, b.Commands, req, l.Accounts, b.number(number.Accounts, 1), c)
}

// RenameAccount gives an account another name.
func RenameAccount[L any, In, Out book.Entry](ctx context.Context, req commands.Request, b *Books, l book.Ledger[L, In, Out], account int64, c book.RenameAccount[L]) (commands.Outcome[book.Account[L]], error) {
	c.Missing = l.NoAccount
	return commands.Handle(ctx, b.Commands, req, l.Accounts, id(account), c)
}

// DeleteAccount ends an account and its rows. It answers a conflict while one of them is locked.
func DeleteAccount[L any, In, Out book.Entry](ctx context.Context, req commands.Request, b *Books, l book.Ledger[L, In, Out], account int64) (commands.Outcome[book.Account[L]], error) {
	earliest, asOf, err := b.Reads.EarliestRow(ctx, req.Workspace, account)
	if err != nil {
		return commands.Outcome[book.Account[L]]{}, fmt.Errorf("find the oldest row of account %d: %w", account, err)
	}
	return commands.Handle(ctx, b.Commands, req, l.Accounts, id(account), book.DeleteAccount[L]{EarliestRow: earliest, RowsAsOf: asOf, Missing: l.NoAccount})
}

// AddRow posts a row to an account.
func AddRow[L any, In, Out book.Entry](ctx context.Context, req commands.Request, b *Books, l book.Ledger[L, In, Out], account int64, c book.AddRow[In, Out]) (commands.Outcome[book.Row[In, Out]], error) {
	c.Account, c.Today = account, b.Today()
	return commands.Create(ctx, b.Commands, req, l.Rows, b.number(number.Rows, 1), c)
}

// EditRow changes a row of an account.
func EditRow[L any, In, Out book.Entry](ctx context.Context, req commands.Request, b *Books, l book.Ledger[L, In, Out], account, row int64, c book.EditRow[In, Out]) (commands.Outcome[book.Row[In, Out]], error) {
	c.Account, c.Today, c.Missing = account, b.Today(), l.NoRow
	return handleRow(ctx, req, b, l, row, c)
}

// DeleteRow ends a row of an account.
func DeleteRow[L any, In, Out book.Entry](ctx context.Context, req commands.Request, b *Books, l book.Ledger[L, In, Out], account, row int64) (commands.Outcome[book.Row[In, Out]], error) {
	return handleRow(ctx, req, b, l, row, book.DeleteRow[In, Out]{Account: account, Missing: l.NoRow})
}

// handleRow handles a command on a row, whose own stream may still lack what its bulk has decided.
func handleRow[L any, In, Out book.Entry](ctx context.Context, req commands.Request, b *Books, l book.Ledger[L, In, Out], row int64, c event.Command[book.Row[In, Out]]) (commands.Outcome[book.Row[In, Out]], error) {
	out, err := commands.Handle(ctx, b.Commands, req, l.Rows, id(row), c)
	if err == nil && !out.Changed { // so that no rule was asked, and the row may have gone with its account
		a, loadErr := commands.Load(ctx, b.Commands.Fresh(), l.Accounts, id(out.State.Account))
		if loadErr == nil && !a.State.Open(eventstore.End) {
			return out, l.NoRow
		}
		return out, loadErr
	}
	if errors.Is(err, book.ErrReversing) {
		if err := settle(ctx, req, b, l, row, out.State.Reversal); err != nil {
			return out, err
		}
		return commands.Handle(ctx, b.Commands, req, l.Rows, id(row), c)
	}
	if !errors.Is(err, l.NoRow) || out.Revision >= 0 {
		return out, err
	}
	bulk, readErr := b.Reads.BulkOf(ctx, req.Workspace, row)
	if readErr != nil {
		return out, fmt.Errorf("find the bulk of row %d: %w", row, readErr)
	}
	if bulk == 0 {
		return out, err
	}
	if err := resume(ctx, b, l, bulk); err != nil {
		return out, err
	}
	return commands.Handle(ctx, b.Commands, req, l.Rows, id(row), c)
}

// SetLock puts the lock of a workspace's books.
func (b *Books) SetLock(ctx context.Context, req commands.Request, c bookslock.Set) (commands.Outcome[bookslock.State], error) {
	c.Reason, c.Today = req.Reason, b.Today()
	return commands.Handle(ctx, b.Commands, req, bookslock.Kind, req.Workspace.String(), c)
}
