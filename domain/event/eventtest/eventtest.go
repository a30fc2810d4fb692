// Package eventtest tests rules: given these events, when this command, then those events.
//
// States are folded from what the log would hold: each event is sealed, encoded and decoded on the
// way, so an event that is missing from its kind, or loses something in its payload, fails here.
package eventtest

import (
	"errors"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/fault"
)

// History is what happened to an aggregate before a case begins.
type History[S any] struct {
	t      *testing.T
	kind   *event.Kind[S]
	events []event.Event[S]
}

// Given is an aggregate to which these events happened, at the positions 1, 2, 3 … of the log.
func Given[S any](t *testing.T, kind *event.Kind[S], events ...event.Event[S]) *History[S] {
	t.Helper()
	h := &History[S]{t: t, kind: kind, events: events}
	h.State() // a history that cannot be folded fails here, not in its first case
	return h
}

// And is the same aggregate after some more events. The history that it goes on from stays as it is.
func (h *History[S]) And(events ...event.Event[S]) *History[S] {
	h.t.Helper()
	all := append(append([]event.Event[S]{}, h.events...), events...)
	return Given(h.t, h.kind, all...)
}

// State is what the events fold to.
func (h *History[S]) State() S {
	h.t.Helper()
	return fold(h.t, h.kind, h.events)
}

// Case begins a case, a sentence about the rule. It becomes a subtest.
func (h *History[S]) Case(sentence string) *Case[S] {
	c := &Case[S]{history: h, sentence: sentence}
	h.t.Cleanup(func() {
		if !c.concluded {
			h.t.Errorf("%q has no Then", sentence)
		}
	})
	return c
}

// Case is one sentence about a rule. It MUST end with one of the Then methods.
type Case[S any] struct {
	history   *History[S]
	sentence  string
	command   event.Command[S]
	concluded bool
}

// When is the command.
func (c *Case[S]) When(command event.Command[S]) *Case[S] {
	c.command = command
	return c
}

// Then are the events that the command decides, in order. Sealed values are compared by their texts.
func (c *Case[S]) Then(events ...event.Event[S]) {
	c.run(func(t *testing.T, decided []event.Event[S], err error) {
		t.Helper()
		require.NoError(t, err)
		require.NotEmpty(t, events, "say ThenNothing")
		require.Equal(t, seal(t, events), seal(t, decided))
		fold(t, c.history.kind, append(append([]event.Event[S]{}, c.history.events...), decided...))
	})
}

// ThenNothing says that the command changes nothing.
func (c *Case[S]) ThenNothing() {
	c.run(func(t *testing.T, decided []event.Event[S], err error) {
		t.Helper()
		require.NoError(t, err)
		require.Empty(t, decided)
	})
}

// ThenFails is the error that the command answers. Of a [fault.Error] all is compared, the fields too.
func (c *Case[S]) ThenFails(want error) {
	c.run(func(t *testing.T, decided []event.Event[S], err error) {
		t.Helper()
		require.Empty(t, decided)
		if refusal, ok := errors.AsType[*fault.Error](want); ok {
			require.Equal(t, refusal, err)
			return
		}
		require.ErrorIs(t, err, want)
	})
}

func (c *Case[S]) run(check func(t *testing.T, decided []event.Event[S], err error)) {
	h := c.history
	h.t.Helper()
	c.concluded = true
	h.t.Run(c.sentence, func(t *testing.T) {
		t.Helper()
		require.NotNil(t, c.command, "this case has no When")
		before := h.State()
		decided, err := c.command.Decide(before)
		require.Equal(t, h.State(), before, "Decide changed the state that it was given")
		check(t, decided, err)
	})
}

// fold returns the state after the events, as they are read back. It holds Evolve to its word: the
// state before stays as it was, since others may be using it.
func fold[S any](t *testing.T, kind *event.Kind[S], events []event.Event[S]) S {
	t.Helper()
	var state, untouched S
	for i, e := range seal(t, events) {
		r := throughTheLog(t, kind, e, event.Position(i+1))
		after := kind.Evolve(state, r)
		require.Equal(t, untouched, state, "Evolve of %T changed the state that it was given", e)
		require.Equal(t, after, kind.Evolve(state, r), "Evolve of %T answers this and that", e)
		state, untouched = after, kind.Evolve(untouched, r)
	}
	return state
}

// throughTheLog encodes and decodes.
func throughTheLog[S any](t *testing.T, kind *event.Kind[S], e event.Event[S], at event.Position) event.Recorded[event.Event[S]] {
	t.Helper()
	stored, err := kind.Encode(uuid.UUID{}, e, event.Meta{})
	require.NoError(t, err)
	r, err := kind.Decode(event.Stored{
		Position: at, Stream: kind.Stream("1"), Revision: int64(at) - 1, Type: stored.Type, Data: stored.Data, Meta: stored.Meta,
	})
	require.NoError(t, err)
	require.Equal(t, e, r.Data, "%T is read back as something else from %s", e, stored.Data)
	return r
}

// seal stands in for the vault. Unlike the vault's its boxes are equal for equal texts, and no secret.
func seal[S any](t *testing.T, events []event.Event[S]) []event.Event[S] {
	t.Helper()
	sealed, err := event.MapSealed(events, func(fields []*event.Sealed) error {
		for _, f := range fields {
			if text, ok := f.Clear(); ok {
				f.Close(1, []byte("not secret: "+text))
			}
		}
		return nil
	})
	require.NoError(t, err)
	return sealed
}
