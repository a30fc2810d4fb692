package ops

import (
	"context"
	"fmt"
	"iter"
	"math"
	"time"

	"bahi/domain/event"
)

// Walked is [Events] for a log outside Postgres. That log has an index only by stream, so any other search reads along the log: it reads a
// limited number of events and reports how far it came.
type Walked struct {
	Log  Log
	Most int // events read by a search; 0: 50,000
}

const defaultMost = 50_000

// Search implements [Events.Search].
func (w *Walked) Search(ctx context.Context, f Filter, size int) (Found, error) {
	after, before, err := w.bounds(ctx, f)
	if err != nil || before <= after+1 {
		return Found{From: before, To: before - 1}, err
	}
	events := w.Log.Before(ctx, before)
	if f.Stream != "" {
		newest, err := w.revisionBefore(ctx, f.Stream, before)
		if err != nil || newest < 0 {
			return Found{From: after + 1, To: before - 1}, err
		}
		events = w.Log.Back(ctx, f.Stream, newest)
	}
	found, last, more, err := w.look(events, f, after, before, size)
	if !more {
		last = after + 1
	}
	return Found{Events: found, From: last, To: before - 1, More: more}, err
}

// Onward implements [Events.Onward].
func (w *Walked) Onward(ctx context.Context, f Filter, size int) (Found, error) {
	after, before, err := w.bounds(ctx, f)
	if err != nil || before <= after+1 {
		return Found{From: after + 1, To: after}, err
	}
	events := w.Log.After(ctx, after)
	if f.Stream != "" {
		passed, err := w.revisionBefore(ctx, f.Stream, after+1)
		if err != nil {
			return Found{}, err
		}
		events = w.Log.Stream(ctx, f.Stream, passed+1)
	}
	found, last, more, err := w.look(events, f, after, before, size)
	if !more {
		last = before - 1
	}
	return Found{Events: found, From: after + 1, To: last, More: more}, err
}

// bounds returns the positions between which a filter may match, both exclusive.
func (w *Walked) bounds(ctx context.Context, f Filter) (after, before event.Position, err error) {
	head, err := w.Log.Head(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("search the log: %w", err)
	}
	after, before = f.After, head+1
	if f.Before > 0 {
		before = min(before, f.Before)
	}
	if f.From != nil {
		earlier, err := w.Log.PositionAt(ctx, f.From.Add(-time.Microsecond))
		if err != nil {
			return 0, 0, fmt.Errorf("search the log: %w", err)
		}
		after = max(after, earlier)
	}
	if f.To != nil {
		last, err := w.Log.PositionAt(ctx, *f.To)
		if err != nil {
			return 0, 0, fmt.Errorf("search the log: %w", err)
		}
		before = min(before, last+1)
	}
	return after, before, nil
}

// look returns the matches between two positions, the last position that it read, and whether it read any.
func (w *Walked) look(events iter.Seq2[event.Stored, error], f Filter, after, before event.Position, size int) (
	found []Event, last event.Position, more bool, err error,
) {
	most, looked, began := orElse(w.Most, defaultMost), 0, time.Now()
	for e, err := range events {
		switch {
		case err != nil:
			return nil, 0, false, fmt.Errorf("search the log: %w", err)
		case e.Position <= after || before <= e.Position:
			return found, last, false, nil
		case len(found) == size || looked == most || looked > 0 && time.Since(began) > searchWithin:
			return found, last, true, nil
		}
		looked++
		if last = e.Position; f.Matches(e) {
			found = append(found, eventOf(e))
		}
	}
	return found, last, false, nil
}

// revisionBefore returns the greatest revision of a stream before a position, or -1, by bisection.
func (w *Walked) revisionBefore(ctx context.Context, stream string, position event.Position) (int64, error) {
	low, high := int64(-1), int64(-1)
	for e, err := range w.Log.Back(ctx, stream, math.MaxInt64) {
		if err != nil {
			return -1, fmt.Errorf("search the log: %w", err)
		}
		if high = e.Revision; e.Position < position {
			return high, nil
		}
		break
	}
	for low < high {
		middle := low + (high-low+1)/2
		for e, err := range w.Log.Stream(ctx, stream, middle) {
			if err != nil {
				return -1, fmt.Errorf("search the log: %w", err)
			}
			if e.Position < position {
				low = middle
			} else {
				high = middle - 1
			}
			break
		}
	}
	return low, nil
}

// Event implements [Events.Event].
func (w *Walked) Event(ctx context.Context, at event.Position) (e Event, p Place, err error) {
	found, there, err := w.Log.At(ctx, at)
	if err == nil && !there {
		err = ErrNoEvent
	}
	if err != nil {
		return e, p, err
	}
	if p.Head, err = w.Log.Head(ctx); err != nil {
		return e, p, err
	}
	for s, err := range w.Log.Stream(ctx, found.Stream, max(0, found.Revision-1)) {
		switch {
		case err != nil:
			return e, p, err
		case s.Revision < found.Revision:
			p.Previous = s.Position
		case s.Revision > found.Revision:
			p.Next = s.Position
			return eventOf(found), p, nil
		}
	}
	return eventOf(found), p, nil
}

// Upto implements [Events.Upto].
func (w *Walked) Upto(ctx context.Context, stream string, revision int64, most int) (events []Event, err error) {
	for e, err := range w.Log.Stream(ctx, stream, max(0, revision-int64(most)+1)) {
		if err != nil {
			return nil, err
		}
		if e.Revision > revision {
			break
		}
		events = append(events, eventOf(e))
	}
	return events, nil
}

// Head implements [Events.Head].
func (w *Walked) Head(ctx context.Context) (at event.Position, recorded time.Time, err error) {
	for e, err := range w.Log.Before(ctx, math.MaxInt64) {
		return e.Position, e.At, err
	}
	return 0, time.Time{}, nil
}

// PositionAt implements [Events.PositionAt].
func (w *Walked) PositionAt(ctx context.Context, moment time.Time) (event.Position, error) {
	return w.Log.PositionAt(ctx, moment)
}
