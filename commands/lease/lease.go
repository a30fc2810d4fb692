// Package lease gives a task to one worker of all processes. A lease is a Postgres row that expires, so that another worker takes the task
// over after a crash.
package lease

import (
	"context"
	"time"

	"bahi/eventstore/signal"
)

const (
	// Duration is the lifetime of a lease after it was taken or renewed.
	Duration = 15 * time.Second

	renewInterval = 4 * time.Second
)

// While calls do, and renews a lease until do returns. asked is a time just before the lease was acquired. The context of do ends when the
// lease may have ended: when renew returns false, or has failed for [Duration].
func While(ctx context.Context, asked time.Time, renew func(context.Context) (held bool, err error), do func(context.Context) error) error {
	working, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		defer stop()
		keep(working, asked.Add(Duration), renew)
	}()
	return do(working)
}

// keep renews a lease until ctx ends or the lease may have ended.
func keep(ctx context.Context, until time.Time, renew func(context.Context) (held bool, err error)) {
	for signal.Sleep(ctx, min(renewInterval, time.Until(until))) == nil {
		asked := time.Now()
		asking, cancel := context.WithDeadline(ctx, until)
		held, err := renew(asking)
		cancel()
		switch {
		case err == nil && held:
			until = asked.Add(Duration)
		case err == nil || !time.Now().Before(until):
			return
		}
	}
}
