package ledgercmd

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/domain/event"
	"bahi/domain/ledger/karigar"
	"bahi/domain/ledger/order"
	"bahi/domain/ledger/takada"
)

// lookAt returns the functions that find the records to which a takada refers.
func lookAt(ctx context.Context, tx *commands.Tx, workspace uuid.UUID) takada.Look {
	return takada.Look{
		Order: func(number int64) (int64, error) {
			o, err := loadOrder(ctx, tx, number, workspace)
			if errors.Is(err, order.ErrNotFound) {
				return 0, nil
			}
			return o.State.Client, err
		},
		Karigar: func(account int64) (bool, error) { return isOpen(ctx, tx, karigar.Ledger, account, workspace) },
	}
}

// AddTakada adds a takada to an order.
func AddTakada(ctx context.Context, req commands.Request, b *Books, c takada.Add) (commands.Outcome[takada.State], error) {
	out, err := commands.Do(ctx, b.Commands, req, takada.Kind, func(ctx context.Context, tx *commands.Tx) error {
		c.Today, c.Look = b.Today(), lookAt(ctx, tx, req.Workspace)
		added := ""
		_, err := commands.DecideNew(ctx, tx, takada.Kind, b.Commands.IDFromSeries(takada.Kind.Category(), 1),
			func(id string) event.Command[takada.State] {
				added = id
				return c
			})
		if err != nil || tx.DryRun() {
			return err
		}
		_, err = commands.Decide(ctx, tx, order.TakadasKind, id(c.Order), order.Attach{Takada: event.Number(added)})
		return err
	})
	return shown(ctx, req, b, out, err)
}

// EditTakada changes a takada.
func EditTakada(ctx context.Context, req commands.Request, b *Books, number int64, c takada.Edit) (commands.Outcome[takada.State], error) {
	out, err := commands.Do(ctx, b.Commands, req, takada.Kind, func(ctx context.Context, tx *commands.Tx) error {
		c.Today, c.Look = b.Today(), lookAt(ctx, tx, req.Workspace)
		before, err := loadTakada(ctx, tx, number, req.Workspace)
		if err != nil {
			return err
		}
		after, err := commands.Decide(ctx, tx, takada.Kind, id(number), c)
		if err != nil || after.State.Order == before.State.Order {
			return err
		}
		if _, err := commands.Decide(ctx, tx, order.TakadasKind, id(before.State.Order), order.Detach{Takada: number}); err != nil {
			return err
		}
		_, err = commands.Decide(ctx, tx, order.TakadasKind, id(after.State.Order), order.Attach{Takada: number})
		return err
	})
	return shown(ctx, req, b, out, err)
}

// DeleteTakada deletes a takada.
func DeleteTakada(ctx context.Context, req commands.Request, b *Books, number int64) (commands.Outcome[takada.State], error) {
	return commands.Do(ctx, b.Commands, req, takada.Kind, func(ctx context.Context, tx *commands.Tx) error {
		before, err := loadTakada(ctx, tx, number, req.Workspace)
		if err != nil {
			return err
		}
		if _, err := commands.Decide(ctx, tx, takada.Kind, id(number), takada.Delete{}); err != nil {
			return err
		}
		_, err = commands.Decide(ctx, tx, order.TakadasKind, id(before.State.Order), order.Detach{Takada: number})
		return err
	})
}

// loadTakada returns a takada of a workspace. It returns [takada.ErrNotFound] if there is none, or if the order was deleted: no event of
// the takada records that deletion.
func loadTakada(ctx context.Context, tx *commands.Tx, number int64, workspace uuid.UUID) (commands.Loaded[takada.State], error) {
	t, err := commands.Load(ctx, tx, takada.Kind, id(number))
	if err != nil {
		return t, err
	}
	if !t.State.Exists() || t.Workspace != workspace {
		return t, takada.ErrNotFound
	}
	_, err = loadOrder(ctx, tx, t.State.Order, workspace)
	if errors.Is(err, order.ErrNotFound) {
		err = takada.ErrNotFound
	}
	return t, err
}

// shown returns the outcome without deleted karigars. No event of the takada records their deletion.
func shown(ctx context.Context, req commands.Request, b *Books, out commands.Outcome[takada.State],
	err error) (commands.Outcome[takada.State], error) {
	if err != nil {
		return out, err
	}
	gone := map[int64]bool{}
	for _, account := range out.State.Karigars() {
		open, err := isOpen(ctx, b.Commands.Cached(), karigar.Ledger, account, req.Workspace)
		if err != nil {
			return out, err
		}
		gone[account] = !open
	}
	out.State.Takada = out.State.Without(func(account int64) bool { return gone[account] })
	return out, nil
}
