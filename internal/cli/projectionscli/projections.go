// Package projectionscli has the commands that list and rebuild projections.
package projectionscli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/alecthomas/kong"

	"bahi/domain/event"
	"bahi/http/opshttp"
	"bahi/internal/app"
	"bahi/internal/cli/progress"
	"bahi/internal/cli/remote"
	"bahi/projections"
)

type Command struct {
	List     listProjections    `cmd:"" help:"List the projections' generations with their progress."`
	Rebuild  rebuildProjections `cmd:"" help:"Rebuild projections from the log beside the live tables, compare the two, and switch to the new ones."`
	Build    buildProjections   `cmd:"" help:"Build the tables that this version of the program lacks, beside a running older one."`
	Pause    onServer           `cmd:"" help:"Pause a rebuild; without one, the projection."`
	Resume   onServer           `cmd:"" help:"Resume a paused rebuild or projection."`
	Throttle throttleProjection `cmd:"" help:"Limit a rebuild's events per second."`
	Cancel   onServer           `cmd:"" help:"Cancel a rebuild and drop its tables."`
	Accept   onServer           `cmd:"" help:"Switch to a rebuild although it differs from the live tables."`
	Rollback rollbackProjection `cmd:"" help:"Switch back to the previous generation."`
	Retry    onServer           `cmd:"" help:"Retry the event of a parked projection or rebuild."`
	Skip     skipProjection     `cmd:"" help:"Skip the event of a parked projection or reactor. The log records the skip."`
	Drop     dropProjection     `cmd:"" help:"Drop the tables of another version of the program. That version must build them again before it serves."`
}

type listProjections struct{ app.Settings }

// Run prints one line per generation.
func (c listProjections) Run(ctx context.Context, sys *app.System) error {
	head, err := sys.Store.Head(ctx)
	if err != nil {
		return err
	}
	all, err := projections.List(ctx, sys.Pool)
	if err != nil {
		return err
	}
	out := tabwriter.NewWriter(c.Shell.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "PROJECTION\tVERSION\tGENERATION\tSTATE\tPOSITION\tLAG\tNOTE")
	for _, g := range all {
		fmt.Fprintf(out, "%s\t%d\t%d\t%s\t%d\t%s\t%s\n", g.Name, g.Version, g.Generation, g.State, g.Position, app.Behind(head, g.Position),
			noteOn(g))
	}
	return out.Flush()
}

// noteOn returns further notes on a generation.
func noteOn(g projections.GenerationInfo) string {
	p, known := app.ProjectionNamed(g.Name)
	var notes []string
	switch {
	case g.Phase == "filling" && g.Total > 0:
		notes = append(notes, fmt.Sprintf("filling, %d %%", 100*g.Position/g.Total))
	case g.Phase != "":
		notes = append(notes, g.Phase)
	case !g.KeepUntil.IsZero():
		notes = append(notes, "until "+g.KeepUntil.Format(time.DateTime))
	}
	if !known || g.Version != p.Version {
		notes = append(notes, "of another version of the program")
	}
	if g.Error != "" {
		notes = append(notes, strings.Join(strings.Fields(g.Error), " ")) // on one line
	}
	return strings.Join(notes, "; ")
}

type rebuildProjections struct {
	app.Settings

	Names      []string      `arg:"" optional:"" help:"Names of projections. Without one, all."`
	DryRun     bool          `help:"Only estimate the events and the time."`
	Throttle   int           `placeholder:"N" help:"Maximum events per second, to spare a running system."`
	Partitions int           `placeholder:"N" help:"Parallel parts of the fill, if the projection allows it. Without it, by the number of processors."`
	Accept     bool          `name:"accept-differences" help:"Switch to the new tables even if they differ from the live ones."`
	KeepNew    time.Duration `name:"keep" default:"-1s" placeholder:"DURATION" help:"Time for which the replaced tables are kept up to date, for a rollback. Without it, BAHI_KEEP_GENERATION."`
}

// Validate implements kong's interface.
func (c rebuildProjections) Validate() error { return notNegative(c.Throttle, c.Partitions) }

