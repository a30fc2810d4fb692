package event

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
)

// TypeInfo describes a stored name.
type TypeInfo struct {
	Name     string
	Version  int // current version of the payload
	Category string
	Go       reflect.Type
}

type catalogued struct {
	TypeInfo

	decode func(data []byte, version int) (any, error)
}

// AnyKind is a [Kind] of any state.
type AnyKind interface {
	Category() string
	Subjects() []SubjectType
	types() []catalogued
}

// Registry has every kind of stream of the program, and so every stored name.
type Registry struct {
	byName map[string]catalogued
	byGo   map[reflect.Type][]string
	all    []TypeInfo
	kinds  []AnyKind
}

// NewCatalogue returns the registry of the kinds. It panics if two kinds share a stored name or a category. They may share Go types.
func NewCatalogue(kinds ...AnyKind) *Registry {
	c := &Registry{byName: map[string]catalogued{}, byGo: map[reflect.Type][]string{}, kinds: kinds}
	categories := map[string]bool{}
	for _, k := range kinds {
		if categories[k.Category()] {
			panic("category twice: " + k.Category())
		}
		categories[k.Category()] = true
		for _, t := range k.types() {
			if _, twice := c.byName[t.Name]; twice {
				panic("event name twice: " + t.Name)
			}
			c.byName[t.Name], c.byGo[t.Go] = t, append(c.byGo[t.Go], t.Name)
			c.all = append(c.all, t.TypeInfo)
		}
	}
	return c
}

// All returns the stored names in the order of the kinds.
func (c *Registry) All() []TypeInfo { return c.all }

// Kinds lists the kinds, in the order of registration.
func (c *Registry) Kinds() []AnyKind { return c.kinds }

// Endings lists the Go types of the events that trigger an erasure, see [ErasureTrigger].
func (c *Registry) Endings() (types []reflect.Type) {
	for _, t := range c.all {
		if t.Go.Implements(reflect.TypeFor[ErasureTrigger]()) && !slices.Contains(types, t.Go) {
			types = append(types, t.Go)
		}
	}
	return types
}

// Lookup returns the description of a stored name.
func (c *Registry) Lookup(name string) (TypeInfo, bool) {
	t, ok := c.byName[name]
	return t.TypeInfo, ok
}

// NamesOf returns the stored names of Go types, one for each kind with the type. It panics if no kind has a type.
func (c *Registry) NamesOf(types ...reflect.Type) (names []string) {
	for _, t := range types {
		if c.byGo[t] == nil {
			panic(fmt.Sprintf("%s is in no kind of the registry", t))
		}
		names = append(names, c.byGo[t]...)
	}
	return names
}

// Decode decodes a stored event of any kind. Data has the event type's value.
func (c *Registry) Decode(s Stored) (Recorded[any], error) {
	r := Recorded[any]{Position: s.Position, Stream: s.Stream, Revision: s.Revision, ID: s.ID, At: s.At}
	t, known := c.byName[s.Type]
	if !known {
		return r, fmt.Errorf("decode position %d: event type %q is unknown to this program", s.Position, s.Type)
	}
	if err := json.Unmarshal(s.Meta, &r.Meta); err != nil {
		return r, fmt.Errorf("decode metadata of %s at position %d: %w", s.Type, s.Position, err)
	}
	var err error
	if r.Data, err = t.decode(s.Data, r.Meta.Schema); err != nil {
		return r, fmt.Errorf("decode %s at position %d: %w", s.Type, s.Position, err)
	}
	return r, nil
}
