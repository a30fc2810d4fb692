package projections

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/signal"
)

// idleCheckpoint is the time that the checkpoint may lag behind events of other projections that no reader requires. Without this delay,
// each append would cost a transaction per projection.
const idleCheckpoint = 200 * time.Millisecond

// demand is the position for which a projection's readers wait. Events up to this position are folded at once.
type demand struct {
	mu     sync.Mutex
	upTo   event.Position
	raised signal.Signal
}

func (d *demand) raise(to event.Position) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if to > d.upTo {
		d.upTo = to
		d.raised.Notify()
	}
}

func (d *demand) now() (event.Position, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.upTo, d.raised.Wait()
}

// coalesced yields the batches of a subscription after a position. It combines batches: a batch without an event for the projection waits
// briefly for another, as does every batch of a projection with a batch delay. A batch that a reader requires does not wait. Each batch
// ends with an event, which identifies the log in the checkpoint. A store with delayed subscriptions delays events itself. coalesced then
// waits only for events of the same time.
func coalesced(ctx context.Context, p *Projection, store eventstore.Store, after event.Position, asked *demand) iter.Seq2[eventstore.Batch,
	error] {
	type item struct {
		batch eventstore.Batch
		err   error
	}
	return func(yield func(eventstore.Batch, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		read, batches, wait := make(chan item, 1), store.Subscribe, time.After
		if patient, is := store.(eventstore.DelayedSubscriber); is {
			batches = func(ctx context.Context, after event.Position) iter.Seq2[eventstore.Batch, error] {
				return patient.SubscribeDelayed(ctx, after, p.patience(asked))
			}
			wait = func(most time.Duration) <-chan time.Time { return time.After(most / waitedPart) }
		}
		go func() {
			defer close(read)
			for batch, err := range batches(ctx, after) {
				select {
				case read <- item{batch, err}:
				case <-ctx.Done():
					return
				}
			}
		}()
		var (
			kept   eventstore.Batch // not yielded yet
			wanted bool             // kept has events that the projection folds
			due    <-chan time.Time
			over   bool // the batch is due
			done   = after
		)
		for {
			upTo, raised := asked.now()
			if len(kept.Events) > 0 && (over || upTo > done || wanted && (p.gather == 0 || len(kept.Events) >= fillBatch)) {
				done = kept.UpTo
				if !yield(kept, nil) {
					return
				}
				kept, wanted, due, over = eventstore.Batch{}, false, nil, false
				continue
			}
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
				events := next.batch.Events
				last := len(events) - 1
				switch {
				case wanted:
					kept.Events = append(kept.Events, events...)
				case p.wants(next.batch):
					wanted, due = true, wait(p.gather)
					kept.Events = slices.Clip(events) // later events must not be appended to the store's memory
				default:
					kept.Events = events[last:]
					if due == nil {
						due = wait(cmp.Or(p.idle, idleCheckpoint))
					}
				}
				kept.UpTo = events[last].Position
			case <-due:
				over = true
			case <-raised:
			case <-ctx.Done():
				yield(eventstore.Batch{}, ctx.Err())
				return
			}
		}
	}
}

// waitedPart divides the wait for events that have already waited in the store.
const waitedPart = 8

// patience returns the delay for a store with delayed subscriptions: the delay of [coalesced], and no delay for events that a reader
// requires.
func (p *Projection) patience(asked *demand) eventstore.DeliveryDelay {
	return eventstore.DeliveryDelay{
		For: func(events []event.Stored) time.Duration {
			upTo, _ := asked.now()
			switch {
			case len(events) == 0 || events[0].Position <= upTo:
				return 0
			case p.wants(eventstore.Batch{Events: events}):
				return p.gather
			default:
				return cmp.Or(p.idle, idleCheckpoint)
			}
		},
		Over: func() <-chan struct{} {
			_, raised := asked.now()
			return raised
		},
	}
}

func (p *Projection) wants(b eventstore.Batch) bool {
	passed := "" // a known type that the projection does not fold
	for i := range b.Events {
		e := &b.Events[i]
		switch {
		case e.Type == passed:
		case p.takes(e):
			return true
		case isKnown(e.Type):
			passed = e.Type
		}
	}
	return false
}
