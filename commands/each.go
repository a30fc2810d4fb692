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

// HandleEach handles commands on different streams, each in its own transaction. If several callers change a stream at once, Changed is true
// for one of them.
func HandleEach[S any](ctx context.Context, h *Handler, req Request, kind *event.Kind[S], all []One[S]) ([]Done[S], error) {
	return DoEach(ctx, h, req, kind, len(all), func(ctx context.Context, n int, tx *Tx) error {
		tx.asOf = all[n].asOf
		return add(tx, kind, all[n].ID, all[n].Loaded).decide(ctx, tx, all[n].Command)
	})
}

// DoEach is [Do] for many decisions, each in its own transaction. It makes as few round trips as the log allows. It does not repeat a decision
// whose records have changed meanwhile: Changed is false for it.
func DoEach[S any](
	ctx context.Context, h *Handler, req Request, kind *event.Kind[S], count int, decide func(ctx context.Context, n int, tx *Tx) error,
) ([]Done[S], error) {
	done, all := make([]Done[S], count), make([]*Tx, count)
	var flat []event.Event[S]
	var of []*reading[S]
	for n := range all {
		all[n] = newTx(h, req, kind.Category(), map[string]bool{}, map[string]any{})
		if err := decide(ctx, n, all[n]); err != nil {
			return nil, err
		}
		for _, r := range all[n].records {
			if r, ok := r.(*reading[S]); ok {
				flat, of = append(flat, r.events...), append(of, r)
			}
		}
		if first, ok := all[n].first.(*reading[S]); ok {
			done[n].Loaded = first.read
		}
	}
	flat, err := seal(ctx, h, kind, flat) // one call, since each makes keys
	if err != nil {
		return nil, err
	}
	for _, r := range of {
		r.events, flat = flat[:r.count()], flat[r.count():]
	}
	var appends []eventstore.Transaction
	var written []int
	for n, tx := range all {
		t, err := tx.encode()
		if err != nil {
			return nil, err
		}
		if tx.count > 0 {
			appends, written = append(appends, t), append(written, n)
		}
	}
	for _, n := range written {
		all[n].begin()
	}
	for n, result := range h.AppendEach(ctx, appends) {
		tx := all[written[n]]
		tx.end(result.Appended, result.Err)
		if result.Err == nil {
			first, ok := tx.first.(*reading[S])
			if ok {
				done[written[n]] = Done[S]{Loaded: first.now, Changed: true}
			}
			continue
		}
		if _, lost := errors.AsType[*eventstore.WrongRevision](result.Err); !lost {
			err = errors.Join(err, result.Err)
		}
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
