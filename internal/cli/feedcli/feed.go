// Package feedcli has the commands for the forwarding of events to a broker.
package feedcli

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"bahi/domain/event"
	"bahi/http/opshttp"
	"bahi/internal/app"
	"bahi/internal/cli/remote"
	"bahi/projections"
	"bahi/reactors/feedreact"
)

type Command struct {
	Status feedStatus `cmd:"" help:"Show the progress of the feed and, if it has stopped, the reason."`
	Replay feedReplay `cmd:"" help:"Move the feed to another event, to forward old events again or to follow another log."`
	Retry  feedRetry  `cmd:"" help:"Retry the event of a parked feed."`
	Skip   feedSkip   `cmd:"" help:"Skip the event of a parked feed. The log records the reason."`
}

type feedStatus struct{ app.Settings }

// Run prints one line.
func (c feedStatus) Run(ctx context.Context, sys *app.System) error {
	at, err := projections.CheckpointOf(ctx, sys.Pool, feedreact.Name)
	if err != nil {
		return err
	}
	if at == nil {
		fmt.Fprintln(c.Shell.Out, "the feed has never run")
		return nil
	}
	state, why := feedreact.StateOf(at)
	behind, since := "?", "?" // the feed followed another log
	if at.StoreID == sys.Store.ID() {
		lag, err := feedreact.Behind(ctx, sys.Store, at.Position, time.Now())
		if err != nil {
			return err
		}
		behind, since = app.Behind(lag.Head, at.Position), lag.Time.Round(time.Second).String()
	}
	out := tabwriter.NewWriter(c.Shell.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "STATE\tPOSITION\tLAG\tOLDEST\tLOG\tERROR")
	fmt.Fprintf(out, "%s\t%d\t%s\t%s\t%s\t%s\n", state, at.Position, behind, since, at.StoreID, why)
	return out.Flush()
}

type feedReplay struct {
	app.Settings

	From uint64 `required:"" placeholder:"POSITION" help:"Position of the first event to forward; 1 for the whole log."`
}

// Run moves the feed's checkpoint.
func (c feedReplay) Run(ctx context.Context, sys *app.System) error {
	if err := feedreact.Replay(ctx, sys.Pool, sys.Store, event.Position(c.From)); err != nil {
		return err
	}
	fmt.Fprintf(c.Shell.Out, "the feed continues at position %d\n", c.From)
	return nil
}

type feedRetry struct{ remote.Server }

// Run clears the feed's parked state.
func (c feedRetry) Run(ctx context.Context) error {
	return c.Post(ctx, "/ops/parked/"+feedreact.Name+"/retry", nil, "the feed tries again")
}

type feedSkip struct {
	remote.Server

	Position event.Position `required:"" help:"Position of the event that stopped it."`
	Reason   string         `required:"" help:"Reason why the event need not be forwarded."`
}

// Run records that the event is skipped.
func (c feedSkip) Run(ctx context.Context) error {
	return c.Post(ctx, "/ops/parked/"+feedreact.Name+"/skip", opshttp.Skip{Position: c.Position, Reason: c.Reason}, "the feed skips the event")
}
