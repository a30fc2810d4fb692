package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/readmodels"
	"bahi/readmodels/ops"
)

// beginInLog is [Trails.Begin] for a log that is not in Postgres.
func (v *Trails) beginInLog(ctx context.Context, from, to *time.Time) (after, upTo event.Position, err error) {
	// The query names the books so that the reader waits for them.
	if _, err = readmodels.Rows(ctx, v.Reader, pgx.RowTo[int64], `select b.id from books.account b, orders.account o where false`); err != nil {
		return 0, 0, err
	}
	complete, _ := readmodels.FreshnessOf(ctx).Position()
	if to == nil {
		upTo, err = v.Log.Head(ctx)
	} else {
		upTo, err = v.Log.PositionAt(ctx, *to)
	}
	if err == nil && from != nil {
		after, err = v.Log.PositionAt(ctx, from.Add(-time.Microsecond))
	}
	return after, min(upTo, complete), err
}

// eventsInLog is [Trails.events] for a log that is not in Postgres. If the filter names a record, the books' indexes have the
// positions; otherwise it reads the log event by event.
func (v *Trails) eventsInLog(ctx context.Context, f TrailFilter, places string, args []any, after, upTo event.Position) (events []logged, to event.Position, err error) {
	take := func(e event.Stored) (all bool) {
		if l, told := f.logged(e); told {
			events = append(events, l)
		}
		to = e.Position
		return len(events) == stepPlaces
	}
	switch places {
	case placesOfStream:
		stream, _ := args[len(args)-1].(string)
		for e, err := range v.Log.Stream(ctx, stream, 0) {
			if err != nil {
				return nil, 0, err
			}
			if e.Position > after && e.Position <= upTo && take(e) {
				return events, to, nil
			}
		}
	case "":
		looked := 0
		for e, err := range v.Log.After(ctx, after) {
			if err != nil {
				return nil, 0, err
			}
			if e.Position > upTo {
				break
			}
			if looked++; take(e) || looked == v.look() {
				return events, to, nil
			}
		}
	default:
		found, err := readmodels.Rows(ctx, v.Reader, pgx.RowTo[int64], `select distinct q.position from (`+places+`) q (position) order by 1 limit 500`, args...)
		if err != nil {
			return nil, 0, err
		}
		for _, at := range found {
			e, there, err := v.Log.At(ctx, event.Position(at))
			if err == nil && !there {
				err = fmt.Errorf("the books have a change of position %d, at which the log has no event", at)
			}
			if err != nil {
				return nil, 0, err
			}
			take(e)
		}
		if len(found) == stepPlaces {
			return events, to, nil
		}
	}
	return events, upTo, nil
}

// logged returns an event for a trail; false if the filter does not select it.
func (f TrailFilter) logged(e event.Stored) (l logged, told bool) {
	category, _ := event.SplitStream(e.Stream)
	if !accountKinds[category] && rowKinds[category] == "" && !changesRecords(category) && category != lockKind || !f.wants(category) {
		return l, false
	}
	meta := ops.MetaOf(e)
	if !f.selects(e.Stream, meta) {
		return l, false
	}
	var posted struct {
		First int64 `json:"first_row"`
		Rows  []struct {
			Reverses *int64 `json:"reverses"`
		} `json:"rows"`
	}
	l = logged{position: e.Position, stream: e.Stream, at: e.At.UTC(), meta: meta}
	if json.Unmarshal(e.Data, &posted) != nil || posted.Rows == nil {
		l.data = e.Data
	}
	var reversed []int64
	for _, row := range posted.Rows {
		if row.Reverses != nil {
			reversed = append(reversed, *row.Reverses)
		}
	}
	l.concern(len(posted.Rows), posted.First, reversed)
	return l, true
}

// date sets when the accounts were opened; for a log that is not in Postgres.
func (w *Walk) date(ctx context.Context, changes []Change) error {
	if w.opened == nil {
		w.opened = map[event.Position]time.Time{}
	}
	for i := range changes {
		at := changes[i].openedAt
		if at == 0 {
			continue
		}
		if _, known := w.opened[at]; !known {
			e, _, err := w.trails.Log.At(ctx, at)
			if err != nil {
				return err
			}
			w.opened[at] = e.At
		}
		changes[i].opened = w.opened[at]
	}
	return nil
}
