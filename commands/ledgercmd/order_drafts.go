package ledgercmd

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/domain/ledger/client"
	"bahi/domain/ledger/order"
	"bahi/domain/ledger/orderdraft"
	"bahi/domain/number"
)

// draftReads are the queries of commands on order drafts.
type draftReads interface {
	// Clients returns the clients of the workspace. The result may be stale.
	Clients(ctx context.Context, workspace uuid.UUID) ([]orderdraft.Client, error)
	// HighestSlip returns the greatest numeric slip number of all orders and of all drafts except one, 0 if there is
	// none.
	HighestSlip(ctx context.Context, workspace uuid.UUID, but int64) (int64, error)
}

// EditDraft changes a draft.
func EditDraft(ctx context.Context, req commands.Request, b *Books, number int64,
	c orderdraft.Edit) (out commands.Outcome[orderdraft.State], err error) {
	c.Today = b.Today()
	if c.ClientName, err = b.clientName(ctx, req.Workspace, c.Client.Value); err != nil {
		return out, err
	}
	c.Reveal = b.reveal(ctx)
	return commands.Handle(ctx, b.Commands, req, orderdraft.Kind, id(number), c)
}

// reveal returns the function that decrypts the personal values of drafts.
func (b *Books) reveal(ctx context.Context) orderdraft.Reveal {
	return func(s orderdraft.State) (orderdraft.State, error) { return commands.Reveal(ctx, b.Commands, s) }
}

// clientName returns the name of an open client, or "".
func (b *Books) clientName(ctx context.Context, workspace uuid.UUID, account int64) (string, error) {
	if account == 0 {
		return "", nil
	}
	a, err := commands.Load(ctx, b.Commands.Fresh(), client.Ledger.Accounts, id(account))
	if err != nil || a.Workspace != workspace || !a.State.Open() {
		return "", err
	}
	return a.State.Name, nil
}

// EditDraftEntry changes an entry of a draft.
func EditDraftEntry(ctx context.Context, req commands.Request, b *Books, number int64,
	c orderdraft.EditEntry) (out commands.Outcome[orderdraft.State], err error) {
	if c.ClientName, err = b.clientName(ctx, req.Workspace, c.ClientID.Value); err != nil {
		return out, err
	}
	c.Reveal = b.reveal(ctx)
	return commands.Handle(ctx, b.Commands, req, orderdraft.Kind, id(number), c)
}

// AddDraftEntry adds an entry to a draft.
func AddDraftEntry(ctx context.Context, req commands.Request, b *Books, draft int64,
	c orderdraft.AddEntry) (out commands.Outcome[orderdraft.State], err error) {
	if c.ClientName, err = b.clientName(ctx, req.Workspace, c.ClientID.Value); err != nil {
		return out, err
	}
	return commands.Do(ctx, b.Commands, req, orderdraft.Kind, func(ctx context.Context, tx *commands.Tx) error {
		now, err := loadDraft(ctx, tx, draft, req)
		if err != nil {
			return err
		}
		if _, err := c.Decide(now.State); err != nil {
			return err
		}
		if c.ID, err = b.numbers(ctx, tx, orderdraft.Entries, 1); err != nil {
			return err
		}
		_, err = commands.Decide(ctx, tx, orderdraft.Kind, id(draft), c)
		return err
	})
}

// loadDraft returns a draft of the request's workspace at the expected revision, or an error before ids are assigned.
func loadDraft(ctx context.Context, tx *commands.Tx, draft int64, req commands.Request) (commands.Loaded[orderdraft.State], error) {
	now, err := commands.Load(ctx, tx, orderdraft.Kind, id(draft))
	switch {
	case err != nil:
		return now, err
	case !now.State.Open() || now.Workspace != req.Workspace:
		return now, orderdraft.ErrNotFound
	case req.IfMatch != nil && *req.IfMatch != now.Revision:
		return now, commands.ErrStale
	}
	return now, nil
}

// AssignSlips assigns the next slip numbers to the entries of a draft.
func AssignSlips(ctx context.Context, req commands.Request, b *Books, number int64) (commands.Outcome[orderdraft.State], error) {
	highest, err := b.Reads.HighestSlip(ctx, req.Workspace, number)
	if err != nil {
		return commands.Outcome[orderdraft.State]{}, fmt.Errorf("find the highest slip number: %w", err)
	}
	return commands.Handle(ctx, b.Commands, req, orderdraft.Kind, id(number), orderdraft.AssignSlips{Next: highest + 1, Reveal: b.reveal(ctx)})
}

// ConvertDraft converts a draft to client orders, all or none.
func ConvertDraft(ctx context.Context, req commands.Request, b *Books, draft int64,
	c orderdraft.Convert) (commands.Outcome[orderdraft.State], error) {
	c.Today, c.Reveal = b.Today(), b.reveal(ctx)
	return commands.Do(ctx, b.Commands, req, orderdraft.Kind, func(ctx context.Context, tx *commands.Tx) error {
		now, err := loadDraft(ctx, tx, draft, req)
		if err != nil {
			return err
		}
		c.Gone = map[int64]bool{}
		for _, e := range now.State.Entries {
			if e.ClientID != nil {
				open, err := isOpen(ctx, tx, client.Ledger, *e.ClientID, req.Workspace)
				if err != nil {
					return err
				}
				c.Gone[*e.ClientID] = !open
			}
		}
		planned, err := c.Plan(now.State)
		if err != nil {
			return err
		}
		found := map[string][]order.Warning{}
		for _, o := range planned {
			if found[slipOf(o.Order)], err = b.slipWarnings(ctx, req.Workspace, o.Order); err != nil {
				return err
			}
		}
		c.Found = func(o order.Order) []order.Warning { return found[slipOf(o)] }
		if c.FirstOrder, err = b.numbers(ctx, tx, order.Kind.Category(), len(planned)); err != nil {
			return err
		}
		if c.FirstItem, err = b.numbers(ctx, tx, number.OrderItems, len(now.State.Entries)); err != nil {
			return err
		}
		after, err := commands.Decide(ctx, tx, orderdraft.Kind, id(draft), c)
		if err != nil || tx.DryRun() {
			return err
		}
		for _, o := range after.State.Orders {
			commands.NewRecord(tx, order.Kind, id(o.ID))
			made := order.Make{Added: order.Added{Order: o.Order, Draft: draft}}
			if _, err := commands.Decide(ctx, tx, order.Kind, id(o.ID), made); err != nil {
				return err
			}
		}
		return nil
	})
}

// slipOf returns the key of a draft's order: its client and slip.
func slipOf(o order.Order) string { return id(o.Client) + " " + order.NormalisedSlip(o.Slip) }
