// Package inbox handles the calls of webhooks that were recorded.
package inbox

import (
	"context"
	"time"

	"github.com/google/uuid"

	"bahi/reactors"
)

// HandleWebhook handles one call.
type HandleWebhook struct {
	Call uuid.UUID `json:"call"`
}

// Kind implements [reactors.Args].
func (HandleWebhook) Kind() string { return "handle_webhook" }

// SweepInbox resumes calls whose process died, and removes old bodies.
type SweepInbox struct{}

// Kind implements [reactors.Args].
func (SweepInbox) Kind() string { return "sweep_inbox" }

// Inbox has the calls.
type Inbox interface {
	// Process handles a call; last: no further attempt follows an error.
	Process(ctx context.Context, call uuid.UUID, last bool) error
	// Resume handles the calls received before a moment that nobody handles.
	Resume(ctx context.Context, before time.Time) error
	// Sweep removes old bodies.
	Sweep(ctx context.Context) (bodies int64, err error)
}

const (
	// SweepEvery is the interval of SweepInbox.
	SweepEvery = time.Minute

	attempts = 12
	atOnce   = 8               // each mostly waits for the log, and has a connection meanwhile
	within   = 2 * time.Minute // a call may take a language model's time

	// settled is the age at which a call that waits is no longer new. One that is being handled is locked, so a short age only does the jobs' work.
	settled = time.Second
)

// Workers returns the workers of an inbox.
func Workers(i Inbox, now func() time.Time) reactors.Workers {
	return reactors.Workers{
		reactors.Work(reactors.Policy{Attempts: attempts, Timeout: within, AtOnce: atOnce}, func(ctx context.Context, job reactors.Job[HandleWebhook]) error {
			return i.Process(ctx, job.Args.Call, job.Attempt >= attempts)
		}),
		reactors.Work(reactors.Policy{AtOnce: 1, Timeout: within}, func(ctx context.Context, _ reactors.Job[SweepInbox]) error {
			if err := i.Resume(ctx, now().Add(-settled)); err != nil {
				return err
			}
			_, err := i.Sweep(ctx)
			return err
		}),
	}
}
