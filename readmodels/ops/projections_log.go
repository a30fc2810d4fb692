package ops

import (
	"context"
	"encoding/json"
	"time"

	"bahi/domain/event"
	"bahi/domain/follower"
)

// fromLog adds what only a log outside Postgres can tell about projections. The registry was read before, so the head is not older.
func (p *Projections) fromLog(ctx context.Context, all []Projection) error {
	head, err := p.Log.Head(ctx)
	if err != nil {
		return err
	}
	for i := range all {
		one := &all[i]
		one.Head = head
		if one.LagEvents, one.LagSeconds, err = p.lag(ctx, one.Position, head); err != nil {
			return err
		}
		if one.Skipped, err = p.skipped(ctx, one.Name, one.Version); err != nil {
			return err
		}
		if one.Build != nil { // what remains is a distance of positions, but the rate counts events
			one.Build.ETASeconds = nil
		}
	}
	return nil
}

// lag returns the number of events after a position, known only if it is 0, and the age of the first of them.
func (p *Projections) lag(ctx context.Context, at, head event.Position) (events *uint64, seconds float64, err error) {
	if at >= head {
		return new(uint64), 0, nil
	}
	for e, err := range p.Log.After(ctx, at) {
		return nil, max(0, time.Since(e.At).Seconds()), err
	}
	return nil, 0, nil
}

// skipped returns how many events an operator skipped for this version of a follower.
func (p *Projections) skipped(ctx context.Context, name string, version int) (count int, err error) {
	for e, err := range p.Log.Stream(ctx, follower.Kind.Stream(name), 0) {
		if err != nil {
			return 0, err
		}
		var skipped follower.Skipped
		if err := json.Unmarshal(e.Data, &skipped); err != nil {
			return 0, err
		}
		if skipped.Version == version {
			count++
		}
	}
	return count, nil
}

// events adds the events at which followers stopped, from a log outside Postgres.
func (p *Projections) events(ctx context.Context, all []Parked) error {
	for i := range all {
		if all[i].Position == 0 {
			continue
		}
		e, there, err := p.Log.At(ctx, all[i].Position)
		if err != nil {
			return err
		}
		if there {
			id := e.ID.String()
			all[i].EventID, all[i].Stream, all[i].Type = &id, e.Stream, e.Type
		}
	}
	return nil
}
