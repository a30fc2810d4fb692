package inbox

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Backlog is the unhandled part of an endpoint's calls.
type Backlog struct {
	Endpoint string
	Waiting  int
	Parked   int
	Oldest   *time.Time // when the oldest waiting call was received
}

// Backlogs returns the backlog of each endpoint that has one.
func (b *Inbox) Backlogs(ctx context.Context) ([]Backlog, error) {
	rows, _ := b.Pool.Query(ctx, `
		select split_part(endpoint, '/', 1) as endpoint, count(*) filter (where verdict = 'waiting'), count(*) filter (where verdict = 'parked'),
			min(received_at) filter (where verdict = 'waiting')
		from inbox.call where verdict in ('waiting', 'parked') group by 1`)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Backlog])
	if err != nil {
		return nil, fmt.Errorf("count calls of webhooks: %w", err)
	}
	return all, nil
}
