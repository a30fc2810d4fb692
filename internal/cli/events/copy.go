package events

import (
	"context"
	"fmt"

	"bahi/eventstore/journal"
	"bahi/eventstore/postgres"
	"bahi/internal/app"
	"bahi/internal/cli/progress"
)

type copyEvents struct {
	app.Settings

	To string `required:"" placeholder:"URL" help:"The server of the journal, esdb://user:password@host:port. The journal is empty or has a part of the copy."`
}

// Run copies the log to a journal. An interrupted copy can be run again.
func (c copyEvents) Run(ctx context.Context) error {
	server, err := journal.Connect(c.To, c.Logger(false))
	if err != nil {
		return fmt.Errorf("--to: %w", err)
	}
	defer server.Close()
	if err := c.HasRun(); err != nil {
		return err
	}
	db, err := c.Emptied(ctx) // no other Bahi may append meanwhile
	if err != nil {
		return err
	}
	defer db.Close()
	pool, err := db.Pool(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	bar := progress.NewBar(c.Shell.Err, "copying", "events")
	var events int64
	stream, err := postgres.CopyToJournal(ctx, pool, server, c.Logger(false), func(done, of int64) {
		events = of
		bar.Show(done, of)
	})
	bar.End()
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Shell.Out, "%d events are in the journal %s. From now on, start every node with EVENTSTORE_URL.\n", events, stream)
	return nil
}
