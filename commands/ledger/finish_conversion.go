package ledger

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/domain/ledger/order"
	"bahi/domain/ledger/orderdraft"
	"bahi/eventstore"
)

// One event converts a draft into orders and ends it (CONTRACT.md 6.4). The streams of the orders are told afterwards, and the draft's own
// stream last: a draft that was converted and has not ended is unfinished.

// ResumeConversions finishes the conversions that earlier processes left unfinished.
func ResumeConversions(ctx context.Context, b *Books) error {
	drafts, err := b.Reads.UnfinishedConversions(ctx)
	if err != nil {
		return fmt.Errorf("find unfinished conversions of drafts: %w", err)
	}
	for _, draft := range drafts {
		if err := b.tellOrders(ctx, draft); err != nil {
			return err
		}
	}
	return nil
}

// tellOrders appends the first event of each order that a draft was converted into, and ends the draft. The ids of the events are derived from the
// draft, so doing it again changes nothing. It does nothing for a draft that was not converted, or has ended.
func (b *Books) tellOrders(ctx context.Context, draft int64) error {
	l, err := commands.Load(ctx, b.Commands.Fresh(), orderdraft.Kind, id(draft))
	if err != nil || l.State.Orders == nil || l.State.Deleted {
		return err
	}
	stream := orderdraft.Kind.Stream(id(draft))
	space := uuid.NewSHA1(uuid.NameSpaceOID, []byte(stream))
	meta, err := b.Commands.MetaAt(ctx, stream, l.State.ConvertedAt)
	if err != nil {
		return err
	}
	appends := make([]eventstore.Transaction, len(l.State.Orders))
	for i, o := range l.State.Orders {
		e, err := order.Kind.Encode(uuid.NewSHA1(space, []byte(strconv.Itoa(i))), order.Added{Order: o.Order}, meta)
		if err != nil {
			return err
		}
		appends[i] = eventstore.To(order.Kind.Stream(id(o.ID)), eventstore.NoStream, e)
	}
	for _, r := range b.Commands.AppendEach(ctx, appends) {
		if _, told := errors.AsType[*eventstore.WrongRevision](r.Err); r.Err != nil && !told {
			return r.Err
		}
	}
	e, err := orderdraft.Kind.Encode(uuid.NewSHA1(space, []byte("end")), orderdraft.Deleted{}, meta)
	if err != nil {
		return err
	}
	for range maxOvertaken { // the outcome of the reply may be noted meanwhile
		r := b.Commands.AppendEach(ctx, []eventstore.Transaction{eventstore.To(stream, eventstore.Expected(l.Revision), e)})[0]
		if _, moved := errors.AsType[*eventstore.WrongRevision](r.Err); !moved {
			return r.Err
		}
		if l, err = commands.Load(ctx, b.Commands.Fresh(), orderdraft.Kind, id(draft)); err != nil || l.State.Deleted {
			return err
		}
	}
	return commands.ErrBusy
}

// tellOrder tells an order's stream of the conversion that made it, if a crash left that out.
func (b *Books) tellOrder(ctx context.Context, req commands.Request, number int64) error {
	if number == 0 || req.DryRun {
		return nil
	}
	o, err := commands.Load(ctx, b.Commands.Cached(), order.Kind, id(number))
	if err != nil || o.Revision >= 0 {
		return err
	}
	draft, err := b.Reads.DraftOf(ctx, req.Workspace, number)
	if err != nil || draft == 0 {
		return err
	}
	return b.tellOrders(ctx, draft)
}
