package ledgercmd

import (
	"context"

	"bahi/commands"
	"bahi/domain/event"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/khata"
)

// Posted has the rows of an account that were posted together. Their ids are consecutive.
type Posted struct {
	First    int64 // 0 in a dry run
	Rows     []book.Row
	Position event.Position
	Replayed bool
}

// PostRows posts rows to an account, all or none.
func PostRows(ctx context.Context, req commands.Request, b *Books, l *book.Ledger, account int64, rows []book.RowInput) (Posted, error) {
	c := book.PostRows{Ledger: l, Account: account, Today: b.Today(), Rows: rows, Reason: req.Reason}
	return postTogether(ctx, req, b, l, len(rows), func(ctx context.Context, tx *commands.Tx) ([]book.Row, error) {
		s, err := standingOf(ctx, tx, l, account, req.Workspace)
		if err != nil {
			return nil, err
		}
		added, err := c.Decide(s)
		if err == nil {
			_, err = b.post(ctx, tx, rowsOf(l, added))
		}
		return evolved(added), missing(l, err)
	})
}

// postTogether handles a decision that posts several rows. A retry finds them from the first id on.
func postTogether(
	ctx context.Context, req commands.Request, b *Books, l *book.Ledger, count int,
	decide func(context.Context, *commands.Tx) ([]book.Row, error),
) (Posted, error) {
	p := Posted{Rows: make([]book.Row, count)}
	out, err := commands.Do(ctx, b.Commands, req, l.Rows, func(ctx context.Context, tx *commands.Tx) (err error) {
		rows, err := decide(ctx, tx)
		copy(p.Rows, rows)
		return err
	})
	if err != nil {
		return Posted{}, err
	}
	p.First, p.Position, p.Replayed = out.Number(), out.Position, out.Replayed
	if !out.Replayed {
		return p, nil
	}
	return p, commands.InParallel(count, func(i int) error {
		row, err := commands.LoadAt(ctx, b.Commands, l.Rows, id(p.First+int64(i)), p.Position)
		p.Rows[i] = row.State
		return err
	})
}

func rowsOf(l *book.Ledger, added []book.RowAdded) []khata.Row {
	rows := make([]khata.Row, len(added))
	for i, row := range added {
		rows[i] = khata.Row{Ledger: l, RowAdded: row}
	}
	return rows
}

// evolved returns the added rows.
func evolved(added []book.RowAdded) []book.Row {
	rows := make([]book.Row, len(added))
	for i, row := range added {
		rows[i] = row.Evolve(book.Row{})
	}
	return rows
}
