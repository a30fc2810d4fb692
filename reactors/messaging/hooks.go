package messaging

import (
	"context"
	"time"

	"bahi/reactors"
)

// HookChannels tells networks where they are to call, at start and now and then: our address may be another one since, or a network has dropped it.
type HookChannels struct{}

// Kind implements [reactors.Args].
func (HookChannels) Kind() string { return "hook_channels" }

const (
	// HookEvery is the interval of HookChannels.
	HookEvery = time.Hour

	hookWithin = 5 * time.Minute
)

// HookWorkers returns the worker of hooks.
func HookWorkers(hook func(ctx context.Context) error) reactors.Workers {
	return reactors.Workers{reactors.Work(reactors.Policy{AtOnce: 1, Timeout: hookWithin}, func(ctx context.Context, _ reactors.Job[HookChannels]) error {
		return hook(ctx)
	})}
}
