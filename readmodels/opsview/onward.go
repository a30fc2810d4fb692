package opsview

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
)

func (v *Events) logOnward(ctx context.Context, tx pgx.Tx, f Filter, low, high event.Position, size int) (Found, error) {
	found := Found{From: low, To: low - 1}
	for began, n := time.Now(), 0; found.To < high && n < v.windows() && time.Since(began) < searchTimeout; n++ {
		to := min(high, found.To+event.Position(v.window()))
		events, err := f.matching(ctx, tx, `e.position between $6 and $7`, ` order by e.position limit $8`,
			int64(found.To+1), int64(to), size-len(found.Events))
		if err != nil {
			return found, err
		}
		found.Events = append(found.Events, events...)
		if len(found.Events) == size { // newer events in this window were not searched
			found.To = found.Events[size-1].Position
			break
		}
		found.To = to
	}
	found.More = found.To < high
	return found, nil
}

func (v *Events) streamOnward(ctx context.Context, tx pgx.Tx, f Filter, low, high event.Position, size int) (Found, error) {
	found := Found{From: low, To: max(low-1, high)}
	before, err := revisionBefore(ctx, tx, f.Stream, low)
	if err != nil {
		return found, err
	}
	last, err := revisionBefore(ctx, tx, f.Stream, high+1)
	if err != nil || last <= before {
		return found, err
	}
	looked := min(last, before+int64(v.window()*v.windows()))
	found.Events, err = f.matching(ctx, tx, `e.stream = $1 and e.revision > $6 and e.revision <= $7`, ` order by e.revision limit $8`,
		before, looked, size)
	switch {
	case err != nil:
	case len(found.Events) == size:
		found.To, found.More = found.Events[size-1].Position, found.Events[size-1].Revision < last
	case looked < last:
		err = tx.QueryRow(ctx, `select position from log.event where stream = $1 and revision = $2`, f.Stream, looked).Scan(&found.To)
		found.More = true
	}
	return found, err
}
