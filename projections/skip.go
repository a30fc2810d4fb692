package projections

import (
	"context"
	"fmt"

	"bahi/domain"
	"bahi/domain/event"
	skips "bahi/domain/follower"
	"bahi/eventstore"
)

// decoder reads the events that a projection folds. A follower has one for as long as it holds its
// checkpoint, and knows then which events an operator lets it pass over.
type decoder struct {
	p       *Projection
	reveal  Reveal
	skipped map[event.Position]bool
}

// newDecoder looks up what is skipped.
func newDecoder(ctx context.Context, store eventstore.Store, p *Projection, reveal Reveal) (decoder, error) {
	d := decoder{p: p, reveal: reveal}
	for stored, err := range store.ReadStream(ctx, skips.Kind.Stream(p.Name), 0, eventstore.Forwards) {
		var recorded event.Recorded[any]
		if err == nil {
			recorded, err = domain.Catalogue.Decode(stored)
		}
		if err != nil {
			return d, fmt.Errorf("read what %s skips: %w", p.Name, err)
		}
		if e, isSkip := recorded.Data.(skips.Skipped); isSkip && e.Version == p.Version {
			if d.skipped == nil {
				d.skipped = map[event.Position]bool{}
			}
			d.skipped[e.Position] = true
		}
	}
	return d, nil
}

// decode returns a piece of the log as far as the projection wants it, its personal values opened. Of a
// batch with a bad event it answers what is before it, with the error.
func (d decoder) decode(ctx context.Context, batch eventstore.Batch) (decoded, error) {
	piece, err := d.p.decode(batch, d.skipped)
	return d.p.open(ctx, d.reveal, piece, err)
}
