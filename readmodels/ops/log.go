package ops

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"bahi/domain/event"
)

// Log is the log in any store. Only the order of its positions means something.
type Log interface {
	// After yields the events after a position, oldest first.
	After(ctx context.Context, at event.Position) iter.Seq2[event.Stored, error]
	// Before yields the events before a position, newest first.
	Before(ctx context.Context, at event.Position) iter.Seq2[event.Stored, error]
	// At returns the event at a position, or false.
	At(ctx context.Context, at event.Position) (event.Stored, bool, error)
	// Stream yields a stream's events from a revision on, oldest first.
	Stream(ctx context.Context, stream string, from int64) iter.Seq2[event.Stored, error]
	// Back yields a stream's events up to a revision, newest first.
	Back(ctx context.Context, stream string, from int64) iter.Seq2[event.Stored, error]
	// PositionAt returns the last position recorded at or before a time, 0 if there is none.
	PositionAt(ctx context.Context, moment time.Time) (event.Position, error)
	// Head returns the position of the newest event.
	Head(ctx context.Context) (event.Position, error)
}

// MetaOf returns an event's metadata, or none if another program wrote them in another form.
func MetaOf(e event.Stored) event.Meta { return metaOf(e.Meta) }

func metaOf(text []byte) (meta event.Meta) {
	if json.Unmarshal(text, &meta) != nil {
		return event.Meta{}
	}
	return meta
}

// Matches reports whether the filter matches an event, apart from positions and times.
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
