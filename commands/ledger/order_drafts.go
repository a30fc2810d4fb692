package ledger

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/domain/event"
	"bahi/domain/ledger/client"
	"bahi/domain/ledger/order"
	"bahi/domain/ledger/orderdraft"
	"bahi/domain/number"
	"bahi/eventstore"
)

// DraftReads is what commands on order drafts ask of the read side.
type DraftReads interface {
	// Clients are the clients of the workspace. They may be late.
	Clients(ctx context.Context, workspace uuid.UUID) ([]orderdraft.Client, error)
	// HighestSlip is the greatest slip number of digits only, of the orders and the drafts but one; 0 when there is none.
	HighestSlip(ctx context.Context, workspace uuid.UUID, but int64) (int64, error)
	// DraftOf is the draft that the order was made of, 0 when there is none.
	DraftOf(ctx context.Context, workspace uuid.UUID, order int64) (int64, error)
	// UnfinishedConversions are the drafts whose conversion was decided, and which have not ended.
	UnfinishedConversions(ctx context.Context) ([]int64, error)
}

func addDraftRule(h *commands.Handler) {
	commands.Govern(h, orderdraft.Kind, func(ctx context.Context, from commands.Source, before orderdraft.State, r event.Recorded[event.Event[orderdraft.State]]) error {
		e, converts := r.Data.(orderdraft.Converted)
		if !converts {
			return nil
		}
		return e.Refuses(before, func(account int64) (bool, error) {
			return isOpen(ctx, from, client.Ledger, account, r.Meta.Workspace, r.Position)
		})
	})
}

// EditDraft changes a draft.
func EditDraft(ctx context.Context, req commands.Request, b *Books, number int64, c orderdraft.Edit) (out commands.Outcome[orderdraft.State], err error) {
	c.Today = b.Today()
	if c.ClientName, err = b.clientName(ctx, req.Workspace, c.Client.Value); err != nil {
		return out, err
	}
	c.Reveal = b.reveal(ctx)
	return commands.Handle(ctx, b.Commands, req, orderdraft.Kind, id(number), c)
}

// reveal returns what opens the personal values of drafts.
func (b *Books) reveal(ctx context.Context) orderdraft.Reveal {
	return func(s orderdraft.State) (orderdraft.State, error) { return commands.Reveal(ctx, b.Commands, s) }
}

// clientName returns the name of an open client, "" if there is none.
func (b *Books) clientName(ctx context.Context, workspace uuid.UUID, account int64) (string, error) {
	if account == 0 {
		return "", nil
	}
	a, err := commands.Load(ctx, b.Commands.Fresh(), client.Ledger.Accounts, id(account))
	if err != nil || a.Workspace != workspace || !a.State.Open(eventstore.End) {
		return "", err
	}
	return a.State.Name, nil
}

// EditDraftEntry changes an entry of a draft.
func EditDraftEntry(ctx context.Context, req commands.Request, b *Books, number int64, c orderdraft.EditEntry) (out commands.Outcome[orderdraft.State], err error) {
	if c.ClientName, err = b.clientName(ctx, req.Workspace, c.ClientID.Value); err != nil {
		return out, err
	}
	c.Reveal = b.reveal(ctx)
	return commands.Handle(ctx, b.Commands, req, orderdraft.Kind, id(number), c)
}

// AddDraftEntry adds an entry to a draft.
func AddDraftEntry(ctx context.Context, req commands.Request, b *Books, draft int64, c orderdraft.AddEntry) (out commands.Outcome[orderdraft.State], err error) {
	if out, done, err := commands.Earlier(ctx, b.Commands, req, orderdraft.Kind); done || err != nil {
		return out, err
	}
	if c.ClientName, err = b.clientName(ctx, req.Workspace, c.ClientID.Value); err != nil {
		return out, err
	}
	if ready, err := b.wouldDecide(ctx, req, draft, c); ready && err == nil {
		c.ID, err = b.Commands.Numbers(ctx, orderdraft.Entries, 1)
		if err != nil {
			return out, err
		}
	}
	return commands.Handle(ctx, b.Commands, req, orderdraft.Kind, id(draft), c)
}

