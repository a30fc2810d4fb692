package commands

import (
	"context"
	"errors"
	"fmt"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/request"
	"bahi/eventstore"
)

// Do runs a decision on any number of records. decide reads them by [Load] from the transaction, and decides on them by [Decide] and
// [DecideNew]. One append writes all of its events. If a record that decide has read changes meanwhile, decide runs again on the newer
// state. So decide must have no side effects, except by [Once].
//
// Do returns the first decided record of the kind, with revision -1 if there is none. It returns the domain's refusal, [ErrStale],
// [ErrBusy], or an error of the store. A refusal was correct at some time during the call. A retry with the same Idempotency-Key returns
// the first outcome. It writes no events, but may reserve numbers.
func Do[S any](
	ctx context.Context, h *Handler, req Request, kind *event.Kind[S], decide func(ctx context.Context, tx *Tx) error,
) (Outcome[S], error) {
	if req.RequestID != "" {
		defer h.waiting.begin()()
	}
	none := Outcome[S]{Revision: -1}
	overdue, made := map[string]bool{}, map[string]any{}
	for range maxTries {
		var name, mark string
		if req.Key != "" && !req.DryRun {
			var err error
			if name, mark, err = marks(ctx, h, req); err != nil {
				return none, err
			}
		}
		out, err := attempt(ctx, newTx(h, req, kind.Category(), overdue, made), kind, name, mark, decide)
		wrong, moved := errors.AsType[*eventstore.WrongRevision](err)
		switch {
		case errors.Is(err, eventstore.ErrTailLost):
			clear(made) // the log may give the same numbers again
		case moved:
			overdue[wrong.Stream] = true
		default:
			return out, err
		}
	}
	return none, ErrBusy
}

// attempt decides once. It returns [eventstore.WrongRevision] if a record has changed meanwhile, and [eventstore.ErrTailLost] if the log
// has lost events that it has read.
func attempt[S any](
	ctx context.Context, tx *Tx, kind *event.Kind[S], name, mark string, decide func(ctx context.Context, tx *Tx) error,
) (Outcome[S], error) {
	if name != "" {
		if !tx.overdue[request.Kind.Stream(name)] {
			Unseen(tx, request.Kind, name) // most requests have no retry
		} else if out, done, err := earlier(ctx, tx.h, tx, kind, name, mark); done || err != nil {
			return out, err
		}
	}
	err := decide(ctx, tx)
	r, decided := tx.first.(*reading[S])
	if !decided {
		r = &reading[S]{read: Loaded[S]{Revision: -1}}
		if err == nil && tx.decided > 0 {
			err = fmt.Errorf("the command made no decision on a %s", kind.Category())
		}
	}
	before := r.read
	out := Outcome[S]{ID: r.id, State: before.State, Revision: before.Revision, Position: before.Position, At: before.At,
		CreatedAt: before.CreatedAt}
	if err != nil {
		if _, refused := errors.AsType[*fault.Error](err); refused {
			if _, moved := tx.confirm(ctx); moved != nil {
				return out, moved
			}
		}
		return out, err
	}
	if !decided {
		return out, nil
	}
	writes := 0
	for _, r := range tx.records {
		writes += r.count()
	}
	if tx.req.DryRun || writes == 0 && name == "" {
		out.State, out.Changed = r.now.State, writes > 0
		at, err := tx.confirm(ctx)
		if writes == 0 {
			out.Position = max(out.Position, at)
		}
		return out, err
	}
	if name != "" {
		tx.remember(mark)
	}
	done, err := tx.commit(ctx)
	if err != nil {
		return out, err
	}
	out.Position, out.Changed = done.Position, r.count() > 0
	if out.Changed {
		out.State, out.Revision, out.At, out.CreatedAt = r.now.State, r.now.Revision, r.now.At, r.now.CreatedAt
	}
	return out, nil
}
