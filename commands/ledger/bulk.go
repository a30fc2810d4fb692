package ledger

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/domain/event"
	ledgers "bahi/domain/ledger"
	"bahi/domain/ledger/book"
	"bahi/domain/number"
	"bahi/eventstore"
)

// PostRows posts rows to an account, all or none (DESIGN.md, hard case 1). It returns as soon as the
// decisive event is in the log. The rows' own streams are filled afterwards; a command that needs one earlier
// fills them itself.
func PostRows(ctx context.Context, req commands.Request, b *Books, l *book.Ledger, account int64, rows []book.Asked) (commands.Outcome[book.Bulk], error) {
	c := book.PostRows{Ledger: l, Account: account, Today: b.Today(), Rows: rows}
	out, err := commands.Create(ctx, b.Commands, req, l.Bulks, b.Commands.Numbered(number.Rows, int64(len(rows))), c)
	if err != nil || !out.Changed || req.DryRun {
		return out, err
	}
	fillAfterwards(ctx, b, l, out)
	return out, nil
}

// fillAfterwards fills the rows' streams in the background, after the request was answered.
func fillAfterwards(ctx context.Context, b *Books, l *book.Ledger, out commands.Outcome[book.Bulk]) {
	after := context.WithoutCancel(ctx)
	b.filling.Go(func() {
		first, err := strconv.ParseInt(out.ID, 10, 64)
		if err == nil {
			err = fill(after, b, l, first, out.State)
		}
		if err != nil {
			b.Log.Warn("bulk incomplete; missing rows are written on demand", "bulk", out.ID, "error", err)
		}
	})
}

// ResumeBulks fills the bulks of every ledger that earlier processes left unfilled.
func ResumeBulks(ctx context.Context, b *Books) error {
	for _, l := range ledgers.All {
		bulks, err := b.Reads.UnfinishedBulks(ctx, l.Name)
		if err != nil {
			return fmt.Errorf("find unfinished bulks of %s: %w", l.Name, err)
		}
		for _, first := range bulks {
			if err := resume(ctx, b, l, first); err != nil {
				return err
			}
		}
	}
	pages, err := b.Reads.UnfinishedKhatas(ctx)
	if err != nil {
		return fmt.Errorf("find unfinished khatas: %w", err)
	}
	for _, number := range pages {
		if err := resumeKhata(ctx, b, number); err != nil {
			return err
		}
	}
	return nil
}

func resume(ctx context.Context, b *Books, l *book.Ledger, first int64) error {
	bulk, err := commands.Load(ctx, b.Commands.Fresh(), l.Bulks, id(first))
	if err != nil {
		return err
	}
	return fill(ctx, b, l, first, bulk.State)
}

// fill appends the first event of each row's own stream, and notes the reversal in the rows that the bulk reverses. The
// ids are derived from the bulk, so doing it again changes nothing.
func fill(ctx context.Context, b *Books, l *book.Ledger, first int64, bulk book.Bulk) error {
	if len(bulk.Rows) == 0 { // it was abandoned
		return nil
	}
	stream := l.Bulks.Stream(id(first))
	meta, err := b.Commands.MetaOf(ctx, stream)
	if err != nil {
		return err
	}
	err = fillRows(ctx, b, stream, meta, first, len(bulk.Rows), func(i int) (*book.Ledger, book.RowAdded) { return l, bulk.Added(i) })
	if err != nil || bulk.Reverses == nil {
		return err
	}
	return noteReversed(ctx, b, l, first, bulk, meta)
}

// fillRows appends the first event of each row's own stream, as the decisive event of a stream has it.
func fillRows(ctx context.Context, b *Books, stream string, meta event.Meta, first int64, count int, row func(int) (*book.Ledger, book.RowAdded)) error {
	space := uuid.NewSHA1(uuid.NameSpaceOID, []byte(stream))
	appends := make([]eventstore.Transaction, count)
	for i := range appends {
		l, added := row(i)
		e, err := l.Rows.Encode(uuid.NewSHA1(space, []byte(strconv.Itoa(i))), added, meta)
		if err != nil {
			return err
		}
		appends[i] = eventstore.To(l.Rows.Stream(id(first+int64(i))), eventstore.NoStream, e)
	}
	var failed error
	for _, r := range b.Commands.AppendEach(ctx, appends) {
		if _, filled := errors.AsType[*eventstore.WrongRevision](r.Err); r.Err != nil && !filled {
			failed = errors.Join(failed, r.Err)
		}
	}
	return failed
}
