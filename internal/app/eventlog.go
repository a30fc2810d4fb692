package app

import (
	"context"
	"fmt"
	"iter"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/esdb"
	"bahi/eventstore/postgres"
	"bahi/http/console"
	auditviews "bahi/readmodels/audit"
	opsviews "bahi/readmodels/ops"
)

// EventLog is the system's log, until it is closed.
type EventLog interface {
	eventstore.Store
	Close()
}

// openLog opens the log of the settings.
func (s *System) openLog(ctx context.Context) (EventLog, error) {
	if s.Settings.EventStore == "" {
		log, err := postgres.Open(ctx, s.Pool, s.Log)
		if err != nil {
			return nil, err // not an interface with a nil log in it
		}
		return log, nil
	}
	log, err := esdb.Open(ctx, s.Settings.EventStore, s.Log)
	if err != nil {
		return nil, err
	}
	return log, nil
}

// logElsewhere returns the log for views that otherwise read its table; nil if the log is in Postgres.
func (s *System) logElsewhere() opsviews.Log {
	if s.Settings.EventStore == "" {
		return nil
	}
	return ViewedLog{s.Store}
}

// ViewedLog adapts a store to the views' Log.
type ViewedLog struct{ eventstore.Store }

// After implements the views' Log.
func (l ViewedLog) After(ctx context.Context, at event.Position) iter.Seq2[event.Stored, error] {
	return l.ReadAll(ctx, at, eventstore.Forwards)
}

// Before implements the views' Log.
func (l ViewedLog) Before(ctx context.Context, at event.Position) iter.Seq2[event.Stored, error] {
	return l.ReadAll(ctx, at, eventstore.Backwards)
}

// At implements the views' Log.
func (l ViewedLog) At(ctx context.Context, at event.Position) (event.Stored, bool, error) {
	for e, err := range l.Before(ctx, at+1) {
		return e, err == nil && e.Position == at, err
	}
	return event.Stored{}, false, nil
}

// Stream implements the views' Log.
func (l ViewedLog) Stream(ctx context.Context, stream string, from int64) iter.Seq2[event.Stored, error] {
	return l.ReadStream(ctx, stream, from, eventstore.Forwards)
}

// Back implements the views' Log.
func (l ViewedLog) Back(ctx context.Context, stream string, from int64) iter.Seq2[event.Stored, error] {
	return l.ReadStream(ctx, stream, from, eventstore.Backwards)
}

// explorer searches the log, in Postgres or elsewhere.
type explorer interface {
	console.Events
	auditviews.Search
}

func (s *System) explored() explorer {
	if log := s.logElsewhere(); log != nil {
		return &opsviews.Walked{Log: log}
	}
	return &opsviews.Events{DB: s.Pool}
}

// headElsewhere returns the log's head for reads; nil if the log is in their own database, where reads see it in the
// snapshot of their rows.
func (s Settings) headElsewhere(log eventstore.Store) func(context.Context) (event.Position, error) {
	if s.EventStore == "" {
		return nil
	}
	return log.Head
}

// OwnLog refuses an EVENTSTORE_URL of another log than the database's: the checkpoints and the tables would not
// belong to it.
func (s *System) OwnLog(ctx context.Context) error {
	if s.Settings.EventStore == "" {
		return nil
	}
	return s.Signer.Ring.Own(ctx)
}

// LogInPostgres refuses commands that read or fill the log's own table, if the log is elsewhere.
func (s Settings) LogInPostgres(command string) error {
	if s.EventStore == "" {
		return nil
	}
	return fmt.Errorf("bahi %s works on a log in Postgres, and EVENTSTORE_URL says that it is elsewhere. "+
		"What of Bahi is in Postgres besides can be copied by pg_dump; the log by its own server's tools, or by bahi events copy and export", command)
}
