package commands

import (
	"context"
	"errors"

	"bahi/domain/event"
	"bahi/eventstore"
)

// One is a command on a stream that the caller has loaded.
type One[S any] struct {
	Loaded[S]

	ID      string
	Command event.Command[S]
}

// Begins returns a command on a stream that is to begin.
func Begins[S any](id string, c event.Command[S]) One[S] {
	return One[S]{Loaded: Loaded[S]{Revision: -1}, ID: id, Command: c}
}

// Done is what became of a One.
type Done[S any] struct {
	Loaded[S]

	Changed bool // this call appended what follows; false: another one was faster, or nothing follows
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
		done[i].Loaded, decided[i] = one.Loaded, events
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
	var appends []eventstore.Transaction
	var of []int
	for i, one := range all {
		n := len(decided[i])
		if decided[i], flat = flat[:n], flat[n:]; n == 0 {
			continue
		}
		var events []event.New
		for _, e := range decided[i] {
			encoded, err := kind.Encode(newEventID(), e, meta)
			if err != nil {
				return nil, err
			}
			events = append(events, encoded)
		}
		appends, of = append(appends, one.write(kind.Stream(one.ID), events...)), append(of, i)
	}
	tickets := make([]*ticket, len(appends))
	for n, t := range appends {
		tickets[n] = h.cache.begin(t.Writes[0].Stream)
	}
	for n, r := range h.AppendEach(ctx, appends) {
		var entry *cached
		if r.Err == nil {
			d := &done[of[n]]
			after, whole := follow(d.Loaded, kind, meta, r.Appended, appends[n].Writes[0], decided[of[n]])
			if d.Loaded, d.Changed = after, true; whole {
				entry = &cached{loaded: after, revision: after.Revision, bytes: after.bytes}
			}
		} else if _, lost := errors.AsType[*eventstore.WrongRevision](r.Err); !lost {
			err = errors.Join(err, r.Err)
		}
		h.cache.end(tickets[n], entry)
	}
	return done, err
}

// HandleAll is [HandleEach] for commands each of which has to take effect: where somebody else was faster, it is decided on what they made.
func HandleAll[S any](ctx context.Context, h *Handler, req Request, kind *event.Kind[S], all []One[S]) error {
	done, err := HandleEach(ctx, h, req, kind, all)
	for i, d := range done {
		if err == nil && !d.Changed {
			_, err = Handle(ctx, h, req, kind, all[i].ID, all[i].Command)
		}
	}
	return err
}

// follow returns the state after an append, and whether it is as the log has it: some logs do not tell where each event is.
func follow[S any](l Loaded[S], kind *event.Kind[S], meta event.Meta, done eventstore.Appended, a eventstore.Write, events []event.Event[S]) (_ Loaded[S], whole bool) {
	all, whole := dense(done, len(events))
	for i, e := range events {
		r := event.Recorded[event.Event[S]]{Position: eventstore.End, Stream: a.Stream, ID: a.Events[i].ID, Meta: meta, Data: e}
		if whole {
			r.Position, r.Revision, r.At = all[i].position, all[i].revision, all[i].at
		}
		l = l.and(kind, r, len(a.Events[i].Data))
	}
	l.Revision, l.Position = done.Revision, done.Position
	return l, whole
}
