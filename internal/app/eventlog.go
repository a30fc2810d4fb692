package app

import (
	"context"
	"iter"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/journal"
	"bahi/eventstore/postgres"
)

// openLog opens the log of the settings, with its journal.
func (s *System) openLog(ctx context.Context) (*postgres.Store, error) {
	if s.Settings.EventStore == "" {
		return postgres.Open(ctx, s.Pool, s.Log)
	}
	server, err := journal.Connect(s.Settings.EventStore, s.Log)
	if err != nil {
		return nil, err
	}
	return postgres.OpenJournaled(ctx, s.Pool, s.Log, server)
}

// ViewedLog adapts a store to the views' Log.
type ViewedLog struct{ eventstore.Store }

// At implements the views' Log.
func (l ViewedLog) At(ctx context.Context, at event.Position) (event.Stored, bool, error) {
	for e, err := range l.ReadAll(ctx, at+1, eventstore.Backwards) {
		return e, err == nil && e.Position == at, err
	}
	return event.Stored{}, false, nil
}

// Stream implements the views' Log.
func (l ViewedLog) Stream(ctx context.Context, stream string, from int64) iter.Seq2[event.Stored, error] {
	return l.ReadStream(ctx, stream, from, eventstore.Forwards)
}
