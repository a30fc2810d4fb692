package pgcluster

import (
	"context"
	"time"
)

// supervise restarts a dead postmaster, until the cluster is stopped. Postgres itself recovers from a crashed connection. A postmaster dies
// if the kernel kills it for lack of memory, or if a user kills it.
func (c *Cluster) supervise(ctx context.Context) {
	for {
		c.mu.Lock()
		pm := c.pm
		c.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-pm.gone:
		}
		c.log.Error("Postgres has ended; restarting", "pid", pm.pid, "folder", c.folder.pgdata())
		for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
			err := c.bringUp(ctx)
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				return
			}
			c.log.Error("starting Postgres failed; retrying", "wait", wait, "error", err)
			if pause(ctx, wait) != nil {
				return
			}
		}
	}
}
