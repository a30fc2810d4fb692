package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/client"
	"bahi/domain/ledger/order"
	"bahi/domain/number"
	"bahi/domain/unit"
	"bahi/eventstore"
)

// OrderReads is what commands on orders and takadas ask of the read side.
type OrderReads interface {
	// OrderWithSlip is the order of another client that has this slip number, folded, and a date of at most so many days before or after the
	// date: that with the nearest date, 0 when there is none. It may be late.
	OrderWithSlip(ctx context.Context, workspace uuid.UUID, slip string, client int64, date unit.Date, days int) (int64, error)
	// HasTakadas reports whether the order has takadas. It misses none.
	HasTakadas(ctx context.Context, workspace uuid.UUID, order int64) (bool, error)
	// UnfinishedClosings are the first of those orders and takadas that were deleted with another record, and whose own streams do not say so.
	UnfinishedClosings(ctx context.Context) ([]order.Closing, error)
}

// sameSlip is how many days before and after an order's date its slip number is looked for (CONTRACT.md O5).
const sameSlip = 365

// maxChanges is how often a change of an order's client is tried, while takadas are added in between.
const maxChanges = 4

func addOrderRule(h *commands.Handler) {
	commands.Govern(h, order.Kind, func(ctx context.Context, from commands.Source, before order.State, r event.Recorded[event.Event[order.State]]) error {
		if r.Meta.Of != 0 { // it tells of what is decided
			return nil
		}
		return order.RefusesStep(before, order.Kind.Evolve(before, r), func(account int64) (bool, error) {
			return isOpen(ctx, from, client.Ledger, account, r.Meta.Workspace, r.Position)
		})
	})
}

// isOpen reports whether an account of a workspace is open at a position.
func isOpen(ctx context.Context, from commands.Source, l *book.Ledger, account int64, workspace uuid.UUID, at event.Position) (bool, error) {
	a, err := commands.Load(ctx, from, l.Accounts, id(account))
	return a.State.Open(at) && a.Workspace == workspace, err
}

// clientOpen returns a function that reports whether a workspace has an open client.
func (b *Books) clientOpen(ctx context.Context, workspace uuid.UUID) order.IsOpen {
	return func(account int64) (bool, error) {
		return isOpen(ctx, b.Commands.Fresh(), client.Ledger, account, workspace, eventstore.End)
	}
}

// AddOrder makes an order of a client.
func AddOrder(ctx context.Context, req commands.Request, b *Books, c order.Add) (out commands.Outcome[order.State], err error) {
	c.Today, c.IsOpen = b.Today(), b.clientOpen(ctx, req.Workspace)
	if c.Found, err = b.slipWarnings(ctx, req.Workspace, c.Order); err != nil {
		return out, err
	}
	if c.FirstItem, err = b.itemNumbers(ctx, req, c, commands.Loaded[order.State]{Revision: -1}, c.Items); err != nil {
		return out, err
	}
	return commands.Create(ctx, b.Commands, req, order.Kind, b.Commands.Numbered(order.Kind.Category(), 1), c)
}

// EditOrder changes an order. Another client needs an order without takadas.
func EditOrder(ctx context.Context, req commands.Request, b *Books, number int64, c order.Edit) (out commands.Outcome[order.State], err error) {
	c.Today, c.IsOpen = b.Today(), b.clientOpen(ctx, req.Workspace)
	if out, done, err := commands.Earlier(ctx, b.Commands, req, order.Kind); done || err != nil {
		return out, err
	}
	if err := b.tellOrder(ctx, req, number); err != nil {
		return out, err
	}
	now, err := commands.Load(ctx, b.Commands.Fresh(), order.Kind, id(number))
	if err != nil {
		return out, err
	}
	if now.State.Exists() && now.Workspace == req.Workspace {
		if c.Found, err = b.slipWarnings(ctx, req.Workspace, c.Of(now.State.Order)); err != nil {
			return out, err
		}
		trial := c
		trial.Alone = true
		if c.FirstItem, err = b.itemNumbers(ctx, req, trial, now, c.Items.Value); err != nil {
			return out, err
		}
		if c.Client.Or(now.State.Client) != now.State.Client {
			return b.changeClient(ctx, req, number, c)
		}
	}
	return handleOrder(ctx, req, b, number, c)
}

// changeClient gives an order to another client. It closes the order to takadas, looks whether it has any, and changes it only
// if nothing happened to the order since: a command that adds a takada meanwhile drops the announcement. So a crash leaves an order
// that the next takada opens again, and no event in the log gives an order with takadas to another client.
func (b *Books) changeClient(ctx context.Context, req commands.Request, number int64, c order.Edit) (out commands.Outcome[order.State], err error) {
	c.Alone = true
	trial := req.FollowUp()
	trial.DryRun, trial.IfMatch = true, req.IfMatch
	if out, err = handleOrder(ctx, trial, b, number, c); err != nil {
		return out, err
	}
	for range maxChanges {
		if err = b.alone(ctx, req, number); err != nil || req.DryRun {
			return out, err
		}
		var overtaken bool
		if out, overtaken, err = b.announceAndChange(ctx, req, number, c); !overtaken {
			return out, err
		}
	}
	return out, commands.ErrBusy
}

