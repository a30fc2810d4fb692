package main

import (
	"context"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"bahi/domain/event"
	"bahi/projections"
)

type projectionsCommand struct {
	List    listProjections    `cmd:"" help:"List the projections and how far they are."`
	Rebuild rebuildProjections `cmd:"" help:"Build a projection anew from the log, and let it be read."`
	Retry   retryProjection    `cmd:"" help:"Let a parked projection try its event again."`
}

type listProjections struct{ settings }

// Run prints one line a generation.
func (c listProjections) Run(ctx context.Context) error {
	sys, err := c.openBooks(ctx, false)
	if err != nil {
		return err
	}
	defer sys.close()
	head, err := sys.store.Head(ctx)
	if err != nil {
		return err
	}
	all, err := projections.List(ctx, sys.pool)
	if err != nil {
		return err
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "PROJECTION\tVERSION\tGENERATION\tSTATE\tPOSITION\tLAG\tERROR")
	for _, g := range all {
		fmt.Fprintf(out, "%s\t%d\t%d\t%s\t%d\t%d\t%s\n", g.Name, g.Version, g.Generation, g.State, g.Position, lag(head, g.Position), g.Error)
	}
	return out.Flush()
}

type rebuildProjections struct {
	settings

	Names []string `arg:"" optional:"" help:"Which; all when none is named."`
}

// Run builds each named projection.
func (c rebuildProjections) Run(ctx context.Context) error {
	chosen, err := named(c.Names)
	if err != nil {
		return err
	}
	sys, err := c.openBooks(ctx, false)
	if err != nil {
		return err
	}
	defer sys.close()
	for _, p := range chosen {
		began := time.Now()
		bar := newProgress("rebuilding "+p.Name, "events")
		build := sys.build(p)
		var folded event.Position
		build.Progress = func(done, total event.Position) {
			folded = done
			bar.show(int64(done), int64(total))
		}
		err := build.Run(ctx)
		bar.end()
		if err != nil {
			return err
		}
		fmt.Printf("%s: rebuilt up to position %d in %s\n", p.Name, folded, time.Since(began).Round(time.Millisecond))
	}
	return nil
}

type retryProjection struct {
	settings

	Name string `arg:"" help:"Which."`
}

// Run clears the note at which the projection stands still.
func (c retryProjection) Run(ctx context.Context) error {
	if _, err := named([]string{c.Name}); err != nil {
		return err
	}
	sys, err := c.openBooks(ctx, false)
	if err != nil {
		return err
	}
	defer sys.close()
	return projections.Retry(ctx, sys.pool, c.Name)
}
