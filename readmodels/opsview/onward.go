package opsview

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
)

// Onward is [Events.Search] forwards: it returns at most size events, oldest first. If there is More, continue with After = To.
func (v *Events) Onward(ctx context.Context, f Filter, size int) (found Found, err error) {
	err = v.reading(ctx, func(tx pgx.Tx) error {
		low, high, err := f.bounds(ctx, tx)
		if err != nil {
			return err
		}
		if f.Stream != "" {
			found, err = v.streamOnward(ctx, tx, f, low, high, size)
		} else {
			found, err = v.logOnward(ctx, tx, f, low, high, size)
		}
		return err
	})
	if err != nil {
		return Found{}, fmt.Errorf("search the log: %w", err)
	}
	return found, nil
}

func (v *Events) logOnward(ctx context.Context, tx pgx.Tx, f Filter, low, high event.Position, size int) (Found, error) {
	found := Found{From: low, To: low - 1}
	for began, n := time.Now(), 0; found.To < high && n < v.windows() && time.Since(began) < searchTimeout; n++ {
		to := min(high, found.To+event.Position(v.window()))
		rows, _ := tx.Query(ctx, `select `+eventColumns+` from log.event e
			where e.position between $6 and $7 and `+matching+` order by e.position limit $8`,
			f.matches(int64(found.To+1), int64(to), size-len(found.Events))...)
		events, err := pgx.CollectRows(rows, toEvent)
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
	rows, _ := tx.Query(ctx, `select `+eventColumns+` from log.event e
		where e.stream = $1 and e.revision > $6 and e.revision <= $7 and `+matching+` order by e.revision limit $8`,
		f.matches(before, looked, size)...)
	found.Events, err = pgx.CollectRows(rows, toEvent)
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
