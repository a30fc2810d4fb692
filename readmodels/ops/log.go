package ops

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"bahi/domain/event"
	"bahi/domain/fault"
)

// Log is the log, wherever it is. Only the order of its positions means something.
type Log interface {
	// After yields the events after a position, oldest first.
	After(ctx context.Context, at event.Position) iter.Seq2[event.Stored, error]
	// Before yields the events before a position, newest first.
	Before(ctx context.Context, at event.Position) iter.Seq2[event.Stored, error]
	// At returns the event at a position; false when there is none.
	At(ctx context.Context, at event.Position) (event.Stored, bool, error)
	// Stream yields a stream's events from a revision on, oldest first.
	Stream(ctx context.Context, stream string, from int64) iter.Seq2[event.Stored, error]
	// Back yields a stream's events up to a revision, newest first.
	Back(ctx context.Context, stream string, from int64) iter.Seq2[event.Stored, error]
	// PositionAt is the greatest position recorded at or before a moment, 0 when there is none.
	PositionAt(ctx context.Context, moment time.Time) (event.Position, error)
	// Head is the position of the newest event.
	Head(ctx context.Context) (event.Position, error)
}

// ErrNoPlace is the error of a search from a position without an event, where the log finds its way only from events.
var ErrNoPlace = fault.New(fault.Invalid, "There is no event at this position, and a log in EventStoreDB is only read from the position of an event, or 0")

// MetaOf is what an event says by itself: nothing, where somebody else wrote it in a form that is not ours.
func MetaOf(e event.Stored) event.Meta { return metaOf(e.Meta) }

func metaOf(text []byte) (meta event.Meta) {
	if json.Unmarshal(text, &meta) != nil {
		return event.Meta{}
	}
	return meta
}

// Matches says whether the filter finds an event, by all of it but positions and moments.
func (f Filter) Matches(e event.Stored) bool {
	category, _ := event.SplitStream(e.Stream)
	if f.Stream != "" && f.Stream != e.Stream || f.Category != "" && f.Category != category || f.Type != "" && f.Type != e.Type {
		return false
	}
	if f.Actor == "" && f.Workspace == nil {
		return true
	}
	meta := MetaOf(e)
	return (f.Actor == "" || f.Actor == meta.Actor) && (f.Workspace == nil || *f.Workspace == meta.Workspace)
}

func eventOf(e event.Stored) Event {
	return Event{
		Position: e.Position, Stream: e.Stream, Revision: e.Revision, ID: e.ID, Type: e.Type, At: e.At.UTC(),
		Meta: MetaOf(e), MetaText: e.Meta, Data: e.Data,
	}
}
