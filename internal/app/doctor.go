package app

import (
	"context"
	"fmt"
	"sync"
	"time"

	"bahi/projections"
)

// CatchUpTimeout limits the time for projections to reach the log's head before a comparison.
const CatchUpTimeout = 10 * time.Minute

// CatchUp brings the chosen projections, or all, to the log's head if no server does. Beside a server, it only waits.
func (s *System) CatchUp(ctx context.Context, chosen ...*projections.Projection) error {
	return s.WithProjections(ctx, func(context.Context) error { return nil }, chosen...)
}

// WithProjections brings the chosen projections, or all, to the log's head, and keeps them there during do. A command chooses those whose
// tables it reads: each takes a connection, and may have much to fold.
func (s *System) WithProjections(ctx context.Context, do func(context.Context) error, chosen ...*projections.Projection) error {
	if len(chosen) == 0 {
		chosen = AllProjections()
	}
	running, stop := context.WithCancel(ctx)
	var done sync.WaitGroup
	failed := make(chan error, 1)
	done.Go(func() { failed <- s.Runner.Run(running, chosen...) })
	defer done.Wait()
	defer stop()
	if err := s.untilCaughtUp(ctx, failed, chosen); err != nil {
		return err
	}
	return do(ctx)
}

// untilCaughtUp waits for the process that runs the projections.
func (s *System) untilCaughtUp(ctx context.Context, failed <-chan error, chosen []*projections.Projection) error {
	head, err := s.Store.Head(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, CatchUpTimeout)
	defer cancel()
	for {
		moved := s.Runner.Advanced()
		behind := ""
		for _, p := range chosen {
			switch status := s.Runner.Statuses()[p.Name]; {
			case status.Error != "":
				return fmt.Errorf("projection %s has stopped: %s", p.Name, status.Error)
			case status.Paused && status.Position < head:
				return fmt.Errorf("projection %s is paused at position %d; `bahi projections resume %s` resumes it", p.Name, status.Position, p.Name)
			case !status.Ready && !status.Paused || status.Position < head: // even an empty log needs its tables
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

// Live returns the live generation of a projection.
func (s *System) Live(ctx context.Context, p *projections.Projection) (live projections.GenerationInfo, err error) {
	all, err := projections.List(ctx, s.Pool)
	for _, g := range all {
		if g.Name == p.Name && g.Version == p.Version && g.Live {
			live = g
		}
	}
	return live, err
}
