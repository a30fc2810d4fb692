package event

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Type is a stored name of a kind of stream, with the Go type of its events.
type Type[S any] struct {
	name    string
	version int
	goType  reflect.Type
	decode  func([]byte) (Event[S], error)
	lifts   map[int]func(json.RawMessage) (json.RawMessage, error)
}

// Upcaster converts a payload of version From into version From+1.
type Upcaster struct {
	From int
	Do   func(json.RawMessage) (json.RawMessage, error)
}

// Of returns the type with a stored name for events E. version is the current version of their payload. lifts has an upcaster for each
// older version.
func Of[E Event[S], S any](name string, version int, lifts ...Upcaster) Type[S] {
	t := Type[S]{
		name: name, version: version, goType: reflect.TypeFor[E](),
		decode: func(data []byte) (Event[S], error) {
			var e E
			err := json.Unmarshal(withoutNUL(data), &e)
			return e, err
		},
		lifts: make(map[int]func(json.RawMessage) (json.RawMessage, error), len(lifts)),
	}
	for _, l := range lifts {
		if l.From < 1 || l.From >= version || t.lifts[l.From] != nil {
			panic(fmt.Sprintf("event %s at version %d: the upcaster from version %d is useless or occurs twice", name, version, l.From))
		}
		t.lifts[l.From] = l.Do
	}
	for v := 1; v < version; v++ {
		if t.lifts[v] == nil {
			panic(fmt.Sprintf("event %s: no upcaster from version %d", name, v))
		}
	}
	return t
}

// nul is the JSON escape of a NUL.
var nul = []byte(`\u0000`)

// withoutNUL removes the NULs from the texts of a payload. Postgres tables cannot have NULs, so a NUL from a network or a model would stop
// a projection for all workspaces.
func withoutNUL(data []byte) []byte {
	if !bytes.Contains(data, nul) {
		return data
	}
	kept := make([]byte, 0, len(data))
	for len(data) > 0 {
		switch {
		case bytes.HasPrefix(data, nul):
			data = data[len(nul):]
		case data[0] == '\\' && len(data) > 1: // a character after a backslash does not begin another escape
			kept, data = append(kept, data[:2]...), data[2:]
		default:
			kept, data = append(kept, data[0]), data[1:]
		}
	}
	return kept
}

// Reading returns the type with a step that completes each decoded event.
func (t Type[S]) Reading(complete func(Event[S]) (Event[S], error)) Type[S] {
	if decode := t.decode; complete != nil {
		t.decode = func(data []byte) (Event[S], error) {
			e, err := decode(data)
			if err != nil {
				return nil, err
			}
			return complete(e)
		}
	}
	return t
}

// Kind is a kind of stream: its category and its types of events.
type Kind[S any] struct {
	category string
	byName   map[string]Type[S]
	byGo     map[reflect.Type]Type[S]
	ordered  []Type[S]
	subjects []SubjectType // subjects of the sealed values in its events
}

// NewKind returns the kind of the streams <category>-<id>. Names never change, because old logs have them. It panics if a name or a Go type
// occurs twice, or if the category has a dash.
func NewKind[S any](category string, types ...Type[S]) *Kind[S] {
	if category == "" || strings.Contains(category, "-") {
		panic(fmt.Sprintf("category %q: must not contain a dash, which ends it in a stream's name", category))
	}
	k := &Kind[S]{
		category: category, ordered: types,
		byName: make(map[string]Type[S], len(types)), byGo: make(map[reflect.Type]Type[S], len(types)),
	}
	for _, t := range types {
		if _, twice := k.byName[t.name]; twice {
			panic("event name twice: " + t.name)
		}
		if _, twice := k.byGo[t.goType]; twice {
			panic("event type twice: " + t.goType.String())
		}
		k.byName[t.name], k.byGo[t.goType] = t, t
	}
	return k
}

// Category returns the part of a stream's name before its first dash.
func (k *Kind[S]) Category() string { return k.category }

// Names returns the stored names of the kind's events.
func (k *Kind[S]) Names() []string {
	names := make([]string, len(k.ordered))
	for i, t := range k.ordered {
		names[i] = t.name
	}
	return names
}

// Stream returns the name of the aggregate's stream.
func (k *Kind[S]) Stream(id string) string { return StreamName(k.category, id) }

// Encode encodes e for the log with the given id. It sets meta.Schema, and converts meta.OccurredAt to its stored form.
func (k *Kind[S]) Encode(id uuid.UUID, e Event[S], meta Meta) (Proposed, error) {
	t, known := k.byGo[reflect.TypeOf(e)]
	if !known {
		return Proposed{}, fmt.Errorf("encode: %T is not an event of kind %s", e, k.category)
	}
	data, err := json.Marshal(e)
	if err != nil {
		return Proposed{}, fmt.Errorf("encode %s: %w", t.name, err)
	}
	meta.Schema, meta.OccurredAt = t.version, meta.OccurredAt.UTC().Truncate(time.Microsecond)
	m, err := json.Marshal(meta)
	if err != nil {
		return Proposed{}, fmt.Errorf("encode metadata of %s: %w", t.name, err)
	}
	return Proposed{ID: id, Type: t.name, Data: data, Meta: m}, nil
}

// Decode decodes a stored event of this kind, and converts it to the current version.
func (k *Kind[S]) Decode(s Stored) (Recorded[Event[S]], error) {
	r := Recorded[Event[S]]{Position: s.Position, Stream: s.Stream, Revision: s.Revision, ID: s.ID, At: s.At}
	if err := json.Unmarshal(s.Meta, &r.Meta); err != nil {
		return r, fmt.Errorf("decode metadata of %s at position %d: %w", s.Type, s.Position, err)
	}
	t, known := k.byName[s.Type]
	if !known {
		return r, fmt.Errorf("decode position %d: %q is not an event of kind %s", s.Position, s.Type, k.category)
	}
	data, err := t.lift(s.Data, r.Meta.Schema)
	if err == nil {
		r.Data, err = t.decode(data)
	}
	if err != nil {
		return r, fmt.Errorf("decode %s at position %d: %w", s.Type, s.Position, err)
	}
	return r, nil
}

// Evolve returns the state after r.
func (k *Kind[S]) Evolve(s S, r Recorded[Event[S]]) S { return Evolve(s, r.Data, r.Position) }

func (t Type[S]) lift(data []byte, version int) ([]byte, error) {
	if version < 1 || version > t.version {
		return nil, fmt.Errorf("schema version %d is unknown to this program, which knows 1 to %d", version, t.version)
	}
	for v := version; v < t.version; v++ {
		lifted, err := t.lifts[v](data)
		if err != nil {
			return nil, fmt.Errorf("upcast from version %d: %w", v, err)
		}
		data = lifted
	}
	return data, nil
}

// types returns the kind's entries for the registry.
func (k *Kind[S]) types() []catalogued {
	out := make([]catalogued, len(k.ordered))
	for i, t := range k.ordered {
		out[i] = catalogued{
			TypeInfo: TypeInfo{Name: t.name, Version: t.version, Category: k.category, Go: t.goType},
			decode: func(data []byte, version int) (any, error) {
				data, err := t.lift(data, version)
				if err != nil {
					return nil, err
				}
				return t.decode(data)
			},
		}
	}
	return out
}
