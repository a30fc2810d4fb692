package main

import (
	"context"
	"fmt"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/esdb"
	"bahi/eventstore/postgres"
)

// eventLog is the log that the system stands on, until it is closed.
type eventLog interface {
	eventstore.Store
	Close()
}

// openLog opens the log where the settings say that it is.
func (s *system) openLog(ctx context.Context) (eventLog, error) {
	if s.settings.EventStore == "" {
		log, err := postgres.Open(ctx, s.pool, s.log)
		if err != nil {
			return nil, err // not a log that is nil
		}
		return log, nil
	}
	log, err := esdb.Open(ctx, s.settings.EventStore, s.log)
	if err != nil {
		return nil, err
	}
	return log, nil
}

// headElsewhere is how reads learn of the log's head. Where the log is in their own database they see it themselves, in the
// snapshot of their rows.
func (s settings) headElsewhere(log eventstore.Store) func(context.Context) (event.Position, error) {
	if s.EventStore == "" {
		return nil
	}
	return log.Head
}

// logInPostgres refuses what reads or fills the log's table itself.
func (s settings) logInPostgres(command string) error {
	if s.EventStore == "" {
		return nil
	}
	return fmt.Errorf("bahi %s works on a log in Postgres, and EVENTSTORE_URL says that it is elsewhere. "+
		"What of Bahi is in Postgres besides can be copied by pg_dump; the log by its own server's tools, or by bahi events copy", command)
}
