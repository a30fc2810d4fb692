package audit

import (
	"context"
	"iter"
	"time"

	"bahi/domain/event"
	"bahi/readmodels/ops"
)

// Log is the log, wherever it is.
type Log interface {
	// After yields the events after a position, oldest first.
	After(ctx context.Context, at event.Position) iter.Seq2[event.Stored, error]
	// At answers the event at a position; false when there is none.
	At(ctx context.Context, at event.Position) (event.Stored, bool, error)
	// Stream yields a stream's events, oldest first.
	Stream(ctx context.Context, stream string) iter.Seq2[event.Stored, error]
	// PositionAt is the greatest position recorded at or before a moment.
	PositionAt(ctx context.Context, moment time.Time) (event.Position, error)
	// Head is the position of the newest event.
	Head(ctx context.Context) (event.Position, error)
}

// How much of a log that is not in Postgres one page looks at.
const (
	walkEvents = 50_000
	walkWithin = 2 * time.Second
)

// walk is a search without indexes, for a log that is not in Postgres.
func walk(ctx context.Context, log Log, f ops.Filter, size int) (found []event.Stored, page Page, err error) {
	after, upto := f.After, f.Before
	if f.From != nil {
		before, err := log.PositionAt(ctx, f.From.Add(-time.Microsecond))
		if err != nil {
			return nil, page, err
		}
		after = max(after, before)
	}
	if f.To != nil {
		last, err := log.PositionAt(ctx, *f.To)
		if err != nil {
			return nil, page, err
		}
		if upto == 0 || last+1 < upto {
			upto = last + 1
		}
	}
	page.Upto = after
	looked, began := 0, time.Now()
	for e, err := range log.After(ctx, after) {
		switch {
		case err != nil:
			return nil, page, err
		case (f.Before > 0 || f.To != nil) && e.Position >= upto:
			return found, page, nil
		case len(found) == size || looked == walkEvents || time.Since(began) > walkWithin:
			page.More, page.Next = true, page.Upto+1
			return found, page, nil
		}
		looked++
		if page.Upto = e.Position; Matches(f, e) {
			found = append(found, e)
		}
	}
	return found, page, nil
}
