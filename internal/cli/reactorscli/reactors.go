// Package reactorscli has the commands that list reactors and replay events to them.
package reactorscli

import (
	"context"
	"fmt"
	"text/tabwriter"

	"bahi/domain/event"
	"bahi/internal/app"
	"bahi/internal/cli/progress"
	"bahi/internal/cli/remote"
	"bahi/reactors"
)

type Command struct {
	List   listReactors  `cmd:"" help:"List the reactors with their progress."`
	Replay replayReactor `cmd:"" help:"Replay old events and add their jobs again."`
	Retry  retryReactor  `cmd:"" help:"Retry the event of a parked reactor."`
}

type listReactors struct{ app.Settings }

// Run prints one line per reactor.
func (c listReactors) Run(ctx context.Context, sys *app.System) error {
	head, err := sys.Store.Head(ctx)
	if err != nil {
		return err
	}
	all, err := reactors.List(ctx, sys.Pool, app.AllReactors()...)
	if err != nil {
		return err
	}
	out := tabwriter.NewWriter(c.Shell.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "REACTOR\tSTATE\tPOSITION\tLAG\tERROR")
	for _, r := range all {
		fmt.Fprintf(out, "%s\t%s\t%d\t%s\t%s\n", r.Name, r.State, r.Position, app.Behind(head, r.Position), r.Error)
	}
	return out.Flush()
}

type replayReactor struct {
	app.Settings

	Name  string `arg:"" help:"The reactor."`
	After uint64 `required:"" placeholder:"POSITION" help:"Start after this position of the log; 0 for the whole log. Mails older than a day are sent again."`
}

// Run replays the events and prints the number of added jobs.
func (c replayReactor) Run(ctx context.Context) error {
	reactor, err := app.ReactorNamed(c.Name)
	if err != nil {
		return err
	}
	sys, err := c.Open(ctx, false)
	if err != nil {
		return err
	}
	defer sys.Close()
	bar := progress.NewBar(c.Shell.Err, "replaying "+c.Name, "events")
	done, err := sys.Reacting.Replay(ctx, reactor, event.Position(c.After), func(at, upTo event.Position) {
		bar.Show(int64(at), int64(upTo))
	})
	bar.End()
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Shell.Out, "%s: %d jobs added for %d events up to position %d\n", c.Name, done.Jobs, done.Events, done.UpTo)
	return nil
}

type retryReactor struct {
	remote.Server

	Name string `arg:"" help:"The reactor."`
}

// Run clears the reactor's parked state.
func (c retryReactor) Run(ctx context.Context) error {
	if _, err := app.ReactorNamed(c.Name); err != nil {
		return err
	}
	return c.Post(ctx, "/ops/parked/"+c.Name+"/retry", nil, c.Name+" tries its event again")
}
