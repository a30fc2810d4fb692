package ledger

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/domain/event"
	"bahi/domain/ledger/karigar"
	"bahi/domain/ledger/order"
	"bahi/domain/ledger/takada"
	"bahi/eventstore"
)

func addTakadaRule(h *commands.Handler) {
	commands.Govern(h, takada.Kind, func(ctx context.Context, from commands.Source, before takada.State, r event.Recorded[event.Event[takada.State]]) error {
		if r.Meta.Of != 0 { // it tells of what is decided
			return nil
		}
		return takada.RefusesStep(before, takada.Kind.Evolve(before, r), lookAt(ctx, from, r.Meta.Workspace, r.Position))
	})
}

// lookAt looks at what a takada refers to, as of a position.
func lookAt(ctx context.Context, from commands.Source, workspace uuid.UUID, at event.Position) takada.Look {
	return takada.Look{
		Order: func(number int64) (int64, bool, error) { return clientOf(ctx, from, number, workspace, at) },
		Karigar: func(account int64) (bool, error) {
			return isOpen(ctx, from, karigar.Ledger, account, workspace, at)
		},
	}
}

// AddTakada records a delivery of an order.
func AddTakada(ctx context.Context, req commands.Request, b *Books, c takada.Add) (commands.Outcome[takada.State], error) {
	c.Today, c.Look = b.Today(), lookAt(ctx, b.Commands.Fresh(), req.Workspace, eventstore.End)
	return attach(ctx, req, b, c.Takada.Order, func() (commands.Outcome[takada.State], error) {
		return commands.Create(ctx, b.Commands, req, takada.Kind, b.Commands.Numbered(takada.Kind.Category(), 1), c)
	})
}

// EditTakada changes a takada.
func EditTakada(ctx context.Context, req commands.Request, b *Books, number int64, c takada.Edit) (commands.Outcome[takada.State], error) {
	c.Today, c.Look = b.Today(), lookAt(ctx, b.Commands.Fresh(), req.Workspace, eventstore.End)
	return attach(ctx, req, b, c.Order.Value, func() (commands.Outcome[takada.State], error) {
		return handleTakada(ctx, req, b, number, c)
	})
}

// DeleteTakada ends a takada.
func DeleteTakada(ctx context.Context, req commands.Request, b *Books, number int64) (commands.Outcome[takada.State], error) {
	return handleTakada(ctx, req, b, number, takada.Delete{})
}

// attach does what may add a takada to an order, and opens the order to it if a change of its client was announced, whose process may be gone.
func attach(
	ctx context.Context, req commands.Request, b *Books, number int64, do func() (commands.Outcome[takada.State], error),
) (commands.Outcome[takada.State], error) {
	if err := b.tellOrder(ctx, req, number); err != nil {
		return commands.Outcome[takada.State]{Revision: -1}, err
	}
	out, err := do()
	if err == nil || !errors.Is(err, order.ErrChanging) || req.DryRun {
		return shown(ctx, req, b, out, err)
	}
	if _, err := handleOrder(ctx, req.FollowUp(), b, number, order.DropClientChange{}); err != nil {
		return out, err
	}
	out, err = do()
	return shown(ctx, req, b, out, err)
}

// handleTakada handles a command on a takada. It may have ended with its order or its client, which its own stream need not say.
func handleTakada(ctx context.Context, req commands.Request, b *Books, number int64, c event.Command[takada.State]) (commands.Outcome[takada.State], error) {
	out, err := commands.Handle(ctx, b.Commands, req, takada.Kind, id(number), c)
	return out, standing(out, err, takada.ErrNotFound, func() (bool, error) {
		holder, _, err := clientOf(ctx, b.Commands.Fresh(), out.State.Order, req.Workspace, eventstore.End)
		return holder != 0, err
	})
}

// shown returns the outcome without the karigars who are deleted: no event tells the takada of it.
func shown(ctx context.Context, req commands.Request, b *Books, out commands.Outcome[takada.State], err error) (commands.Outcome[takada.State], error) {
	if err != nil {
		return out, err
	}
	gone := map[int64]bool{}
	for _, account := range out.State.Karigars() {
		open, err := isOpen(ctx, b.Commands.Cached(), karigar.Ledger, account, req.Workspace, eventstore.End)
		if err != nil {
			return out, err
		}
		gone[account] = !open
	}
	out.State.Takada = out.State.Without(func(account int64) bool { return gone[account] })
	return out, nil
}
