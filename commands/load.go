package commands

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/eventstore"
)

// Loaded is a stream's state.
type Loaded[S any] struct {
	State     S
	Revision  int64          // of its last event; -1: there is no such stream
	Position  event.Position // of its last event
	At        time.Time      // when that was recorded
	Began     time.Time      // when its first event was recorded
	Workspace uuid.UUID      // of its first event

	bytes int            // of its events' payloads
	asOf  event.Position // which this process knew before it read the stream
}

// write returns the transaction that appends to the stream where it was read.
func (l Loaded[S]) write(stream string, events ...event.New) eventstore.Transaction {
	t := eventstore.To(stream, eventstore.Expected(l.Revision), events...)
	t.AsOf = l.asOf
	return t
}

// and returns the stream's state with its next event, whose payload has so many bytes.
func (l Loaded[S]) and(kind *event.Kind[S], r event.Recorded[event.Event[S]], bytes int) Loaded[S] {
	if l.Revision < 0 {
		l.Workspace, l.Began = r.Meta.Workspace, r.At
	}
	l.State, l.Revision, l.Position, l.At, l.bytes = kind.Evolve(l.State, r), r.Revision, r.Position, r.At, l.bytes+bytes
	return l
}

// Rule is a rule that spans streams. No append can keep it, so it is decided by position: an event
// that breaks it where it is in the log is void, for everybody who folds the stream.
type Rule[S any] struct {
	// Refuses returns a fault when the event may not follow on before at its position. What it loads
	// from other streams it must judge as of that position.
	Refuses func(ctx context.Context, from Source, before S, r event.Recorded[event.Event[S]]) error

	// Refusal is the event that notes, for those who read the stream, that the one at a position is void.
	Refusal func(at event.Position, why string) event.Event[S]
}

// Govern makes the rule part of the kind. Call it before anything is handled.
func Govern[S any](h *Handler, kind *event.Kind[S], rule Rule[S]) { h.rules[kind.Category()] = rule }

func ruleOf[S any](h *Handler, kind *event.Kind[S]) (Rule[S], bool) {
	r, ok := h.rules[kind.Category()].(Rule[S])
	return r, ok
}

// Source is where states are loaded from: the cache, which follows the log closely, or the store.
type Source struct {
	h     *Handler
	fresh bool
}

// Load returns the state of a stream.
func Load[S any](ctx context.Context, from Source, kind *event.Kind[S], id string) (Loaded[S], error) {
	stream, asOf := kind.Stream(id), from.h.cache.position()
	l := Loaded[S]{Revision: -1}
	if entry, ok := from.h.cache.get(stream); ok {
		l, _ = entry.loaded.(Loaded[S])
		l.asOf = asOf
		if !from.fresh {
			return l, nil
		}
	}
	t := from.h.cache.begin(stream)
	l, _, err := readOn(ctx, from.h, kind, stream, l, eventstore.LastRevision)
	l.asOf = asOf
	if err != nil {
		from.h.cache.end(t, nil)
		return l, err
	}
	from.h.cache.end(t, &cached{loaded: l, revision: l.Revision, bytes: l.bytes})
	return l, nil
}

// AtHand returns what this process has of a record, which may be late by a moment, if that is there, else what the log has.
func AtHand[S any](ctx context.Context, h *Handler, kind *event.Kind[S], id string, there func(S) bool) (Loaded[S], error) {
	l, err := Load(ctx, h.Cached(), kind, id)
	if err == nil && !there(l.State) {
		l, err = Load(ctx, h.Fresh(), kind, id)
	}
	return l, err
}

// readOn folds what follows on l. void tells why the last event that it read may not be there, nil
// if it may.
func readOn[S any](ctx context.Context, h *Handler, kind *event.Kind[S], stream string, l Loaded[S], upTo int64) (_ Loaded[S], void *fault.Error, err error) {
	for stored, err := range h.store.ReadStream(ctx, stream, l.Revision+1, eventstore.Forwards) {
		if err != nil {
			return l, nil, err
		}
		if stored.Revision > upTo {
			break
		}
		r, err := kind.Decode(stored)
		if err != nil {
			return l, nil, err
		}
		if void, err = isVoid(ctx, h, kind, l.State, r); err != nil {
			return l, nil, fmt.Errorf("judge %s at position %d: %w", r.Stream, r.Position, err)
		}
		before := l.State
		if l = l.and(kind, r, len(stored.Data)); void != nil {
			l.State = before
		}
	}
	return l, void, nil
}

// isVoid returns why an event that is in the log may not be there, nil if it may.
func isVoid[S any](ctx context.Context, h *Handler, kind *event.Kind[S], before S, r event.Recorded[event.Event[S]]) (*fault.Error, error) {
	rule, governed := ruleOf(h, kind)
	if !governed {
		return nil, nil
	}
	// The cache knows every event up to where it was fed; before the position is reached, only the
	// store does.
	from := Source{h: h, fresh: !h.cache.reached(ctx, r.Position, feedPatience)}
	err := rule.Refuses(ctx, from, before, r)
	if refused, ok := errors.AsType[*fault.Error](err); ok {
		return refused, nil
	}
	return nil, err
}
