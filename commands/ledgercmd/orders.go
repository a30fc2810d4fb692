package ledgercmd

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/domain/event"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/client"
	"bahi/domain/ledger/order"
	"bahi/domain/number"
	"bahi/domain/unit"
)

// orderReads are the queries of commands on orders.
type orderReads interface {
	// OrderWithSlip returns the order of another client with this normalised slip number and the nearest date. It searches the given number
	// of days before and after the date, and returns 0 if there is none. The result may be stale.
	OrderWithSlip(ctx context.Context, workspace uuid.UUID, slip string, client int64, date unit.Date, days int) (int64, error)
}

// sameSlip is the number of days before and after an order's date that are searched for its slip number (CONTRACT.md O5).
const sameSlip = 365

// isOpen reports whether an account of a workspace is open.
func isOpen(ctx context.Context, from commands.Source, l *book.Ledger, account int64, workspace uuid.UUID) (bool, error) {
	a, err := commands.Load(ctx, from, l.Accounts, id(account))
	return a.State.Open() && a.Workspace == workspace, err
}

// clientOpen returns a function that reports whether a client of the workspace is open.
func clientOpen(ctx context.Context, tx *commands.Tx, workspace uuid.UUID) order.IsOpen {
	return func(account int64) (bool, error) { return isOpen(ctx, tx, client.Ledger, account, workspace) }
}

// loadOrder returns an order of a workspace. It returns [order.ErrNotFound] if there is none, or if the client was deleted: no event of the
// order records that deletion.
func loadOrder(ctx context.Context, from commands.Source, number int64, workspace uuid.UUID) (commands.Loaded[order.State], error) {
	o, err := commands.Load(ctx, from, order.Kind, id(number))
	if err != nil {
		return o, err
	}
	if !o.State.Exists() || o.Workspace != workspace {
		return o, order.ErrNotFound
	}
	open, err := isOpen(ctx, from, client.Ledger, o.State.Client, workspace)
	if err == nil && !open {
		err = order.ErrNotFound
	}
	return o, err
}

// AddOrder adds an order of a client.
func AddOrder(ctx context.Context, req commands.Request, b *Books, c order.Add) (commands.Outcome[order.State], error) {
	return commands.Do(ctx, b.Commands, req, order.Kind, func(ctx context.Context, tx *commands.Tx) (err error) {
		c.Today, c.IsOpen, c.FirstItem = b.Today(), clientOpen(ctx, tx, req.Workspace), 0
		if c.Found, err = b.slipWarnings(ctx, req.Workspace, c.Order); err != nil {
			return err
		}
		if c.FirstItem, err = b.itemNumbers(ctx, tx, c, order.State{}, len(c.Items)); err != nil {
			return err
		}
		_, err = commands.DecideNew(ctx, tx, order.Kind, b.Commands.IDFromSeries(order.Kind.Category(), 1),
			func(string) event.Command[order.State] { return c })
		return err
	})
}

// EditOrder changes an order. Changing the client requires an order without takadas.
func EditOrder(ctx context.Context, req commands.Request, b *Books, number int64, c order.Edit) (commands.Outcome[order.State], error) {
	return commands.Do(ctx, b.Commands, req, order.Kind, func(ctx context.Context, tx *commands.Tx) error {
		c.Today, c.IsOpen, c.FirstItem = b.Today(), clientOpen(ctx, tx, req.Workspace), 0
		now, err := loadOrder(ctx, tx, number, req.Workspace)
		if err != nil {
			return err
		}
		if c.Found, err = b.slipWarnings(ctx, req.Workspace, c.Of(now.State.Order)); err != nil {
			return err
		}
		if req.IfMatch == nil || *req.IfMatch == now.Revision { // else the append refuses the command, unless the command has faults itself
			if c.Client.Or(now.State.Client) != now.State.Client {
				takadas, err := commands.Load(ctx, tx, order.TakadasKind, id(number))
				if err != nil {
					return err
				}
				c.Takadas = int(takadas.State)
			}
			if c.FirstItem, err = b.itemNumbers(ctx, tx, c, now.State, len(c.Items.Value)); err != nil {
				return err
			}
		}
		_, err = commands.Decide(ctx, tx, order.Kind, id(number), c)
		return err
	})
}

// DeleteOrder deletes an order and its takadas.
func DeleteOrder(ctx context.Context, req commands.Request, b *Books, number int64) (commands.Outcome[order.State], error) {
	return commands.Do(ctx, b.Commands, req, order.Kind, func(ctx context.Context, tx *commands.Tx) error {
		if _, err := loadOrder(ctx, tx, number, req.Workspace); err != nil {
			return err
		}
		_, err := commands.Decide(ctx, tx, order.Kind, id(number), order.Delete{})
		return err
	})
}

// slipWarnings warns if an order of another client has the same slip number.
func (b *Books) slipWarnings(ctx context.Context, workspace uuid.UUID, o order.Order) ([]order.Warning, error) {
	slip := order.NormalisedSlip(o.Slip)
	if slip == "" || order.CheckSlip(o.Slip) != nil {
		return nil, nil
	}
	other, err := b.Reads.OrderWithSlip(ctx, workspace, slip, o.Client, o.Date, sameSlip)
	if err != nil || other == 0 {
		return nil, err
	}
	return []order.Warning{{Field: "slip_number", Message: fmt.Sprintf("order %d of another client has this number", other), ID: other}}, nil
}

// itemNumbers assigns ids to a command's new items, and returns the first. It assigns none in a dry run, or if the command fails or changes
// nothing.
func (b *Books) itemNumbers(ctx context.Context, tx *commands.Tx, c event.Command[order.State], now order.State, items int) (int64, error) {
	decided, err := c.Decide(now)
	if err != nil || len(decided) == 0 || items == 0 {
		return 0, nil //nolint:nilerr // the transaction decides again and returns the error
	}
	return b.numbers(ctx, tx, number.OrderItems, items)
}

// numbers assigns count new ids of a series, and returns the first, 0 in a dry run.
func (b *Books) numbers(ctx context.Context, tx *commands.Tx, series string, count int) (int64, error) {
	if tx.DryRun() {
		return 0, nil
	}
	return commands.Once(tx, fmt.Sprintf("%d of %s", count, series),
		func() (int64, error) { return b.Commands.Numbers(ctx, series, int64(count)) })
}
