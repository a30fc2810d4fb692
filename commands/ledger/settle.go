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
	// decideWithin is how long a reversal that is announced may take before somebody who needs a row of it
	// forsakes it. It takes a few appends.
	decideWithin = 200 * time.Millisecond
	lookEvery    = 5 * time.Millisecond
)

// settleAll settles those of the rows whose reversal is announced. A dry run leaves them as they are.
func settleAll(ctx context.Context, req commands.Request, b *Books, l *book.Ledger, rows []int64) error {
	if req.DryRun {
		return nil
	}
	return manyAtOnce(rows, func(_ int, row int64) error {
		r, err := commands.Load(ctx, b.Commands.Cached(), l.Rows, id(row))
		if err != nil || r.Workspace != req.Workspace || r.State.Reserved == 0 || r.State.ReversedBy != 0 {
			return err
		}
		return settle(ctx, req, b, l, row, r.State.Reserved)
	})
}

// settle brings the reversal of a row to its end that a bulk has announced: it carries out what that has
// decided, or sees to it that it never will be, and lets the row go.
func settle(ctx context.Context, req commands.Request, b *Books, l *book.Ledger, row, bulk int64) error {
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
		return drop(ctx, req, b, l, row, bulk)
	}
}

// letGo ends a reversal that could not be decided. What it does not come to is done by whoever needs the row.
func letGo(ctx context.Context, req commands.Request, b *Books, l *book.Ledger, rows []int64, bulk int64) {
	ctx, req = context.WithoutCancel(ctx), req.FollowUp()
	decided, err := decision(ctx, req, b, l, bulk, 0)
	switch {
	case err != nil:
	case decided.Posted != 0: // though nobody knew, when the log did not answer
		err = fill(ctx, b, l, bulk, decided)
	default:
		err = manyAtOnce(rows, func(_ int, row int64) error { return drop(ctx, req, b, l, row, bulk) })
	}
	if err != nil {
		b.Log.Warn("a reversal that will not be was not ended; whoever needs its rows will do it", "bulk", bulk, "error", err)
	}
}

// decision answers the bulk once it is decided. When it is not within a time it is forsaken, and the answer
// is one that is not posted.
func decision(ctx context.Context, req commands.Request, b *Books, l *book.Ledger, bulk int64, within time.Duration) (book.Bulk, error) {
	for deadline := time.Now().Add(within); ; {
		found, err := commands.Load(ctx, b.Commands.Fresh(), l.Bulks, id(bulk))
		if err != nil || found.Revision >= 0 { // its first event has decided, be it void
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

// drop lets a row go that the bulk holds.
func drop(ctx context.Context, req commands.Request, b *Books, l *book.Ledger, row, bulk int64) error {
	_, err := commands.Handle(ctx, b.Commands, req, l.Rows, id(row), book.ReleaseRow{Bulk: bulk})
	return err
}

// tellReversed tells the rows that a bulk takes back by which row it does.
func tellReversed(ctx context.Context, b *Books, l *book.Ledger, first int64, bulk book.Bulk, meta event.Meta) error {
	space := uuid.NewSHA1(uuid.NameSpaceOID, []byte(l.Bulks.Stream(id(first))+" reverses"))
	var failed error
	for range maxOvertaken { // by a note in a row's stream, or by others who tell them
		var appends []eventstore.Request
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
			appends = append(appends, eventstore.Request{Stream: l.Rows.Stream(id(row)), Expected: eventstore.Expected(r.Revision), Events: []event.New{e}})
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
