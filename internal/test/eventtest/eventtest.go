// Package eventtest tests rules: given these events, when this command, then those events.
//
// Like the log, it seals, encodes and decodes each event before folding it. So an event that is missing from its kind, or whose payload
// loses something, fails here.
package eventtest

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/fault"
)

// Faults returns the refusal of fields, given as pairs of a field and a message.
func Faults(fieldsAndMessages ...string) *fault.Error {
	var fields []fault.Field
	for pair := range slices.Chunk(fieldsAndMessages, 2) {
		fields = append(fields, fault.Field{Field: pair[0], Message: pair[1]})
	}
	return fault.Fields(fields...)
}

// History is an aggregate's history before a case.
type History[S any] struct {
	t      *testing.T
	kind   *event.Kind[S]
	events []event.Event[S]
}

// Given returns the history with these events, at the positions 1, 2, 3 … of the log.
func Given[S any](t *testing.T, kind *event.Kind[S], events ...event.Event[S]) *History[S] {
	t.Helper()
	h := &History[S]{t: t, kind: kind, events: events}
	h.State() // an invalid history fails here, not in its first case
	return h
}

// And returns the history with more events. The original does not change.
func (h *History[S]) And(events ...event.Event[S]) *History[S] {
	h.t.Helper()
	all := append(append([]event.Event[S]{}, h.events...), events...)
	return Given(h.t, h.kind, all...)
}

// State returns the state after the events.
func (h *History[S]) State() S {
	h.t.Helper()
	return fold(h.t, h.kind, h.events)
}

// Case starts a case with a sentence about the rule. It becomes a subtest.
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

// When sets the command.
func (c *Case[S]) When(command event.Command[S]) *Case[S] {
	c.command = command
	return c
}

// Then requires that the command decides these events, in order. Sealed values are compared by their texts.
func (c *Case[S]) Then(events ...event.Event[S]) {
	c.run(func(t *testing.T, decided []event.Event[S], err error) {
		t.Helper()
		require.NoError(t, err)
		require.NotEmpty(t, events, "say ThenNothing")
		require.Equal(t, seal(t, events), seal(t, decided))
		fold(t, c.history.kind, append(append([]event.Event[S]{}, c.history.events...), decided...))
	})
}

// ThenNothing requires that the command decides no events.
func (c *Case[S]) ThenNothing() {
	c.run(func(t *testing.T, decided []event.Event[S], err error) {
		t.Helper()
		require.NoError(t, err)
		require.Empty(t, decided)
	})
}

// ThenFails requires that the command returns this error. It compares all parts of a [fault.Error], including the fields.
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

// fold returns the state after the decoded events. It checks that Evolve is deterministic and does not change the given state.
func fold[S any](t *testing.T, kind *event.Kind[S], events []event.Event[S]) S {
	t.Helper()
	var state, untouched S
	for i, e := range seal(t, events) {
		r := throughTheLog(t, kind, e, event.Position(i+1))
		after := kind.Evolve(state, r)
		require.Equal(t, untouched, state, "Evolve of %T changed the state that it was given", e)
		require.Equal(t, after, kind.Evolve(state, r), "Evolve of %T is not deterministic", e)
		state, untouched = after, kind.Evolve(untouched, r)
	}
	return state
}

// throughTheLog encodes and decodes the event.
func throughTheLog[S any](t *testing.T, kind *event.Kind[S], e event.Event[S], at event.Position) event.Recorded[event.Event[S]] {
	t.Helper()
	stored, err := kind.Encode(uuid.UUID{}, e, event.Meta{})
	require.NoError(t, err)
	r, err := kind.Decode(event.Stored{
		Position: at, Stream: kind.Stream("1"), Revision: int64(at) - 1, Type: stored.Type, Data: stored.Data, Meta: stored.Meta,
	})
	require.NoError(t, err)
	require.Equal(t, e, r.Data, "%T is decoded differently from %s", e, stored.Data)
	return r
}

// seal replaces the vault. Its ciphertexts are equal for equal texts, and not secret.
func seal[S any](t *testing.T, events []event.Event[S]) []event.Event[S] {
	t.Helper()
	sealed, err := event.MapSealed(events, func(fields []*event.Sealed) error {
		for _, f := range fields {
			if text, ok := f.Plaintext(); ok {
				f.SetCiphertext(1, []byte("not secret: "+text))
			}
		}
		return nil
	})
	require.NoError(t, err)
	return sealed
}
