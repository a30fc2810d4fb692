package commands

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/request"
	"bahi/eventstore"
)

// ErrKeyReused answers a key that was used for another request.
var ErrKeyReused = fault.New(fault.Invalid, "Idempotency-Key was used with another request")

// errRaced tells that another request with the same key was faster.
var errRaced = errors.New("another request with this key was accepted first")

// keyName is the vault's key for scopes and fingerprints. A bare hash would be an oracle for what is
// in a request.
const keyName = "idempotency"

// once carries out a command that has an Idempotency-Key (DESIGN.md, hard case 2).
func once[S any](ctx context.Context, h *Handler, kind *event.Kind[S], newID func(context.Context) (string, error), cmd event.Command[S]) (Outcome[S], error) {
	req := From(ctx)
	scope := [][]byte{[]byte(req.Operation), []byte(req.Actor.String()), req.Workspace[:], []byte(req.Key)}
	name, err := h.vault.HMAC(ctx, keyName, scope...)
	if err != nil {
		return Outcome[S]{Revision: -1}, fmt.Errorf("name the request: %w", err)
	}
	print, err := h.vault.HMAC(ctx, keyName, append(scope, req.Fingerprint)...)
	if err != nil {
		return Outcome[S]{Revision: -1}, fmt.Errorf("fingerprint the request: %w", err)
	}
	for range maxTries {
		known, err := Load(ctx, h.Fresh(), request.Kind, hash(name))
		if err != nil {
			return Outcome[S]{Revision: -1}, err
		}
		out, err := first(ctx, h, kind, newID, cmd, known, hash(name), hash(print))
		if !errors.Is(err, errRaced) {
			return out, err
		}
	}
	return Outcome[S]{Revision: -1}, ErrBusy
}

// first answers what the request did when it came before, or does it now.
func first[S any](
	ctx context.Context, h *Handler, kind *event.Kind[S], newID func(context.Context) (string, error), cmd event.Command[S],
	known Loaded[request.State], name, print string,
) (Outcome[S], error) {
	revision := known.Revision + 1 // of the RequestAccepted that this request has, or will have
	if known.State.Accepted {
		revision = known.Revision
		if known.State.Fingerprint != print {
			return Outcome[S]{Revision: -1}, ErrKeyReused
		}
		if out, done, err := earlier(ctx, h, kind, known.State, eventIDs(name, revision)); done || err != nil {
			return out, err
		}
	}
	id := ""
	if known.State.Accepted {
		_, id = event.SplitStream(known.State.Stream)
	} else {
		var err error
		if id, err = newID(ctx); err != nil {
			return Outcome[S]{Revision: -1}, err
		}
	}
	accepted := known.State.Accepted
	accept := func(stream string, nothing bool, at int64) error {
		if accepted {
			return nil
		}
		note := request.Accepted{Fingerprint: print, Stream: stream, Nothing: nothing}
		if nothing {
			note.Revision = at
		}
		e, err := request.Kind.Encode(newEventID(), note, h.Meta(ctx))
		if err != nil {
			return err
		}
		_, err = h.store.Append(ctx, request.Kind.Stream(name), eventstore.Expected(known.Revision), e)
		if _, raced := errors.AsType[*eventstore.WrongRevision](err); raced {
			return errRaced
		}
		accepted = err == nil
		return err
	}
	out, err := repeat(ctx, h, kind, id, cmd, eventIDs(name, revision), accept)
	if refused, ok := errors.AsType[*fault.Error](err); ok && accepted && !out.Changed {
		h.release(ctx, name, revision)
		return out, refused
	}
	return out, err
}

// eventIDs derives the ids of a request's events, so that a repetition finds them.
func eventIDs(name string, revision int64) func(int) uuid.UUID {
	space := uuid.NewSHA1(uuid.NameSpaceOID, []byte(request.Kind.Stream(name)+"@"+strconv.FormatInt(revision, 10)))
	return func(i int) uuid.UUID { return uuid.NewSHA1(space, []byte(strconv.Itoa(i))) }
}

// earlier answers what the request did when it came before; done is false when its events never
// reached their stream.
func earlier[S any](ctx context.Context, h *Handler, kind *event.Kind[S], was request.State, ids func(int) uuid.UUID) (out Outcome[S], done bool, err error) {
	_, id := event.SplitStream(was.Stream)
	upTo, count := was.Revision, 0
	var landed event.Stored
	if !was.Nothing {
		for e, err := range h.store.ReadStream(ctx, was.Stream, 0, eventstore.Forwards) {
			if err != nil {
				return Outcome[S]{Revision: -1}, false, err
			}
			if e.ID == ids(count) {
				count++
				landed, upTo = e, e.Revision
			}
		}
		if count == 0 {
			return Outcome[S]{Revision: -1}, false, nil
		}
	}
	before, err := loadAt(ctx, h, kind, was.Stream, upTo-1)
	if err != nil {
		return Outcome[S]{Revision: -1}, false, err
	}
	after, err := loadAt(ctx, h, kind, was.Stream, upTo)
	if err != nil {
		return Outcome[S]{Revision: -1}, false, err
	}
	if count > 0 { // what lost a race then is refused now
		r, err := kind.Decode(landed)
		if err != nil {
			return Outcome[S]{Revision: -1}, false, err
		}
		void, err := isVoid(ctx, h, kind, before.State, r)
		if err != nil {
			return Outcome[S]{Revision: -1}, false, err
		}
		if void != nil {
			return Outcome[S]{Revision: -1}, true, void
		}
	}
	return Outcome[S]{
		ID: id, State: after.State, Revision: after.Revision, Position: after.Position, At: after.At, Changed: !was.Nothing, Replayed: true,
	}, true, nil
}

// release frees the key of a request that was accepted and then could not be carried out.
func (h *Handler) release(ctx context.Context, name string, revision int64) {
	if e, err := request.Kind.Encode(newEventID(), request.Released{}, h.Meta(ctx)); err == nil {
		_, _ = h.store.Append(context.WithoutCancel(ctx), request.Kind.Stream(name), eventstore.Expected(revision), e)
	}
}
