package commands

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/request"
	"bahi/eventstore"
)

// ErrKeyReused is the error of a key that was used for another request.
var ErrKeyReused = fault.New(fault.Invalid, "Idempotency-Key was used with another request")

// errRaced tells that another request with the same key was faster.
var errRaced = errors.New("another request with this key was accepted first")

// keyName is the vault's key for scopes and fingerprints. A bare hash would be an oracle for what is
// in a request.
const keyName = "idempotency"

// marks returns what a request with a key is known by: the name of its stream, and the fingerprint of
// everything that makes it the same request.
func marks(ctx context.Context, h *Handler, req Request) (name, mark string, err error) {
	scope := [][]byte{[]byte(req.Operation), []byte(req.Actor.String()), req.Workspace[:], []byte(req.Key)}
	if req.Actor.Type == "" { // the public is many callers, who know nothing of one another's keys
		scope = append(scope, req.Fingerprint)
	}
	named, err := h.vault.HMAC(ctx, keyName, scope...)
	if err != nil {
		return "", "", fmt.Errorf("name the request: %w", err)
	}
	marked, err := h.vault.HMAC(ctx, keyName, append(scope, req.Fingerprint)...)
	if err != nil {
		return "", "", fmt.Errorf("fingerprint the request: %w", err)
	}
	return hash(named), hash(marked), nil
}

// Earlier returns what the request did when it came before with the same key; done is false
// when it did not. It is for a flow of several steps, which asks it first and keeps the key for the
// command that decides: a step before that, such as looking at a password, would not end the same again.
func Earlier[S any](ctx context.Context, h *Handler, req Request, kind *event.Kind[S]) (out Outcome[S], done bool, err error) {
	out.Revision = -1
	if req.Key == "" || req.DryRun {
		return out, false, nil
	}
	name, mark, err := marks(ctx, h, req)
	if err != nil {
		return out, false, err
	}
	known, err := Load(ctx, h.Fresh(), request.Kind, name)
	switch {
	case err != nil || !known.State.Accepted:
		return out, false, err
	case known.State.Fingerprint != mark:
		return out, false, ErrKeyReused
	}
	return earlier(ctx, h, kind, known, eventIDs(name, known.Revision))
}

// Reserve returns the first of count numbers of a series for the records of a kind that a request begins. A repetition with the same key
// gets the same
// numbers; again says that some of its records may be there.
func Reserve[S any](ctx context.Context, h *Handler, req Request, kind *event.Kind[S], count int64) (first int64, again bool, err error) {
	if req.Key == "" {
		first, err = h.Numbers(ctx, kind.Category(), count)
		return first, false, err
	}
	name, mark, err := marks(ctx, h, req)
	if err != nil {
		return 0, false, err
	}
	for range maxTries {
		known, err := Load(ctx, h.Fresh(), request.Kind, name)
		if err != nil {
			return 0, false, err
		}
		if known.State.Accepted {
			if known.State.Fingerprint != mark {
				return 0, false, ErrKeyReused
			}
			_, id := event.SplitStream(known.State.Stream)
			first, err = strconv.ParseInt(id, 10, 64)
			return first, true, err
		}
		if first == 0 {
			if first, err = h.Numbers(ctx, kind.Category(), count); err != nil {
				return 0, false, err
			}
		}
		e, err := request.Kind.Encode(newEventID(), request.Accepted{Fingerprint: mark, Stream: kind.Stream(strconv.FormatInt(first, 10))}, h.meta(req))
		if err != nil {
			return 0, false, err
		}
		_, err = h.append(ctx, known.write(request.Kind.Stream(name), e))
		if _, raced := errors.AsType[*eventstore.WrongRevision](err); !raced {
			return first, false, err
		}
	}
	return 0, false, ErrBusy
}

// once carries out a command that has an Idempotency-Key (DESIGN.md, hard case 2).
func once[S any](
	ctx context.Context, h *Handler, req Request, kind *event.Kind[S], newID func(context.Context) (string, error), begins bool, cmd func(id string) event.Command[S],
) (Outcome[S], error) {
	name, mark, err := marks(ctx, h, req)
	if err != nil {
		return Outcome[S]{Revision: -1}, err
	}
	req.attempt = rand.Text()
	for try := range maxTries {
		from := h.Fresh()
		if entry, ok := h.cache.get(request.Kind.Stream(name)); ok && try == 0 && entry.revision < 0 {
			from = h.Cached() // a flow has just looked; if the request was accepted since, the note of its acceptance is refused
		}
		known, err := Load(ctx, from, request.Kind, name)
		if err != nil {
			return Outcome[S]{Revision: -1}, err
		}
		out, err := first(ctx, h, req, kind, newID, begins, cmd, known, name, mark)
		if !errors.Is(err, errRaced) {
			return out, err
		}
	}
	return Outcome[S]{Revision: -1}, ErrBusy
}

