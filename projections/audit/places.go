package audit

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/projections"
)

//go:embed places.sql
var placesDDL string

const (
	// placeEvery is the distance of two places in events, and placeWithin in time.
	placeEvery  = 256
	placeWithin = time.Second
)

// Places is the projection of positions at which events begin, with their times.
var Places = projections.Define("places", 1, placesDDL, projections.Raw(notePlaces)).Gathering(gather)

// lastPlace is what the next batch needs to know of the events before it.
type lastPlace struct {
	noted  time.Time // time of the last place
	latest time.Time // latest time of an event
	since  int       // number of events since the last place
}

func notePlaces(ctx context.Context, b *projections.Batch, events []event.Stored) error {
	last, known := b.Kept.(lastPlace)
	if !known {
		err := b.Tx.QueryRow(ctx, `select noted, latest, since from last_place`).Scan(&last.noted, &last.latest, &last.since)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("read the last place: %w", err)
		}
	}
	var (
		positions []int64
		times     []time.Time
	)
	for _, e := range events {
		if last.latest.Before(e.At) {
			last.latest = e.At
		}
		if last.since++; last.since < placeEvery && last.latest.Sub(last.noted) < placeWithin {
			continue
		}
		positions, times = append(positions, int64(e.Position)), append(times, last.latest)
		last.noted, last.since = last.latest, 0
	}
	var batch pgx.Batch
	if len(positions) > 0 {
		batch.Queue(`insert into place (position, at) select * from unnest($1::bigint[], $2::timestamptz[])`, positions, times)
	}
	batch.Queue(`
		insert into last_place (noted, latest, since) values ($1, $2, $3)
		on conflict (only_row) do update set noted = excluded.noted, latest = excluded.latest, since = excluded.since`, last.noted, last.latest, last.since)
	if err := b.Tx.SendBatch(ctx, &batch).Close(); err != nil {
		return fmt.Errorf("note places: %w", err)
	}
	b.Kept = last
	return nil
}
