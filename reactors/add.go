package reactors

import (
	"context"
	"fmt"

	"github.com/riverqueue/river"
)

// Add adds a job that follows from no event, for a request that must not wait for it. It adds nothing while an equal job is
// unfinished.
func (j *Jobs) Add(ctx context.Context, args Args) error {
	policy, known := j.policies[args.Kind()]
	if !known {
		return fmt.Errorf("no worker for jobs of kind %s", args.Kind())
	}
	_, err := j.client.Insert(ctx, args, &river.InsertOpts{
		Queue: args.Kind(), MaxAttempts: policy.Attempts, UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: unfinished},
	})
	if err != nil {
		return fmt.Errorf("add a job of kind %s: %w", args.Kind(), err)
	}
	return nil
}
