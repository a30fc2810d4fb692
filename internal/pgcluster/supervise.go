package pgcluster

import (
	"context"
	"time"
)

// supervise restarts a postmaster that has ended, until the cluster is stopped. Postgres itself recovers from a crashed
// connection; this is for a postmaster that was killed by the kernel, for lack of memory, or by hand.
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
		c.log.Error("Postgres has ended; starting it again", "pid", pm.pid, "folder", c.folder.pgdata())
		for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
			err := c.bringUp(ctx)
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				return
			}
			c.log.Error("Postgres does not start; trying again", "wait", wait, "error", err)
			if pause(ctx, wait) != nil {
				return
			}
		}
	}
}