// first returns what the request did when it came before, or does it now.
func first[S any](
	ctx context.Context, h *Handler, req Request, kind *event.Kind[S], newID func(context.Context) (string, error), begins bool, cmd func(id string) event.Command[S],
	known Loaded[request.State], name, mark string,
) (Outcome[S], error) {
	a := &acceptance{
		h: h, req: req, stream: request.Kind.Stream(name), revision: known.Revision, asOf: known.asOf, accepted: known.State.Accepted,
		note: request.Accepted{Fingerprint: mark, Stream: known.State.Stream},
	}
	var id string
	if a.accepted {
		if known.State.Fingerprint != mark {
			return Outcome[S]{Revision: -1}, ErrKeyReused
		}
		a.ids = eventIDs(name, known.Revision)
		if out, done, err := earlier(ctx, h, kind, known, a.ids); done || err != nil {
			return out, err
		}
		_, id = event.SplitStream(known.State.Stream)
		begins = false
	} else {
		a.ids = eventIDs(name, known.Revision+1)
		var err error
		if id, err = newID(ctx); err != nil {
			return Outcome[S]{Revision: -1}, err
		}
	}
	out, err := repeat(ctx, h, req, kind, id, begins, cmd(id), a.ids, func(stream string, nothing bool, revision int64) error {
		return a.accept(ctx, stream, nothing, revision)
	})
	if refused, ok := errors.AsType[*fault.Error](err); ok && !out.Changed {
		return out, a.refused(ctx, refused)
	}
	if err == nil && !out.Changed { // a repetition finds no other position than that of the note
		out.Position = a.position
	}
	return out, err
}

// acceptance is what the log holds of a request while it is carried out.
type acceptance struct {
	h        *Handler
	req      Request
	stream   string // request-<name>
	revision int64  // of that stream
	asOf     event.Position
	accepted bool
	position event.Position // of the note
	note     request.Accepted
	ids      func(int) uuid.UUID // of the events that follow
}

// accept writes down what is about to be appended to the stream, or that nothing is.
func (a *acceptance) accept(ctx context.Context, stream string, nothing bool, revision int64) error {
	if a.accepted {
		// What was decided may be decided on the request's own events: the store would take them again, as the revision is right.
		if err := a.overtaken(ctx); err != nil || !nothing {
			return err
		}
	}
	a.note.Stream, a.note.Nothing, a.note.Revision = stream, nothing, 0
	if nothing {
		a.note.Revision = revision
	}
	e, err := request.Kind.Encode(newEventID(), a.note, a.h.meta(a.req))
	if err != nil {
		return err
	}
	t := eventstore.To(a.stream, eventstore.Expected(a.revision), e)
	t.AsOf = a.asOf
	done, err := a.h.append(ctx, t)
	if _, raced := errors.AsType[*eventstore.WrongRevision](err); raced {
		return errRaced
	}
	if err == nil {
		a.accepted, a.revision, a.position = true, done.Revision, done.Position
	}
	return err
}

// overtaken returns errRaced when the request's events are there, by the hand of another process that
// carries out the same request.
func (a *acceptance) overtaken(ctx context.Context) error {
	for e, err := range a.h.store.ReadStream(ctx, a.note.Stream, 0, eventstore.Forwards) {
		if err != nil {
			return err
		}
		if e.ID == a.ids(0) {
			return errRaced
		}
	}
	return nil
}

// refused returns why the request could not be carried out, after it freed the key if that was taken,
// or errRaced when it is carried out already.
func (a *acceptance) refused(ctx context.Context, why error) error {
	if !a.accepted {
		for _, err := range a.h.store.ReadStream(ctx, a.stream, a.revision+1, eventstore.Forwards) {
			if err == nil {
				err = errRaced
			}
			return err
		}
		return why
	}
	if err := a.overtaken(ctx); err != nil {
		return err
	}
	if e, err := request.Kind.Encode(newEventID(), request.Released{}, a.h.meta(a.req)); err == nil {
		_, _ = a.h.store.Append(context.WithoutCancel(ctx), eventstore.To(a.stream, eventstore.Expected(a.revision), e))
	}
	return why
}

// eventIDs derives the ids of a request's events, so that a repetition finds them.
func eventIDs(name string, revision int64) func(int) uuid.UUID {
	space := uuid.NewSHA1(uuid.NameSpaceOID, []byte(request.Kind.Stream(name)+"@"+strconv.FormatInt(revision, 10)))
	return func(i int) uuid.UUID { return uuid.NewSHA1(space, []byte(strconv.Itoa(i))) }
}

// earlier returns what the request did when it came before; done is false when its events never
// reached their stream.
func earlier[S any](
	ctx context.Context, h *Handler, kind *event.Kind[S], known Loaded[request.State], ids func(int) uuid.UUID,
) (out Outcome[S], done bool, err error) {
	was := known.State
	if was.Nothing {
		_, id := event.SplitStream(was.Stream)
		l, _, err := readOn(ctx, h, kind, was.Stream, Loaded[S]{Revision: -1}, was.Revision)
		return Outcome[S]{ID: id, State: l.State, Revision: l.Revision, Position: known.Position, At: l.At, Began: l.Began, Replayed: true}, true, err
	}
	last, count := int64(-1), 0
	for e, err := range h.store.ReadStream(ctx, was.Stream, 0, eventstore.Forwards) {
		if err != nil {
			return Outcome[S]{Revision: -1}, false, err
		}
		if e.ID == ids(count) {
			last, count = e.Revision, count+1
		}
	}
	if count == 0 {
		return Outcome[S]{Revision: -1}, false, nil
	}
	out, err = replay(ctx, h, kind, was.Stream, last)
	return out, true, err
}

// replay returns once more what an append did whose last event has this revision.
func replay[S any](ctx context.Context, h *Handler, kind *event.Kind[S], stream string, revision int64) (Outcome[S], error) {
	_, id := event.SplitStream(stream)
	l, void, err := readOn(ctx, h, kind, stream, Loaded[S]{Revision: -1}, revision)
	out := Outcome[S]{ID: id, State: l.State, Revision: l.Revision, Position: l.Position, At: l.At, Began: l.Began, Changed: true, Replayed: true}
	if void != nil && err == nil { // what lost a race then is refused now
		err = void
	}
	return out, err
}
