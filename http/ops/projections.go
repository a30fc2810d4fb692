package ops

import (
	"context"
	"time"

	"bahi/domain/event"
	views "bahi/readmodels/ops"
)

// Builds is who builds projections anew. Its errors are those of package readmodels/ops.
type Builds interface {
	// Rebuild asks for the next generation of a projection.
	Rebuild(ctx context.Context, name string, how Rebuild) error
	// Estimate answers what a rebuild would do, and does nothing.
	Estimate(ctx context.Context, name string) (views.Estimate, error)
	// Throttle bounds the events a second that the build under way folds; 0: no bound.
	Throttle(ctx context.Context, name string, perSecond int) error
	// Pause lets the build stand still; where none is under way, the projection itself.
	Pause(ctx context.Context, name string) error
	// Resume ends that.
	Resume(ctx context.Context, name string) error
	// Cancel ends the build and drops what it has made.
	Cancel(ctx context.Context, name string) error
	// Accept lets the build take the live generation's place though it differs.
	Accept(ctx context.Context, name string) error
	// Rollback reads the generation again that was read before, which is as current as the live one.
	Rollback(ctx context.Context, name string) error
	// Retry lets what is parked try its event again: the projection, its build, or a reactor of that name.
	Retry(ctx context.Context, name string) error
	// Skip lets what is parked pass over its event, which must stand at the position. It answers where
	// in the log that is recorded.
	Skip(ctx context.Context, name string, at event.Position, reason string) (event.Position, error)
}

// Rebuild is how a projection is built anew.
type Rebuild struct {
	Throttle   int           // events a second; 0: as many as it can
	Partitions int           // that fold at once; 0: as many as fit the machine
	Accept     bool          // differences from the live tables are accepted
	Keep       time.Duration // how long the replaced generation follows on; negative: as long as the setting says
}
