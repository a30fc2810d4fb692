// Package events has the commands that show, export, import and copy the log.
package events

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/journal"
	"bahi/eventstore/postgres"
	"bahi/internal/app"
	"bahi/internal/cli/progress"
)

type Command struct {
	Tail tailEvents `cmd:"" help:"Print the newest events, and with --follow new ones."`
	Show showEvents `cmd:"" help:"Print an event by its position, or the events of a stream."`

	Export exportEvents `cmd:"" help:"Write the log into a folder as an archive, readable without a database."`
	Import importEvents `cmd:"" help:"Fill an empty log from an archive."`
	Copy   copyEvents   `cmd:"" help:"Copy the log, or the rest of it, to a journal in EventStoreDB."`
}

type tailEvents struct {
	app.Settings

	Lines  int  `short:"n" default:"20" help:"Maximum number of events."`
	Follow bool `short:"f" help:"Continue with new events."`
}

// Run prints one line per event.
func (c tailEvents) Run(ctx context.Context, sys *app.System) error {
	var newest []event.Stored
	if c.Lines > 0 {
		for e, err := range sys.Store.ReadAll(ctx, eventstore.End, eventstore.Backwards) {
			if err != nil {
				return err
			}
			if newest = append(newest, e); len(newest) == c.Lines {
				break
			}
		}
	}
	var last event.Position
	for _, e := range slices.Backward(newest) {
		printLine(c.Shell.Out, e)
		last = e.Position
	}
	if !c.Follow {
		return nil
	}
	if last == 0 {
		head, err := sys.Store.Head(ctx)
		if err != nil {
			return err
		}
		last = head
	}
	for batch, err := range sys.Store.Subscribe(ctx, last) {
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		for _, e := range batch.Events {
			printLine(c.Shell.Out, e)
		}
	}
	return nil
}

func printLine(out io.Writer, e event.Stored) {
	fmt.Fprintf(out, "%8d  %s  %-24s %s@%d  %s\n", e.Position, e.At.Format(time.RFC3339Nano), e.Type, e.Stream, e.Revision, e.Data)
}

type showEvents struct {
	app.Settings

	Position event.Position `arg:"" optional:"" help:"Position of one event."`
	Stream   string         `help:"A stream, such as bankrow-12."`
}

// Validate implements kong's interface.
func (c showEvents) Validate() error {
	if (c.Position == 0) == (c.Stream == "") {
		return errors.New("name a position, or a stream with --stream")
	}
	return nil
}

// Run prints the whole event, or all events of the stream.
func (c showEvents) Run(ctx context.Context, sys *app.System) error {
	if c.Stream == "" {
		e, there, err := app.NewLogReads(sys.Store).At(ctx, c.Position)
		if err == nil && !there {
			err = fmt.Errorf("the log has no event at position %d", c.Position)
		}
		if err != nil {
			return err
		}
		return printWhole(c.Shell.Out, e)
	}
	found := false
	for e, err := range sys.Store.ReadStream(ctx, c.Stream, 0, eventstore.Forwards) {
		if err != nil {
			return err
		}
		found = true
		if err := printWhole(c.Shell.Out, e); err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("there is no stream %s", c.Stream)
	}
	return nil
}

func printWhole(out io.Writer, e event.Stored) error {
	fmt.Fprintf(out, "position  %d\nstream    %s\nrevision  %d\nid        %s\ntype      %s\nrecorded  %s\n",
		e.Position, e.Stream, e.Revision, e.ID, e.Type, e.At.Format(time.RFC3339Nano))
	for _, part := range []struct {
		name string
		text []byte
	}{{"metadata", e.Meta}, {"data", e.Data}} {
		var b bytes.Buffer
		if err := json.Indent(&b, part.text, "          ", "  "); err != nil {
			return fmt.Errorf("%s at position %d: %w", part.name, e.Position, err)
		}
		fmt.Fprintf(out, "%-9s %s\n", part.name, b.String())
	}
	_, err := fmt.Fprintln(out)
	return err
}

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
	pool, done, err := c.Emptied(ctx) // no other Bahi may append meanwhile
	if err != nil {
		return err
	}
	defer done()
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
