package commands

import (
	"context"
	"errors"

	"bahi/domain/event"
	"bahi/eventstore"
)

// One is a command on a stream of which the caller knows the state.
type One[S any] struct {
	ID       string
	State    S
	Revision int64 // -1: the stream is to begin
	Command  event.Command[S]
}

// Done is what became of a One.
type Done[S any] struct {
	State    S
	Revision int64
	Position event.Position
	Changed  bool // this call appended what follows; false: another one was faster, or nothing follows
}

// HandleEach handles commands on different streams together, in as few round trips as the log allows. Of several callers, one changes a stream: that
// which Changed is true for. It is not for kinds with a [Rule].
func HandleEach[S any](ctx context.Context, h *Handler, req Request, kind *event.Kind[S], all []One[S]) ([]Done[S], error) {
	done := make([]Done[S], len(all))
	decided := make([][]event.Event[S], len(all))
	var flat []event.Event[S]
	for i, one := range all {
		events, err := one.Command.Decide(one.State)
		if err != nil {
			return nil, err
		}
		done[i], decided[i] = Done[S]{State: one.State, Revision: one.Revision}, events
		flat = append(flat, events...)
	}
	flat, err := event.MapSealed(flat, func(values []*event.Sealed) error {
		if err := kind.MaySeal(values); err != nil {
			return err
		}
		return h.vault.Seal(ctx, values)
	})
	if err != nil {
		return nil, err
	}
	meta := h.meta(req)
	var appends []eventstore.Request
	var of []int
	for i, one := range all {
		events := flat[:len(decided[i])]
		flat = flat[len(events):]
		if len(events) == 0 {
			continue
		}
		a := eventstore.Request{Stream: kind.Stream(one.ID), Expected: eventstore.Expected(one.Revision)}
		for _, e := range events {
			encoded, err := kind.Encode(newEventID(), e, meta)
			if err != nil {
				return nil, err
			}
			a.Events = append(a.Events, encoded)
			done[i].State = kind.Evolve(done[i].State, event.Recorded[event.Event[S]]{Position: eventstore.End, Data: e, Meta: meta})
		}
		appends, of = append(appends, a), append(of, i)
	}
	for n, r := range h.AppendEach(ctx, appends) {
		d := &done[of[n]]
		if _, lost := errors.AsType[*eventstore.WrongRevision](r.Err); r.Err != nil && !lost {
			return nil, r.Err
		}
		if r.Err == nil {
			d.Revision, d.Position, d.Changed = r.Revision, r.Position, true
		}
	}
	return done, nil
}
