package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"bahi/projections"
)

type doctorCommand struct {
	settings

	Names      []string `arg:"" optional:"" help:"Which projections; all when none is named."`
	Partitions int      `placeholder:"N" help:"Fold in so many parts at once, where the projection allows it; without it, as the machine is."`
}

// Run folds the log anew and compares. It fails when a table is not what the log says.
func (c doctorCommand) Run(ctx context.Context) error {
	chosen, err := named(c.Names)
	if err != nil {
		return err
	}
	sys, err := c.openBooks(ctx, false)
	if err != nil {
		return err
	}
	defer sys.close()
	if err := sys.catchUp(ctx, chosen...); err != nil {
		return err
	}
	return sys.examine(ctx, os.Stdout, projections.How{Partitions: c.Partitions}, chosen...)
}

// examine holds projections against the log, as many at once as there are processors, and prints what it
// finds. It answers errDifferent when a table is not what the log says.
func (s *system) examine(ctx context.Context, out io.Writer, how projections.How, chosen ...*projections.Projection) error {
	bars := newProgresses("events")
	reports := make([]string, len(chosen))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.NumCPU())
	var different atomic.Bool
	for i, p := range chosen {
		group.Go(func() error {
			began := time.Now()
			build := s.build(p)
			build.How = how
			build.Progress = func(now projections.Progress) {
				bars.show(p.Name, p.Name+": "+now.Phase, int64(now.Done), int64(now.Total))
			}
			found, err := build.Examine(ctx)
			bars.done(p.Name)
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
	bars.end()
	for _, report := range reports {
		fmt.Fprint(out, report)
	}
	if err == nil && different.Load() {
		err = errDifferent
	}
	return err
}

// catchUpWithin is how long projections may take to come to the log's head before they are compared.
const catchUpWithin = 10 * time.Minute

// catchUp brings the projections to the log's head where no serving process does, and waits for those that
// are named, or all. Where one does, this one only stands by.
func (s *system) catchUp(ctx context.Context, chosen ...*projections.Projection) error {
	return s.whileFolding(ctx, func(context.Context) error { return nil }, chosen...)
}

// whileFolding brings the projections to the log's head, and keeps them there while it does something.
func (s *system) whileFolding(ctx context.Context, do func(context.Context) error, chosen ...*projections.Projection) error {
	if len(chosen) == 0 {
		chosen = allProjections()
	}
	running, stop := context.WithCancel(ctx)
	var done sync.WaitGroup
	failed := make(chan error, 1)
	done.Go(func() { failed <- s.runner.Run(running, allProjections()...) })
	defer done.Wait()
	defer stop()
	if err := s.untilCaughtUp(ctx, failed, chosen); err != nil {
		return err
	}
	return do(ctx)
}

// untilCaughtUp waits for what runs the projections.
func (s *system) untilCaughtUp(ctx context.Context, failed <-chan error, chosen []*projections.Projection) error {
	head, err := s.store.Head(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, catchUpWithin)
	defer cancel()
	for {
		moved := s.runner.Moved()
		behind := ""
		for _, p := range chosen {
			switch status := s.runner.Statuses()[p.Name]; {
			case status.Error != "":
				return fmt.Errorf("projection %s stands still: %s", p.Name, status.Error)
			case status.Paused && status.Position < head:
				return fmt.Errorf("projection %s is paused at position %d; `bahi projections resume %s` lets it go on", p.Name, status.Position, p.Name)
			case !status.Ready && !status.Paused || status.Position < head: // also in an empty log the tables must be there
				behind = p.Name
			}
		}
		if behind == "" {
			return nil
		}
		select {
		case <-moved:
		case err := <-failed:
			return err
		case <-ctx.Done():
			return fmt.Errorf("projection %s did not catch up: %w", behind, ctx.Err())
		}
	}
}
