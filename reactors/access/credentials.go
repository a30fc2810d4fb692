package access

import (
	"context"

	"bahi/reactors"
)

// SweepCredentials removes tokens, sessions and signing keys that have expired.
type SweepCredentials struct{}

// Kind implements [reactors.Args].
func (SweepCredentials) Kind() string { return "sweep_credentials" }

// Sweeper removes what has expired, and answers how many rows that were.
type Sweeper interface {
	Sweep(ctx context.Context) (rows int64, err error)
}

// Sweeps are done by this worker. Nothing depends on when: what has expired opens nothing.
func Sweeps(s Sweeper) reactors.Worker {
	return reactors.Work(reactors.Policy{AtOnce: 1}, func(ctx context.Context, _ reactors.Job[SweepCredentials]) error {
		_, err := s.Sweep(ctx)
		return err
	})
}
