package ledgercmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/ledger/bookslock"
	"bahi/domain/ledger/closing"
	"bahi/domain/ledger/khata"
	"bahi/domain/ledger/period"
	"bahi/domain/unit"
)

// periodReads are the queries for closing a period. A result includes all events that were in the log before the call.
type periodReads interface {
	// Closing returns the closing balances of all accounts, and the position at which they were read.
	Closing(ctx context.Context, workspace uuid.UUID, day unit.Date) ([]closing.Balance, event.Position, error)
	// WaitingDrafts returns at most limit drafts dated on or before a day. It includes drafts without a date that were
	// created before end.
	WaitingDrafts(ctx context.Context, workspace uuid.UUID, day unit.Date, end time.Time, limit int) ([]int64, error)
	WaitingKhatas(ctx context.Context, workspace uuid.UUID) ([]khata.Waiting, error)
}

// Periods closes periods of the books.
type Periods struct {
	Books  *Books
	Khatas *Khatas
	Reads  periodReads
	Zone   *time.Location // time zone of the workshop

	// Parked returns the names of the parked projections.
	Parked func(context.Context) ([]string, error)
	// Root returns the number of events up to a position, and the root of the Merkle tree over them.
	Root func(context.Context, event.Position) (size uint64, root string, err error)
}

// maxOpen is the maximum number of drafts and of uploads in an error.
const maxOpen = 100

// errUnlocked reports that the period to close is not locked.
var errUnlocked = errors.New("the period is not locked")

// Close closes the period that ends on a day. It locks the books before it reads the balances, so that no row of the period can change. If
// the process stops in between, the books stay locked, and a retry closes the period.
func (p *Periods) Close(ctx context.Context, req commands.Request, through unit.Date) (commands.Outcome[period.State], error) {
	if out, done, err := commands.PreviousOutcome(ctx, p.Books.Commands, req, period.Kind); done || err != nil {
		return out, err
	}
	trial := req
	trial.DryRun = true
	out, err := p.seal(ctx, trial, through)
	if err != nil || req.DryRun {
		return out, err
	}
	lock := req
	lock.Key, lock.IfMatch, lock.Reason = "", nil, cmp.Or(req.Reason, fmt.Sprintf("closing of the period through %s", through))
	closes := out.Changed
	for range maxLocks {
		if closes {
			if err := p.lock(ctx, lock, through); err != nil {
				return out, err
			}
		}
		if out, err = p.seal(ctx, req, through); !errors.Is(err, errUnlocked) {
			return out, err
		}
		closes = true
	}
	return out, commands.ErrBusy
}

// maxLocks is the maximum number of attempts to lock the books while other requests unlock them.
const maxLocks = 3

// lock locks the books through a day unless they are already locked.
func (p *Periods) lock(ctx context.Context, req commands.Request, through unit.Date) error {
	_, err := commands.Do(ctx, p.Books.Commands, req, bookslock.Kind, func(ctx context.Context, tx *commands.Tx) error {
		now, err := commands.Load(ctx, tx, bookslock.Kind, req.Workspace.String())
		if err != nil || now.State.Covers(through) {
			return err
		}
		_, err = commands.Decide(ctx, tx, bookslock.Kind, req.Workspace.String(), bookslock.Set{Through: &through, Today: p.Books.Today()})
		return err
	})
	return err
}

// seal seals a period. Except in a dry run, it returns errUnlocked unless the books are locked through its last day.
func (p *Periods) seal(ctx context.Context, req commands.Request, through unit.Date) (commands.Outcome[period.State], error) {
	stream := req.Workspace.String()
	return commands.Do(ctx, p.Books.Commands, req, period.Kind, func(ctx context.Context, tx *commands.Tx) error {
		c := period.Close{Through: through, Today: p.Books.Today()}
		before, err := commands.Load(ctx, tx, period.Kind, stream)
		if err != nil {
			return err
		}
		if events, err := c.Decide(before.State); err == nil && len(events) > 0 {
			if c.Seal, err = p.read(ctx, tx, through); err != nil {
				return err
			}
		}
		_, err = commands.Decide(ctx, tx, period.Kind, stream, c)
		return err
	})
}

