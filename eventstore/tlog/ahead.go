package tlog

import (
	"iter"

	"bahi/domain/event"
)

// These limits allow reading a few chunks ahead in little memory, even with large events.
const (
	aheadBatches = 16
	aheadEvents  = 512     // events in a batch
	aheadBytes   = 1 << 20 // size of a batch, not counting its last event
)

// ahead reads the next batches while the caller processes one. A batch is valid until the next one. An error comes last, without
// events.
func ahead(events iter.Seq2[event.Stored, error]) iter.Seq2[[]event.Stored, error] {
	type batch struct {
		events []event.Stored
		err    error
	}
	return func(yield func([]event.Stored, error) bool) {
		batches, left, ended := make(chan batch, aheadBatches), make(chan struct{}), make(chan struct{})
		used := make(chan []event.Stored, aheadBatches) // buffers of processed batches
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
