package audit

import (
	"iter"

	"bahi/domain/event"
)

// How much is read before it is dealt with: some chunks of a store, so that the store is at work meanwhile, and little memory,
// however large events are.
const (
	aheadBatches = 16
	aheadEvents  = 512     // of a batch
	aheadBytes   = 1 << 20 // of a batch, but for its last event
)

// ahead reads events while those before them are dealt with. A batch is good until the next one is asked for. An error comes
// alone, and last.
func ahead(events iter.Seq2[event.Stored, error]) iter.Seq2[[]event.Stored, error] {
	type batch struct {
		events []event.Stored
		err    error
	}
	return func(yield func([]event.Stored, error) bool) {
		batches, left, ended := make(chan batch, aheadBatches), make(chan struct{}), make(chan struct{})
		used := make(chan []event.Stored, aheadBatches) // room that batches had
		go func() {
			defer close(ended)
			defer close(batches)
			var (
				b    batch
				held int
				send = func() (goOn bool) {
					select {
					case batches <- b:
						b, held = batch{}, 0
						select {
						case b.events = <-used:
						default:
						}
						return true
					case <-left:
						return false
					}
				}
			)
			for e, err := range events {
				if b.err = err; err != nil {
					break
				}
				if b.events == nil {
					b.events = make([]event.Stored, 0, aheadEvents)
				}
				b.events = append(b.events, e)
				if held += sizeOf(&e); (len(b.events) == aheadEvents || held >= aheadBytes) && !send() {
					return
				}
			}
			send()
		}()
		defer func() { <-ended }()
		defer close(left)
		for b := range batches {
			if !yield(b.events, nil) {
				return
			}
			if b.err != nil {
				yield(nil, b.err)
				return
			}
			clear(b.events)
			select {
			case used <- b.events[:0]:
			default:
			}
		}
	}
}
