package app

import (
	"context"
	"iter"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

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

// LogReads adapts a store for readmodels and the interface.
type LogReads struct {
	eventstore.Store

	whole *lru.Cache[event.Position, event.Position] // results of Whole
}

// NewLogReads returns the reads of a store.
func NewLogReads(store eventstore.Store) LogReads {
	whole, _ := lru.New[event.Position, event.Position](1024) // fails only for sizes below 1
	return LogReads{store, whole}
}

// At returns the event at a position, and whether there is one.
func (l LogReads) At(ctx context.Context, at event.Position) (event.Stored, bool, error) {
	for e, err := range l.ReadAll(ctx, at+1, eventstore.Backwards) {
		return e, err == nil && e.Position == at, err
	}
	return event.Stored{}, false, nil
}

// Stream yields the events of a stream.
func (l LogReads) Stream(ctx context.Context, stream string, from int64) iter.Seq2[event.Stored, error] {
	return l.ReadStream(ctx, stream, from, eventstore.Forwards)
}

// Follow calls take with the events after a position, and later with new ones. It ends with the error of take or of the subscription.
func (l LogReads) Follow(ctx context.Context, after event.Position, take func([]event.Stored) error) error {
	for batch, err := range l.Subscribe(ctx, after) {
		if err == nil {
			err = take(batch.Events)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Whole returns the position itself, or if it is inside a transaction, the end of the one before.
func (l LogReads) Whole(ctx context.Context, position event.Position) (event.Position, error) {
	if found, known := l.whole.Get(position); known {
		return found, nil
	}
	whole, there := position, false
	for e, err := range l.ReadAll(ctx, min(position, eventstore.End-1)+1, eventstore.Backwards) {
		if err != nil {
			return 0, err
		}
		there = there || e.Position == position
		if e.Position+event.Position(event.More(e.Meta)) <= position {
			break
		}
		whole = e.Position - 1
	}
	if there { // otherwise the result may still change
		l.whole.Add(position, whole)
	}
	return whole, nil
}

// RecordedAt returns the time of the event at a position, or of the last one before it; the zero time for the empty log.
func (l LogReads) RecordedAt(ctx context.Context, position event.Position) (time.Time, error) {
	e, _, err := l.At(ctx, position)
	return e.At, err
}