// announceAndChange reports whether something happened to the order between the two, so that they may be tried again.
func (b *Books) announceAndChange(ctx context.Context, req commands.Request, number int64, c order.Edit) (out commands.Outcome[order.State], overtaken bool, err error) {
	announcing := req.FollowUp()
	announcing.IfMatch = req.IfMatch
	if out, err = handleOrder(ctx, announcing, b, number, order.AnnounceClientChange{}); err != nil {
		return out, false, err
	}
	if err = b.alone(ctx, req, number); err == nil {
		req.IfMatch = &out.Revision
		out, err = handleOrder(ctx, req, b, number, c)
	}
	if err != nil {
		// Where this fails, too, the next takada does it.
		_, _ = handleOrder(context.WithoutCancel(ctx), req.FollowUp(), b, number, order.DropClientChange{})
	}
	return out, errors.Is(err, commands.ErrStale), err
}

// alone returns [order.ErrDelivered] if the order has takadas.
func (b *Books) alone(ctx context.Context, req commands.Request, number int64) error {
	delivered, err := b.Reads.HasTakadas(ctx, req.Workspace, number)
	if delivered {
		return order.ErrDelivered
	}
	return err
}

// DeleteOrder ends an order and its takadas, whose own streams are told afterwards.
func DeleteOrder(ctx context.Context, req commands.Request, b *Books, number int64) (out commands.Outcome[order.State], err error) {
	if err := b.tellOrder(ctx, req, number); err != nil {
		return out, err
	}
	out, err = handleOrder(ctx, req, b, number, order.Delete{})
	if err == nil && out.Changed && !req.DryRun {
		b.closeAfterwards(ctx)
	}
	return out, err
}

// handleOrder handles a command on an order. The order may have ended with its client, which its own stream need not say.
func handleOrder(ctx context.Context, req commands.Request, b *Books, number int64, c event.Command[order.State]) (commands.Outcome[order.State], error) {
	out, err := commands.Handle(ctx, b.Commands, req, order.Kind, id(number), c)
	return out, standing(out, err, order.ErrNotFound, func() (bool, error) {
		holder, _, err := clientOf(ctx, b.Commands.Fresh(), number, req.Workspace, eventstore.End)
		return holder != 0, err
	})
}

// standing returns the error of a command on a record that may have ended with another one: missing where that is so. Where the command
// changed something, the rules between streams were asked already.
func standing[S any](out commands.Outcome[S], err, missing error, stands func() (bool, error)) error {
	_, refused := errors.AsType[*fault.Error](err)
	if out.Replayed || out.Revision < 0 || err == nil && out.Changed || err != nil && !refused {
		return err
	}
	switch there, failed := stands(); {
	case failed != nil:
		return failed
	case !there:
		return missing
	default:
		return err
	}
}

// clientOf returns the client of an order of a workspace at a position, 0 if the order or the client is not there, and whether that
// is about to change.
func clientOf(ctx context.Context, from commands.Source, number int64, workspace uuid.UUID, at event.Position) (holder int64, changing bool, err error) {
	o, err := commands.Load(ctx, from, order.Kind, id(number))
	if err != nil || o.Workspace != workspace {
		return 0, false, err
	}
	if holder, changing = o.State.At(at); holder == 0 {
		return 0, false, nil
	}
	open, err := isOpen(ctx, from, client.Ledger, holder, workspace, at)
	if !open {
		holder = 0
	}
	return holder, changing, err
}

// slipWarnings warns of a slip number that another client's order has.
func (b *Books) slipWarnings(ctx context.Context, workspace uuid.UUID, o order.Order) ([]order.Warning, error) {
	slip := order.Folded(o.Slip)
	if slip == "" || order.CheckSlip(o.Slip) != nil {
		return nil, nil
	}
	other, err := b.Reads.OrderWithSlip(ctx, workspace, slip, o.Client, o.Date, sameSlip)
	if err != nil || other == 0 {
		return nil, err
	}
	return []order.Warning{{Field: "slip_number", Message: fmt.Sprintf("order %d of another client has this number", other), ID: other}}, nil
}

// itemNumbers returns the first of the numbers for the items that a command brings. A dry run takes none, nor does a command that is refused or
// changes nothing.
func (b *Books) itemNumbers(
	ctx context.Context, req commands.Request, c event.Command[order.State], now commands.Loaded[order.State], items []order.Item,
) (int64, error) {
	if req.DryRun || len(items) == 0 || req.IfMatch != nil && *req.IfMatch != now.Revision {
		return 0, nil
	}
	if decided, err := c.Decide(now.State); err != nil || len(decided) == 0 {
		return 0, nil //nolint:nilerr // Handle returns it
	}
	return b.Commands.Numbers(ctx, number.OrderItems, int64(len(items)))
}
