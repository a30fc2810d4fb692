// Package inbox handles the calls of webhooks that were recorded.
package inboxreact

import (
	"context"
	"time"

	"github.com/google/uuid"

	"bahi/reactors"
)

// HandleWebhook handles a call that failed.
type HandleWebhook struct {
	Call uuid.UUID `json:"call"`
}

// Kind implements [reactors.Args].
func (HandleWebhook) Kind() string { return "handle_webhook" }

// SweepInbox removes old bodies.
type SweepInbox struct{}

// Kind implements [reactors.Args].
func (SweepInbox) Kind() string { return "sweep_inbox" }

// Inbox has the calls.
type Inbox interface {
	// Process handles a call; last: no further attempt follows an error.
	Process(ctx context.Context, call uuid.UUID, last bool) error
	// Sweep removes old bodies.
	Sweep(ctx context.Context) (bodies int64, err error)
}

const (
	// SweepInterval is the interval of SweepInbox.
	SweepInterval = time.Minute

	attempts = 11              // beside the first one, which no job makes
	atOnce   = 16              // receipts wait here for messages that are just being sent
	within   = 2 * time.Minute // a call may take a language model's time

	// Again is how long after its first failure a call is tried again.
	Again = 3 * time.Second
)

// Workers returns the workers of an inbox.
func Workers(i Inbox) reactors.Workers {
	return reactors.Workers{
		reactors.Work(reactors.Policy{Attempts: attempts, First: 3 * Again, Timeout: within, AtOnce: atOnce},
			func(ctx context.Context, job reactors.Job[HandleWebhook]) error {
				return i.Process(ctx, job.Args.Call, job.Attempt >= attempts)
			}),
		reactors.Work(reactors.Policy{AtOnce: 1, Timeout: within}, func(ctx context.Context, _ reactors.Job[SweepInbox]) error {
			_, err := i.Sweep(ctx)
			return err
		}),
	}
}