// read returns the seal of a period that can be closed. It reads the lock before the balances. Its append and the appends of rows check the
// lock, so no row of the period changes in between.
func (p *Periods) read(ctx context.Context, tx *commands.Tx, through unit.Date) (s period.Seal, err error) {
	workspace := tx.Workspace()
	lock, err := commands.Load(ctx, tx, bookslock.Kind, workspace.String())
	switch {
	case err != nil:
		return s, err
	case !lock.State.Covers(through) && !tx.DryRun():
		return s, errUnlocked
	}
	if err := p.open(ctx, workspace, through); err != nil {
		return s, err
	}
	balances, position, err := p.Reads.Closing(ctx, workspace, through)
	if err != nil {
		return s, fmt.Errorf("read the closing balances: %w", err)
	}
	s = period.Seal{Digest: closing.Digest(balances), Position: position}
	if s.LogSize, s.LogRoot, err = p.Root(ctx, position); err != nil {
		err = fmt.Errorf("read the root of the log: %w", err)
	}
	return s, err
}

// open returns a conflict with the open items of a period, or nil.
func (p *Periods) open(ctx context.Context, workspace uuid.UUID, through unit.Date) error {
	parked, err := p.Parked(ctx)
	if err != nil {
		return err
	}
	var open []fault.Field
	for _, name := range parked {
		open = append(open, fault.Field{Field: "projections", Message: fmt.Sprintf("projection %s is parked", name), ID: name})
	}
	if len(open) == 0 { // a parked projection's tables may lack drafts and uploads
		if open, err = p.unfinished(ctx, workspace, through); err != nil {
			return err
		}
	}
	if len(open) == 0 {
		return nil
	}
	return &fault.Error{Kind: fault.Conflict, Detail: fmt.Sprintf("The period through %s has open items", through), Code: "period_open",
		Fields: open}
}

// unfinished lists the order drafts and uploads of a period that await a user.
func (p *Periods) unfinished(ctx context.Context, workspace uuid.UUID, through unit.Date) (open []fault.Field, err error) {
	next := (through + 1).Time()
	end := time.Date(next.Year(), next.Month(), next.Day(), 0, 0, 0, 0, p.Zone)
	drafts, err := p.Reads.WaitingDrafts(ctx, workspace, through, end, maxOpen)
	if err != nil {
		return nil, err
	}
	for _, id := range drafts {
		open = append(open, fault.Field{Field: "order_drafts", Message: fmt.Sprintf("order draft %d is not reviewed", id), ID: id})
	}
	uploads, err := p.Reads.WaitingKhatas(ctx, workspace)
	listed := 0
	for _, upload := range uploads {
		inside, found := p.mayHaveRows(ctx, upload, through, end)
		if err = cmp.Or(err, found); err != nil || listed == maxOpen {
			break
		}
		if inside {
			listed++
			open = append(open, fault.Field{Field: "khata_uploads", Message: fmt.Sprintf("khata upload %d is not submitted", upload.ID),
				ID: upload.ID})
		}
	}
	return open, err
}

// mayHaveRows reports whether an upload may have rows of a period that ends on a day: the upload or one of its entries is that old, or the
// upload is not read yet.
func (p *Periods) mayHaveRows(ctx context.Context, upload khata.Waiting, through unit.Date, end time.Time) (bool, error) {
	if !upload.Read || upload.CreatedAt.Before(end) {
		return true, nil
	}
	result, err := p.Khatas.Result(ctx, upload.Blob)
	if err != nil || result == nil {
		return false, err
	}
	for _, e := range result.Entries {
		if e.Date != nil && *e.Date <= through {
			return true, nil
		}
	}
	return false, nil
}

// Reopen reopens the newest closed period and moves the lock to the end of the previous period.
func (p *Periods) Reopen(ctx context.Context, req commands.Request, through unit.Date) (commands.Outcome[period.State], error) {
	stream := req.Workspace.String()
	return commands.Do(ctx, p.Books.Commands, req, period.Kind, func(ctx context.Context, tx *commands.Tx) error {
		after, err := commands.Decide(ctx, tx, period.Kind, stream, period.Reopen{Through: through, Reason: req.Reason})
		if err != nil {
			return err
		}
		closed := after.State.Through()
		_, err = commands.Decide(ctx, tx, bookslock.Kind, stream, bookslock.Set{Through: closed, Reason: req.Reason, Today: p.Books.Today(),
			Closed: closed})
		return err
	})
}
