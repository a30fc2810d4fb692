package projections

import (
	"cmp"
	"context"
	"iter"
	"time"

	"bahi/domain/event"
	"bahi/eventstore"
)

// idleCheckpoint is how long a checkpoint may lag that only passes over events of other projections. Without it, each append would cost a
// transaction per projection.
const idleCheckpoint = 10 * time.Millisecond

// coalesced yields the batches of a subscription after a position. Batches without an event for the projection wait briefly for one that
// has some, and so do all batches of a projection that gathers. Each batch ends with an event, by which the checkpoint identifies the
// log; positions of a store's own events would not do.
func coalesced(ctx context.Context, p *Projection, store eventstore.Store, after event.Position) iter.Seq2[eventstore.Batch, error] {
	type item struct {
		batch eventstore.Batch
		err   error
	}
	return func(yield func(eventstore.Batch, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		read := make(chan item, 1)
		go func() {
			defer close(read)
			for batch, err := range store.Subscribe(ctx, after) {
				select {
				case read <- item{batch, err}:
				case <-ctx.Done():
					return
				}
			}
		}()
		var (
			idle   eventstore.Batch
			late   <-chan time.Time
			wanted eventstore.Batch
			due    <-chan time.Time
		)
		for {
			select {
			case next, more := <-read:
				switch {
				case !more:
					return
				case next.err != nil:
					yield(eventstore.Batch{}, next.err)
					return
				case len(next.batch.Events) == 0:
					continue
				}
				next.batch.UpTo = next.batch.Events[len(next.batch.Events)-1].Position
				if !p.wants(next.batch) && len(wanted.Events) == 0 {
					idle = eventstore.Batch{Events: next.batch.Events[len(next.batch.Events)-1:], UpTo: next.batch.UpTo}
					if late == nil {
						late = time.After(cmp.Or(p.idle, idleCheckpoint))
					}
					continue
				}
				late = nil
				if p.gather > 0 {
					wanted = eventstore.Batch{Events: append(wanted.Events, next.batch.Events...), UpTo: next.batch.UpTo}
					if due == nil {
						due = time.After(p.gather)
					}
					if len(wanted.Events) < fillBatch {
						continue
					}
					next.batch, wanted, due = wanted, eventstore.Batch{}, nil
				}
				if !yield(next.batch, nil) {
					return
				}
			case <-due:
				due = nil
				if !yield(wanted, nil) {
					return
				}
				wanted = eventstore.Batch{}
			case <-late:
				late = nil
				if !yield(idle, nil) {
					return
				}
			case <-ctx.Done():
				yield(eventstore.Batch{}, ctx.Err())
				return
			}
		}
	}
}

func (p *Projection) wants(b eventstore.Batch) bool {
	for i := range b.Events {
		if p.takes(&b.Events[i]) {
			return true
		}
	}
	return false
}