// notNegative refuses negative limits, which would mean no limit.
func notNegative(throttle, partitions int) error {
	switch {
	case throttle < 0:
		return errors.New("--throttle: expected 1 event a second or more")
	case partitions < 0:
		return errors.New("--partitions: expected 1 or more")
	default:
		return nil
	}
}

// Run builds the projections, all at once.
func (c rebuildProjections) Run(ctx context.Context, sys *app.System) error {
	chosen, err := app.ProjectionsNamed(c.Names)
	if err != nil {
		return err
	}
	if c.DryRun {
		return estimate(ctx, sys, chosen)
	}
	how := sys.How(opshttp.Rebuild{Throttle: c.Throttle, Partitions: c.Partitions, Accept: c.Accept, Keep: c.KeepNew})
	return buildAll(ctx, sys, chosen, how)
}

// estimate prints the cost of rebuilding each projection.
func estimate(ctx context.Context, s *app.System, chosen []*projections.Projection) error {
	for _, p := range chosen {
		e, err := app.Builds{System: s}.Estimate(ctx, p.Name)
		if err != nil {
			return err
		}
		fmt.Fprintf(s.Settings.Shell.Out, "%s: %d events to fold, about %s with indexes and the comparison, %.0f a second while it folds; its "+
			"tables take %d MB\n",
			p.Name, e.Events, time.Duration(e.Seconds*float64(time.Second)).Round(time.Second), e.Rate, e.Bytes>>20)
	}
	return nil
}

// buildAll builds projections at once, and shows their progress.
func buildAll(ctx context.Context, s *app.System, chosen []*projections.Projection, how projections.BuildOptions) error {
	bars := progress.NewBars(s.Settings.Shell.Err, "events")
	lines, failed := make([]string, len(chosen)), make([]error, len(chosen))
	var all sync.WaitGroup
	for i, p := range chosen {
		all.Go(func() {
			lines[i], failed[i] = buildOne(ctx, s, p, how, bars)
			bars.Done(p.Name)
		})
	}
	all.Wait()
	bars.End()
	for _, line := range lines {
		fmt.Fprint(s.Settings.Shell.Out, line)
	}
	return errors.Join(failed...)
}

// buildOne builds a projection, or continues its build, and returns a line for the operator.
func buildOne(ctx context.Context, s *app.System, p *projections.Projection, how projections.BuildOptions,
	bars *progress.Bars) (line string, err error) {
	began := time.Now()
	build := s.Build(p)
	build.How = how
	build.Progress = func(now projections.Progress) {
		bars.Show(p.Name, p.Name+": "+now.Phase, int64(now.Done), int64(now.Total), now.Then)
	}
	err = build.Run(ctx)
	if errors.Is(err, projections.ErrBuildRuns) {
		bars.Say(fmt.Sprintf("%s: a rebuild is in progress; continuing it with its own options", p.Name))
		if err = build.Join(ctx); errors.Is(err, projections.ErrNoBuild) { // it has ended meanwhile
			err = nil
		}
	}
	switch {
	case err == nil:
		g, err := s.Live(ctx, p)
		return fmt.Sprintf("%s: generation %d is live, built up to position %d in %s\n",
			p.Name, g.Generation, g.Position, time.Since(began).Round(time.Millisecond)), err
	case errors.Is(err, projections.ErrDiffers):
		return "", fmt.Errorf("%s: %w:%s\n`bahi projections accept %s` makes them live, `bahi projections cancel %s` drops them",
			p.Name, projections.ErrDiffers, differences(context.WithoutCancel(ctx), s, p), p.Name, p.Name)
	case errors.Is(err, projections.ErrCancelled):
		return "", fmt.Errorf("%s: %w", p.Name, projections.ErrCancelled)
	case ctx.Err() != nil:
		return "", fmt.Errorf("%s: interrupted; a serving process continues the build, or this command, when repeated; `bahi projections "+
			"cancel %s` ends it", p.Name, p.Name)
	default:
		return "", fmt.Errorf("%w; the build so far remains: a serving process continues it, or this command, when repeated", err)
	}
}

// differences returns the rows in which a build differs from the live tables.
func differences(ctx context.Context, s *app.System, p *projections.Projection) (text string) {
	found, err := s.Build(p).Differences(ctx)
	if err != nil {
		return "\n" + err.Error()
	}
	for _, d := range found {
		text += "\n" + d.String()
	}
	return text
}

