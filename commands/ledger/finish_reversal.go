package ledger

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/domain/event"
	"bahi/domain/ledger/book"
	"bahi/eventstore"
)

const (
	// decideWithin is how long a bulk may take to decide a reversal. It takes a few appends. Then a command that needs
	// one of its rows abandons the bulk.
	decideWithin = 200 * time.Millisecond
	lookEvery    = 5 * time.Millisecond
)

// finishAll finishes the reversals of those of the rows that are reserved. A dry run leaves them as they are.
func finishAll(ctx context.Context, req commands.Request, b *Books, l *book.Ledger, rows []int64) error {
	if req.DryRun {
		return nil
	}
	return manyAtOnce(rows, func(_ int, row int64) error {
		r, err := commands.Load(ctx, b.Commands.Cached(), l.Rows, id(row))
		if err != nil || r.Workspace != req.Workspace || r.State.Reserved == 0 || r.State.ReversedBy != 0 {
			return err
		}
		return finish(ctx, req, b, l, row, r.State.Reserved)
	})
}

// finish ends the reservation of a row by a bulk: it carries out what the bulk has decided, or abandons the bulk and
// releases the row.
func finish(ctx context.Context, req commands.Request, b *Books, l *book.Ledger, row, bulk int64) error {
	if req.DryRun {
		return book.ErrReversing
	}
	req = req.FollowUp()
	decided, err := decision(ctx, req, b, l, bulk, decideWithin)
	switch {
	case err != nil:
		return err
	case decided.Posted != 0:
		return fill(ctx, b, l, bulk, decided)
	default:
		return release(ctx, req, b, l, row, bulk)
	}
}

// giveUp abandons a bulk that could not decide, and releases its rows. Rows that it fails to release are released by the next
// command that needs them.
func giveUp(ctx context.Context, req commands.Request, b *Books, l *book.Ledger, rows []int64, bulk int64) {
	ctx, req = context.WithoutCancel(ctx), req.FollowUp()
	decided, err := decision(ctx, req, b, l, bulk, 0)
	switch {
	case err != nil:
	case decided.Posted != 0: // the log took the events and did not answer
		err = fill(ctx, b, l, bulk, decided)
	default:
		err = manyAtOnce(rows, func(_ int, row int64) error { return release(ctx, req, b, l, row, bulk) })
	}
	if err != nil {
		b.Log.Warn("rows of an abandoned reversal are still reserved; the next command on them releases them", "bulk", bulk, "error", err)
	}
}

// decision returns the bulk once it has decided. It abandons a bulk that has not decided within a time, and then returns
// one that is not posted.
func decision(ctx context.Context, req commands.Request, b *Books, l *book.Ledger, bulk int64, within time.Duration) (book.Bulk, error) {
	for deadline := time.Now().Add(within); ; {
		found, err := commands.Load(ctx, b.Commands.Fresh(), l.Bulks, id(bulk))
		if err != nil || found.Revision >= 0 { // its first event has decided
			return found.State, err
		}
		if !time.Now().Before(deadline) {
			break
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return book.Bulk{}, ctx.Err()
		}
	}
	out, err := commands.Handle(ctx, b.Commands, req, l.Bulks, id(bulk), book.AbandonRows{})
	return out.State, err
}

// release clears the reservation of a row by a bulk.
func release(ctx context.Context, req commands.Request, b *Books, l *book.Ledger, row, bulk int64) error {
	_, err := commands.Handle(ctx, b.Commands, req, l.Rows, id(row), book.ReleaseRow{Bulk: bulk})
	return err
}

// noteReversed notes in the streams of the rows that a bulk reverses which row reverses them.
func noteReversed(ctx context.Context, b *Books, l *book.Ledger, first int64, bulk book.Bulk, meta event.Meta) error {
	space := uuid.NewSHA1(uuid.NameSpaceOID, []byte(l.Bulks.Stream(id(first))+" reverses"))
	var failed error
	for range maxOvertaken { // another process may append to the same streams
		var appends []eventstore.Transaction
		for i, row := range bulk.Reverses {
			r, err := commands.Load(ctx, b.Commands.Fresh(), l.Rows, id(row))
			if err != nil {
				return err
			}
			if r.State.ReversedBy != 0 {
				continue
			}
			e, err := l.Rows.Encode(uuid.NewSHA1(space, []byte(strconv.Itoa(i))), book.RowReversed{By: first + int64(i)}, meta)
			if err != nil {
				return err
			}
			appends = append(appends, eventstore.To(l.Rows.Stream(id(row)), eventstore.Expected(r.Revision), e))
		}
		failed = nil
		for _, r := range b.Commands.AppendEach(ctx, appends) {
			if _, moved := errors.AsType[*eventstore.WrongRevision](r.Err); r.Err != nil && !moved {
				return r.Err
			}
			failed = errors.Join(failed, r.Err)
		}
		if failed == nil {
			return nil
		}
	}
	return failed
}
