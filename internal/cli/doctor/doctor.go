// Package doctor has the command that folds the log again and compares it with every table.
package doctor

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"bahi/internal/app"
	"bahi/internal/cli/screen"
	"bahi/internal/ocrtools"
	"bahi/projections"
)

type Command struct {
	app.Settings

	Names      []string `arg:"" optional:"" help:"Projections; all without a name."`
	Partitions int      `placeholder:"N" help:"Fold in this many parts at once, if the projection allows it; without it, by the machine's size."`
}

// Run folds the log again and compares. It fails when a table differs from the log.
func (c Command) Run(ctx context.Context) error {
	chosen, err := app.ProjectionsNamed(c.Names)
	if err != nil {
		return err
	}
	sys, err := c.OpenBooks(ctx, false)
	if err != nil {
		return err
	}
	defer sys.Close()
	if err := sys.CatchUp(ctx, chosen...); err != nil {
		return err
	}
	fmt.Fprintf(c.Shell.Out, "scanned pages: %s\n", ocrtools.Look(ctx))
	return Examine(ctx, sys, c.Shell.Out, projections.How{Partitions: c.Partitions}, chosen...)
}

// Examine compares projections with the log, as many at once as there are processors, and prints its findings.
// It returns errDifferent when a table differs from the log.
func Examine(ctx context.Context, s *app.System, out io.Writer, how projections.How, chosen ...*projections.Projection) error {
	bars := screen.NewBars(s.Settings.Shell.Err, "events")
	reports := make([]string, len(chosen))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.NumCPU())
	var different atomic.Bool
	for i, p := range chosen {
		group.Go(func() error {
			began := time.Now()
			build := s.Build(p)
			build.How = how
			build.Progress = func(now projections.Progress) {
				bars.Show(p.Name, p.Name+": "+now.Phase, int64(now.Done), int64(now.Total), 0)
			}
			found, err := build.Examine(ctx)
			bars.Done(p.Name)
			if err != nil {
				return fmt.Errorf("examine %s: %w", p.Name, err)
			}
			for _, d := range found.Differences {
				different.Store(true)
				reports[i] += fmt.Sprintf("%s: %s\n", p.Name, d)
			}
			if len(found.Differences) == 0 {
				reports[i] = fmt.Sprintf("%s: generation %d is what the log says, %d rows at position %d (%s)\n",
					p.Name, found.Generation, found.Rows, found.Position, time.Since(began).Round(time.Millisecond))
			}
			return nil
		})
	}
	err := group.Wait()
	bars.End()
	for _, report := range reports {
		fmt.Fprint(out, report)
	}
	if err == nil && different.Load() {
		err = app.ErrDifferent
	}
	return err
}
