package pgcluster

import (
	"context"
	"log/slog"
	"time"
)

// slowly runs do. After the first second, it logs every few seconds that do still runs.
func slowly(ctx context.Context, log *slog.Logger, what string, do func() error) error {
	done := make(chan struct{})
	defer close(done)
	go func() {
		started := time.Now()
		for wait := time.Second; ; wait = 3 * time.Second {
			select {
			case <-done:
				return
			case <-ctx.Done():
				return
			case <-time.After(wait):
				log.Info("still running", "what", what, "seconds", int(time.Since(started).Seconds()))
			}
		}
	}()
	return do()
}
