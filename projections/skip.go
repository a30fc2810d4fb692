package projections

import (
	"context"
	"fmt"

	"bahi/domain"
	"bahi/domain/event"
	"bahi/domain/subscriber"
	"bahi/eventstore"
)

// decoder decodes the events that a projection folds. It has the list of events that an operator has skipped. A follower uses one decoder
// while it holds its checkpoint.
type decoder struct {
	p       *Projection
	reveal  Reveal
	skipped map[event.Position]bool
}

// newDecoder returns a decoder with the list of skipped events.
func newDecoder(ctx context.Context, store eventstore.Store, p *Projection, reveal Reveal) (decoder, error) {
	d := decoder{p: p, reveal: reveal}
	for stored, err := range store.ReadStream(ctx, subscriber.Kind.Stream(p.Name), 0, eventstore.Forwards) {
		var recorded event.Recorded[any]
		if err == nil {
			recorded, err = domain.Catalogue.Decode(stored)
		}
		if err != nil {
			return d, fmt.Errorf("read the skipped events of %s: %w", p.Name, err)
		}
		if e, isSkip := recorded.Data.(subscriber.Skipped); isSkip && e.Version == p.Version {
			if d.skipped == nil {
				d.skipped = map[event.Position]bool{}
			}
			d.skipped[e.Position] = true
		}
	}
	return d, nil
}

// decode returns the events of a batch that the projection folds, with personal values opened. At a bad event, it returns those before its
// transaction, with the error.
func (d decoder) decode(ctx context.Context, batch eventstore.Batch) (decoded, error) {
	piece, err := d.p.decode(batch, d.skipped)
	return d.p.open(ctx, d.reveal, piece, err)
}