// wouldDecide reports whether a command on a draft would be decided and is no dry run, so that its numbers are not used up by a refusal.
func (b *Books) wouldDecide(ctx context.Context, req commands.Request, draft int64, c event.Command[orderdraft.State]) (bool, error) {
	now, err := commands.Load(ctx, b.Commands.Fresh(), orderdraft.Kind, id(draft))
	if err != nil || req.DryRun || now.Workspace != req.Workspace || req.IfMatch != nil && *req.IfMatch != now.Revision {
		return false, err
	}
	_, err = c.Decide(now.State)
	return err == nil, nil // Handle returns it
}

// AssignSlips gives the entries of a draft the next slip numbers.
func AssignSlips(ctx context.Context, req commands.Request, b *Books, number int64) (commands.Outcome[orderdraft.State], error) {
	highest, err := b.Reads.HighestSlip(ctx, req.Workspace, number)
	if err != nil {
		return commands.Outcome[orderdraft.State]{}, fmt.Errorf("find the highest slip number: %w", err)
	}
	return commands.Handle(ctx, b.Commands, req, orderdraft.Kind, id(number), orderdraft.AssignSlips{Next: highest + 1, Reveal: b.reveal(ctx)})
}

// ConvertDraft turns a draft into client orders, all or none. It returns as soon as the decisive event is in the log and the orders'
// streams are told, or that has failed: then the next command on one of the orders, or the next start, tells them.
func ConvertDraft(ctx context.Context, req commands.Request, b *Books, draft int64, c orderdraft.Convert) (out commands.Outcome[orderdraft.State], err error) {
	if out, done, err := commands.Earlier(ctx, b.Commands, req, orderdraft.Kind); done || err != nil {
		return out, err
	}
	c.Today, c.Reveal = b.Today(), b.reveal(ctx)
	now, err := commands.Load(ctx, b.Commands.Fresh(), orderdraft.Kind, id(draft))
	if err != nil {
		return out, err
	}
	if c.Gone, err = b.goneClients(ctx, req.Workspace, now.State.Entries); err != nil {
		return out, err
	}
	if planned, err := c.Plan(now.State); err == nil && now.Workspace == req.Workspace {
		found := map[string][]order.Warning{}
		for _, o := range planned {
			if found[slipOf(o.Order)], err = b.slipWarnings(ctx, req.Workspace, o.Order); err != nil {
				return out, err
			}
		}
		c.Found = func(o order.Order) []order.Warning { return found[slipOf(o)] }
		if ready, err := b.wouldDecide(ctx, req, draft, c); ready && err == nil {
			c.Room = len(now.State.Entries)
			if c.FirstOrder, err = b.Commands.Numbers(ctx, order.Kind.Category(), int64(c.Room)); err != nil {
				return out, err
			}
			if c.FirstItem, err = b.Commands.Numbers(ctx, number.OrderItems, int64(c.Room)); err != nil {
				return out, err
			}
		}
	}
	out, err = commands.Handle(ctx, b.Commands, req, orderdraft.Kind, id(draft), c)
	if err != nil || !out.Changed || req.DryRun {
		return out, err
	}
	if err := b.tellOrders(context.WithoutCancel(ctx), draft); err != nil {
		b.Log.Warn("a conversion is not told to its orders; it will be on demand, or at the next start", "draft", draft, "error", err)
	}
	return out, nil
}

// goneClients returns the clients of entries who were deleted.
func (b *Books) goneClients(ctx context.Context, workspace uuid.UUID, entries []orderdraft.Entry) (map[int64]bool, error) {
	gone := map[int64]bool{}
	for _, e := range entries {
		if e.ClientID == nil {
			continue
		}
		if _, known := gone[*e.ClientID]; !known {
			name, err := b.clientName(ctx, workspace, *e.ClientID)
			if err != nil {
				return nil, err
			}
			gone[*e.ClientID] = name == ""
		}
	}
	return gone, nil
}

// slipOf names an order of a draft by its client and slip.
func slipOf(o order.Order) string { return id(o.Client) + " " + order.Folded(o.Slip) }
