package commands

import (
	"context"
	"fmt"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/request"
	"bahi/eventstore"
)

// ErrKeyReused is the error of a key that was used for another request.
var ErrKeyReused = fault.New(fault.Invalid, "Idempotency-Key was used with another request")

// keyName is the vault's key for scopes and fingerprints. A guessed request could be checked against an unkeyed hash.
const keyName = "idempotency"

// marks returns the identity of a request with a key: the name of its stream, and the fingerprint of all its parts.
func marks(ctx context.Context, h *Handler, req Request) (name, mark string, err error) {
	scope := [][]byte{[]byte(req.Operation), []byte(req.Actor.String()), req.Workspace[:], []byte(req.Key)}
	if req.Actor.Type == "" { // unauthenticated callers may choose equal keys
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

// PreviousOutcome returns the outcome of an earlier request with the same key; done is false if there was none. Operations call it before
// an action outside the log with a result that may differ the second time, such as verifying a password. The key stays usable for [Do].
func PreviousOutcome[S any](ctx context.Context, h *Handler, req Request, kind *event.Kind[S]) (out Outcome[S], done bool, err error) {
	out.Revision = -1
	if req.Key == "" || req.DryRun {
		return out, false, nil
	}
	name, mark, err := marks(ctx, h, req)
	if err != nil {
		return out, false, err
	}
	return earlier(ctx, h, h.Fresh(), kind, name, mark)
}

// earlier returns the outcome of an earlier accepted request.
func earlier[S any](ctx context.Context, h *Handler, from Source, kind *event.Kind[S], name, mark string) (out Outcome[S],
	done bool, err error) {
	out.Revision = -1
	known, err := Load(ctx, from, request.Kind, name)
	was := known.State
	switch category, id := event.SplitStream(was.Stream); {
	case err != nil || !was.Accepted:
		return out, false, err
	case was.Fingerprint != mark:
		return out, false, ErrKeyReused
	case category != kind.Category():
		return out, false, fmt.Errorf("a request on %s was accepted for %s", kind.Category(), was.Stream)
	default:
		l, err := readOn(ctx, h, kind, was.Stream, Loaded[S]{Revision: -1}, end{was.Revision, eventstore.End})
		return Outcome[S]{
			ID: id, State: l.State, Revision: l.Revision, Position: known.end, At: l.At, CreatedAt: l.CreatedAt, Changed: !was.Nothing,
			Replayed: true,
		}, true, err
	}
}
