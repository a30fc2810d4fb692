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

// HandleEach handles commands on different streams together, in as few round trips as the log allows. Each is a transaction of its own. Of
// several callers, one changes a stream: the one for which Changed is true. HandleEach is not for kinds with a [Rule].
func HandleEach[S any](ctx context.Context, h *Handler, req Request, kind *event.Kind[S], all []One[S]) ([]Done[S], error) {
	done, readings := make([]Done[S], len(all)), make([]*reading[S], len(all))
	var flat []event.Event[S]
	for i, one := range all {
		done[i].Loaded = one.Loaded
		readings[i] = &reading[S]{h: h, kind: kind, id: one.ID, workspace: req.Workspace, read: one.Loaded, now: one.Loaded}
		var err error
		if readings[i].events, err = one.Command.Decide(one.State); err != nil {
			return nil, err
		}
		flat = append(flat, readings[i].events...)
	}
	flat, err := seal(ctx, h, kind, flat)
	if err != nil {
		return nil, err
	}
	var appends []eventstore.Transaction
	var of []int
	for i, r := range readings {
		n := r.count()
		if r.events, flat = flat[:n], flat[n:]; n == 0 {
			continue
		}
		w, err := r.encode(req, 0)
		if err != nil {
			return nil, err
		}
		appends, of = append(appends, eventstore.Transaction{AsOf: all[i].asOf, Writes: []eventstore.Write{w}}), append(of, i)
	}
	for _, i := range of {
		readings[i].begin()
	}
	for n, result := range h.AppendEach(ctx, appends) {
		r := readings[of[n]]
		if result.Err != nil {
			r.end(nil, 0)
			if _, lost := errors.AsType[*eventstore.WrongRevision](result.Err); !lost {
				err = errors.Join(err, result.Err)
			}
			continue
		}
		r.end(&result.Appended, result.Position+1-event.Position(r.count()))
		done[of[n]] = Done[S]{Loaded: r.now, Changed: true}
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
