package opsview

import (
	"context"
	"encoding/json"
	"iter"

	"bahi/domain/event"
)

// Log reads the log through its store: only a log in Postgres has a table.
type Log interface {
	// At returns the event at a position, or false.
	At(ctx context.Context, at event.Position) (event.Stored, bool, error)
	// Stream yields a stream's events from a revision on, oldest first.
	Stream(ctx context.Context, stream string, from int64) iter.Seq2[event.Stored, error]
	// Head returns the position of the newest event.
	Head(ctx context.Context) (event.Position, error)
}

// MetaOf returns an event's metadata, or none if another program wrote metadata of another form.
func MetaOf(text []byte) (meta event.Meta) {
	if json.Unmarshal(text, &meta) != nil {
		return event.Meta{}
	}
	return meta
}

// Matches reports whether the filter matches an event. It ignores positions and times.
func (f Filter) Matches(e event.Stored) bool {
	category, _ := event.SplitStream(e.Stream)
	if f.Stream != "" && f.Stream != e.Stream || f.Category != "" && f.Category != category || f.Type != "" && f.Type != e.Type {
		return false
	}
	if f.Actor == "" && f.Workspace == nil {
		return true
	}
	meta := MetaOf(e.Meta)
	return (f.Actor == "" || f.Actor == meta.Actor) && (f.Workspace == nil || *f.Workspace == meta.Workspace)
}
