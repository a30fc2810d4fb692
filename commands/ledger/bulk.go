package ledger

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/domain/event"
	"bahi/domain/ledger/book"
	"bahi/domain/number"
	"bahi/eventstore"
)

// PostRows posts rows to an account, all or none (DESIGN.md, hard case 1). It answers as soon as the
// decisive event is in the log; the rows' own streams are filled afterwards, and by whoever first
// needs one of them if this process does not come to it.
func PostRows[L any, In, Out book.Entry](ctx context.Context, req commands.Request, b *Books, l book.Ledger[L, In, Out], account int64, c book.PostRows[In, Out]) (commands.Outcome[book.Bulk[In, Out]], error) {
	c.Account, c.Today = account, b.Today()
	out, err := commands.Create(ctx, b.Commands, req, l.Bulks, b.number(number.Rows, int64(len(c.Rows))), c)
	if err != nil || !out.Changed || req.DryRun {
		return out, err
	}
	fillAfterwards(ctx, b, l, out)
	return out, nil
}

// fillAfterwards fills the rows' streams while the caller has the answer already.
func fillAfterwards[L any, In, Out book.Entry](ctx context.Context, b *Books, l book.Ledger[L, In, Out], out commands.Outcome[book.Bulk[In, Out]]) {
	after := context.WithoutCancel(ctx)
	b.filling.Go(func() {
		first, err := strconv.ParseInt(out.ID, 10, 64)
		if err == nil {
			err = fill(after, b, l, first, out.State)
		}
		if err != nil {
			b.Log.Warn("the rows of a bulk were not all filled; whoever needs one will do it", "bulk", out.ID, "error", err)
		}
	})
}

// ResumeBulks fills what earlier processes left unfilled.
func ResumeBulks[L any, In, Out book.Entry](ctx context.Context, b *Books, l book.Ledger[L, In, Out]) error {
	bulks, err := b.Reads.UnfinishedBulks(ctx, l.Name)
	if err != nil {
		return fmt.Errorf("find unfinished bulks of %s: %w", l.Name, err)
	}
	for _, first := range bulks {
		if err := resume(ctx, b, l, first); err != nil {
			return err
		}
	}
	return nil
}

func resume[L any, In, Out book.Entry](ctx context.Context, b *Books, l book.Ledger[L, In, Out], first int64) error {
	bulk, err := commands.Load(ctx, b.Commands.Fresh(), l.Bulks, id(first))
	if err != nil {
		return err
	}
	return fill(ctx, b, l, first, bulk.State)
}

// fill appends the first event of each row's own stream, and tells the rows that the bulk takes back. The
// ids are derived from the bulk, so doing it again changes nothing.
func fill[L any, In, Out book.Entry](ctx context.Context, b *Books, l book.Ledger[L, In, Out], first int64, bulk book.Bulk[In, Out]) error {
	if len(bulk.Rows) == 0 { // it is void
		return nil
	}
	stream := l.Bulks.Stream(id(first))
	space := uuid.NewSHA1(uuid.NameSpaceOID, []byte(stream))
	meta, err := b.Commands.MetaOf(ctx, stream)
	if err != nil {
		return err
	}
	appends := make([]eventstore.Request, len(bulk.Rows))
	for i := range bulk.Rows {
		e, err := l.Rows.Encode(uuid.NewSHA1(space, []byte(strconv.Itoa(i))), bulk.Added(i), meta)
		if err != nil {
			return err
		}
		appends[i] = eventstore.Request{
			Stream: l.Rows.Stream(id(first + int64(i))), Expected: eventstore.NoStream, Events: []event.New{e},
		}
	}
	var failed error
	for _, r := range b.Commands.AppendEach(ctx, appends) {
		if _, filled := errors.AsType[*eventstore.WrongRevision](r.Err); r.Err != nil && !filled {
			failed = errors.Join(failed, r.Err)
		}
	}
	if failed != nil || bulk.Reverses == nil {
		return failed
	}
	return tellReversed(ctx, b, l, first, bulk, meta)
}
