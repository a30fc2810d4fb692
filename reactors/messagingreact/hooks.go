package messagingreact

import (
	"context"
	"time"

	"bahi/reactors"
)

// RegisterWebhooks registers our webhook addresses with networks, at the start and regularly: our address may have changed, or a network
// may have dropped it.
type RegisterWebhooks struct{}

// Kind implements [reactors.Args].
func (RegisterWebhooks) Kind() string { return "register_webhooks" }

const (
	// HookInterval is the interval of RegisterWebhooks.
	HookInterval = time.Hour

	hookTimeout = 5 * time.Minute
)

// HookWorkers returns the worker of RegisterWebhooks.
func HookWorkers(hook func(ctx context.Context) error) reactors.Workers {
	return reactors.Workers{reactors.Work(reactors.Policy{MaxConcurrent: 1, Timeout: hookTimeout},
		func(ctx context.Context, _ reactors.Job[RegisterWebhooks]) error {
			return hook(ctx)
		})}
}
