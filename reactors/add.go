package reactors

import (
	"context"
	"fmt"

	"github.com/riverqueue/river"
)

// Adder adds a job, unless an equal one is unfinished.
type Adder interface {
	Add(ctx context.Context, args Args) error
}

// Add adds a job that follows from a request instead of an event. It adds nothing while an equal job is unfinished.
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

// Newest returns the greatest id of the jobs of a kind, 0 when there is none.
func (j *Jobs) Newest(ctx context.Context, kind string) (id int64, err error) {
	if err := j.pool.QueryRow(ctx, `select coalesce(max(id), 0) from river.river_job where kind = $1`, kind).Scan(&id); err != nil {
		return 0, fmt.Errorf("find the newest job of kind %s: %w", kind, err)
	}
	return id, nil
}