type buildProjections struct {
	app.Settings

	Throttle   int `placeholder:"N" help:"Maximum events per second."`
	Partitions int `placeholder:"N" help:"Parallel parts of the fill, if the projection allows it."`
}

// Validate implements kong's interface.
func (c buildProjections) Validate() error { return notNegative(c.Throttle, c.Partitions) }

// Run builds the projections that have no live generation of this program's version.
func (c buildProjections) Run(ctx context.Context, sys *app.System) error {
	var missing []*projections.Projection
	for _, p := range app.AllProjections() {
		g, err := sys.Live(ctx, p)
		if err != nil {
			return err
		}
		if !g.Live {
			missing = append(missing, p)
		}
	}
	if len(missing) == 0 {
		fmt.Fprintln(c.Shell.Out, "all tables of this version are built")
		return nil
	}
	return buildAll(ctx, sys, missing, projections.BuildOptions{Throttle: c.Throttle, Partitions: c.Partitions})
}

// onServer is a command about a projection that the running server executes. Its name selects the request.
type onServer struct {
	remote.Server

	Name string `arg:"" help:"The projection."`
}

// Run sends the request and prints the result.
func (c onServer) Run(ctx context.Context, k *kong.Context) error {
	verb := k.Selected().Name
	path := "/ops/projections/%s/"
	if verb == "retry" {
		path = "/ops/parked/%s/"
	}
	return c.post(ctx, path+verb, nil, map[string]string{
		"pause": "paused", "resume": "resumed", "cancel": "the rebuild is cancelled", "accept": "the differences are accepted",
		"retry": "tries again",
	}[verb])
}

// post sends a request about the projection and prints the result.
func (c onServer) post(ctx context.Context, path string, body any, done string) error {
	return c.Post(ctx, fmt.Sprintf(path, url.PathEscape(c.Name)), body, c.Name+": "+done)
}

type skipProjection struct {
	onServer

	Position event.Position `required:"" help:"Position of the event that stopped it."`
	Reason   string         `required:"" help:"Reason why the event must have no effect here."`
}

// Run records that the event is skipped.
func (c skipProjection) Run(ctx context.Context) error {
	return c.post(ctx, "/ops/parked/%s/skip", opshttp.Skip{Position: c.Position, Reason: c.Reason}, "skips the event")
}

type throttleProjection struct {
	onServer

	PerSecond int `arg:"" name:"events" help:"Events per second; 0 for no limit."`
}

// Validate implements kong's interface.
func (c throttleProjection) Validate() error {
	if c.PerSecond < 0 {
		return errors.New("<events>: expected 0 or more")
	}
	return nil
}

// Run limits the rebuild's speed.
func (c throttleProjection) Run(ctx context.Context) error {
	var pace opshttp.Pace
	if c.PerSecond > 0 {
		pace.PerSecond = &c.PerSecond
	}
	return c.post(ctx, "/ops/projections/%s/throttle", pace, "throttled")
}

type rollbackProjection struct{ onServer }

// Run switches back to the previous generation.
func (c rollbackProjection) Run(ctx context.Context) error {
	var now struct{ Generation int }
	err := c.Do(ctx, remote.Request{Method: "POST", Path: "/ops/projections/" + url.PathEscape(c.Name) + "/rollback"}, &now)
	if err == nil {
		fmt.Fprintf(c.Shell.Out, "%s: generation %d is live again\n", c.Name, now.Generation)
	}
	return err
}

type dropProjection struct {
	app.Settings

	Name       string `arg:"" help:"The projection."`
	Generation int    `arg:"" help:"The generation, as in bahi projections list."`
}

// Run drops a generation of another version of the program.
func (c dropProjection) Run(ctx context.Context, sys *app.System) error {
	chosen, err := app.ProjectionsNamed([]string{c.Name})
	if err != nil {
		return err
	}
	if err := sys.Build(chosen[0]).Drop(ctx, c.Generation); err != nil {
		return err
	}
	fmt.Fprintf(c.Shell.Out, "%s: generation %d is dropped\n", c.Name, c.Generation)
	return nil
}
