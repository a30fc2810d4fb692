package ledger

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/domain/event"
	"bahi/domain/ledger/order"
	"bahi/domain/ledger/takada"
	"bahi/eventstore"
)

// One event deletes a client with its orders and takadas, or an order with its takadas (CONTRACT.md 6.4). A reader of the log knows from it
// that they are gone. Their own streams are told afterwards, for readers of one stream; the next start tells those that a crash left out.

// passesAfterwards is how many passes follow on an answer, so that a process that is asked to stop need not wait for long. The next
// deletion or start goes on.
const passesAfterwards = 2

// closeAfterwards tells the streams of what was deleted, after the request was answered.
func (b *Books) closeAfterwards(ctx context.Context) {
	after := context.WithoutCancel(ctx)
	b.filling.Go(func() {
		for range passesAfterwards {
			more, err := b.closeSome(after)
			if err != nil {
				b.Log.Warn("deletions are not told to all streams; they will be at the next start", "error", err)
			}
			if err != nil || !more {
				return
			}
		}
	})
}

// ResumeClosings tells the streams of orders and takadas that these were deleted with another record, where that is not done yet.
func ResumeClosings(ctx context.Context, b *Books) error {
	for {
		if more, err := b.closeSome(ctx); err != nil || !more {
			return err
		}
	}
}

// closeSome tells the first streams. It reports whether there were any.
func (b *Books) closeSome(ctx context.Context) (more bool, err error) {
	found, err := b.Reads.UnfinishedClosings(ctx)
	if err != nil {
		return false, fmt.Errorf("find what was deleted with another record: %w", err)
	}
	var appends []eventstore.Transaction
	for _, c := range found {
		one, err := b.close(ctx, c)
		if err != nil {
			return false, err
		}
		appends = append(appends, one...)
	}
	if len(appends) == 0 {
		return false, nil
	}
	for _, r := range b.Commands.AppendEach(ctx, appends) {
		if _, moved := errors.AsType[*eventstore.WrongRevision](r.Err); r.Err != nil && !moved { // what moved is found again
			err = errors.Join(err, r.Err)
		}
	}
	return true, err
}

// close returns the append that tells a stream, none if it has been told.
func (b *Books) close(ctx context.Context, c order.Closing) ([]eventstore.Transaction, error) {
	switch category, number := event.SplitStream(c.Stream); category {
	case order.Kind.Category():
		if c.Draft != 0 { // the order's stream may not have begun
			if err := b.tellOrders(ctx, c.Draft); err != nil {
				return nil, err
			}
		}
		return closing(ctx, b, c, order.Kind, number, order.State.Exists, order.Deleted{})
	case takada.Kind.Category():
		return closing(ctx, b, c, takada.Kind, number, takada.State.Exists, takada.Deleted{})
	default:
		return nil, fmt.Errorf("%s is nothing that ends with another record", c.Stream)
	}
}

func closing[S any](
	ctx context.Context, b *Books, c order.Closing, kind *event.Kind[S], number string, exists func(S) bool, deleted event.Event[S],
) ([]eventstore.Transaction, error) {
	l, err := commands.Load(ctx, b.Commands.Fresh(), kind, number)
	if err != nil || !exists(l.State) {
		return nil, err
	}
	meta, err := b.Commands.MetaAt(ctx, c.Cause, c.Position)
	if err != nil {
		return nil, err
	}
	space := uuid.NewSHA1(uuid.NameSpaceOID, []byte(c.Stream))
	e, err := kind.Encode(uuid.NewSHA1(space, []byte(strconv.FormatUint(uint64(c.Position), 10))), deleted, meta)
	if err != nil {
		return nil, err
	}
	return []eventstore.Transaction{eventstore.To(c.Stream, eventstore.Expected(l.Revision), e)}, nil
}
