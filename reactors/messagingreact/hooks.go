package messagingreact

import (
	"context"
	"time"

	"bahi/reactors"
)

// RegisterWebhooks tells networks where they are to call, at start and now and then: our address may be another one since, or a network has
// dropped it.
type RegisterWebhooks struct{}

// Kind implements [reactors.Args].
func (RegisterWebhooks) Kind() string { return "hook_channels" }

const (
	// HookInterval is the interval of HookChannels.
	HookInterval = time.Hour

	hookTimeout = 5 * time.Minute
)

// HookWorkers returns the worker of hooks.
func HookWorkers(hook func(ctx context.Context) error) reactors.Workers {
	return reactors.Workers{reactors.Work(reactors.Policy{AtOnce: 1, Timeout: hookTimeout},
		func(ctx context.Context, _ reactors.Job[RegisterWebhooks]) error {
			return hook(ctx)
		})}
}
