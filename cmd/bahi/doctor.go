package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"bahi/domain/event"
)

type doctorCommand struct {
	settings

	Names []string `arg:"" optional:"" help:"Which projections; all when none is named."`
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
	if err := sys.catchUp(ctx); err != nil {
		return err
	}
	var different bool
	for _, p := range chosen {
		began := time.Now()
		bar := newProgress("folding "+p.Name+" anew", "events")
		build := sys.build(p)
		build.Progress = func(done, total event.Position) { bar.show(int64(done), int64(total)) }
		found, err := build.Examine(ctx)
		bar.end()
		if err != nil {
			return err
		}
		for _, d := range found.Differences {
			different = true
			fmt.Printf("%s: %s\n", p.Name, d)
		}
		if len(found.Differences) == 0 {
			fmt.Printf("%s: generation %d is what the log says, %d rows at position %d (%s)\n",
				p.Name, found.Generation, found.Rows, found.Position, time.Since(began).Round(time.Millisecond))
		}
	}
	if different {
		return errDifferent
	}
	return nil
}

// catchUpWithin is how long projections may take to come to the log's head before they are compared.
const catchUpWithin = 10 * time.Minute

// catchUp brings the projections to the log's head where no serving process does. Where one does, this
// one only stands by.
func (s *system) catchUp(ctx context.Context) error {
	return s.whileFolding(ctx, func(context.Context) error { return nil })
}

// whileFolding brings the projections to the log's head, and keeps them there while it does something.
func (s *system) whileFolding(ctx context.Context, do func(context.Context) error) error {
	running, stop := context.WithCancel(ctx)
	var done sync.WaitGroup
	failed := make(chan error, 1)
	done.Go(func() { failed <- s.runner.Run(running, allProjections()...) })
	defer done.Wait()
	defer stop()
	if err := s.untilCaughtUp(ctx, failed); err != nil {
		return err
	}
	return do(ctx)
}

// untilCaughtUp waits for what runs the projections.
func (s *system) untilCaughtUp(ctx context.Context, failed <-chan error) error {
	head, err := s.store.Head(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, catchUpWithin)
	defer cancel()
	for {
		moved := s.runner.Moved()
		behind := ""
		for _, p := range allProjections() {
			switch status := s.runner.Statuses()[p.Name]; {
			case status.Error != "":
				return fmt.Errorf("projection %s stands still: %s", p.Name, status.Error)
			case !status.Ready || status.Position < head: // also in an empty log the tables must be there
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
