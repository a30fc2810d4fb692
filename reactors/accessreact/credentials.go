package accessreact

import (
	"context"

	"bahi/reactors"
)

// SweepCredentials deletes expired tokens, sessions and signing keys.
type SweepCredentials struct{}

// Kind implements [reactors.Args].
func (SweepCredentials) Kind() string { return "sweep_credentials" }

// Sweeper deletes expired rows and returns their number.
type Sweeper interface {
	Sweep(ctx context.Context) (rows int64, err error)
}

// Sweeps returns the worker of SweepCredentials. It is not urgent: expired credentials open nothing.
func Sweeps(s Sweeper) reactors.Worker {
	return reactors.Work(reactors.Policy{MaxConcurrent: 1}, func(ctx context.Context, _ reactors.Job[SweepCredentials]) error {
		_, err := s.Sweep(ctx)
		return err
	})
}
