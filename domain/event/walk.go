package event

import (
	"fmt"
	"reflect"
	"sync"
)

// MapSealed calls do once with all sealed values of the events, and returns the events with the resulting values. It does not change the
// given events, nor values to which they point. Without sealed values, it does not call do and returns the given slice.
func MapSealed[E any](events []E, do func([]*Sealed) error) ([]E, error) {
	for i, e := range events {
		if v := reflect.ValueOf(e); v.IsValid() && walkOf(v.Type()) != nil {
			return mapSealed(events, i, do)
		}
	}
	return events, nil
}

// mapSealed is [MapSealed] with the index of the first event that may have sealed values.
func mapSealed[E any](events []E, first int, do func([]*Sealed) error) ([]E, error) {
	var fields []*Sealed
	copies := map[int]reflect.Value{}
	for i, e := range events[first:] {
		v := reflect.ValueOf(e)
		if !v.IsValid() {
			continue
		}
		walk := walkOf(v.Type())
		if walk == nil {
			continue
		}
		c := reflect.New(v.Type()).Elem()
		c.Set(v)
		walk(c, func(s *Sealed) { fields = append(fields, s) })
		copies[first+i] = c
	}
	if len(fields) == 0 {
		return events, nil
	}
	if err := do(fields); err != nil {
		return nil, err
	}
	out := make([]E, len(events))
	copy(out, events)
	for i, c := range copies {
		out[i] = c.Interface().(E) //nolint:forcetypeassert // the copy has the same type
	}
	return out, nil
}

// MapSealedIn is [MapSealed] for the payloads of recorded events.
func MapSealedIn[E any](batch []Recorded[E], do func([]*Sealed) error) ([]Recorded[E], error) {
	data := make([]E, len(batch))
	for i := range batch {
		data[i] = batch[i].Data
	}
	found := false
	data, err := MapSealed(data, func(fields []*Sealed) error { found = true; return do(fields) })
	if err != nil || !found {
		return batch, err
	}
	out := make([]Recorded[E], len(batch))
	for i, r := range batch {
		r.Data = data[i]
		out[i] = r
	}
	return out, nil
}

// HoldsSealed reports whether values of the type may contain sealed values.
func HoldsSealed(t reflect.Type) bool { return walkOf(t) != nil }

// walker visits the sealed values inside an addressable value. It first replaces shared parts of the value by copies.
type walker func(v reflect.Value, visit func(*Sealed))

// walks caches a walker per type of event, nil for those without sealed values.
var walks sync.Map // reflect.Type to walker

func walkOf(t reflect.Type) walker {
	if found, ok := walks.Load(t); ok {
		return found.(walker) //nolint:forcetypeassert // only walkers are stored
	}
	w := planWalk(t, map[reflect.Type]bool{})
	walks.Store(t, w)
	return w
}

var (
	sealedType   = reflect.TypeFor[Sealed]()
	personalType = reflect.TypeFor[Personal]()
	secretType   = reflect.TypeFor[Secret]()
)

// planWalk returns the walker of a type. It panics if the type cannot be followed.
func planWalk(t reflect.Type, above map[reflect.Type]bool) walker {
	if t == personalType || t == secretType {
		return func(v reflect.Value, visit func(*Sealed)) {
			if s := v.Field(0).Addr().Interface().(*Sealed); !s.IsZero() { //nolint:forcetypeassert // its one field
				visit(s)
			}
		}
	}
	if t == sealedType {
		panic("an event has a Personal or a Secret, never a bare Sealed: only they can be read back")
	}
	if above[t] { // values inside a recursive type, such as a tree, stay plaintext, so encoding them fails
		return nil
	}
	above[t] = true
	defer delete(above, t)
	switch t.Kind() {
	case reflect.Struct:
		return planStruct(t, above)
	case reflect.Pointer:
		return planPointer(t, above)
	case reflect.Slice, reflect.Array:
		return planList(t, above)
	case reflect.Map:
		if planWalk(t.Elem(), above) != nil || planWalk(t.Key(), above) != nil {
			panic(fmt.Sprintf("%s: sealed values in a map are not followed, use a slice", t))
		}
		return nil
	default: // values inside an interface are not followed: they stay plaintext, as above
		return nil
	}
}

func planStruct(t reflect.Type, above map[reflect.Type]bool) walker {
	type step struct {
		field int
		walk  walker
	}
	var steps []step
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() && (!f.Anonymous || f.Type.Kind() != reflect.Struct) {
			continue // JSON skips it too
		}
		if w := planWalk(f.Type, above); w != nil {
			steps = append(steps, step{i, w})
		}
	}
	if len(steps) == 0 {
		return nil
	}
	return func(v reflect.Value, visit func(*Sealed)) {
		for _, s := range steps {
			s.walk(v.Field(s.field), visit)
		}
	}
}

func planPointer(t reflect.Type, above map[reflect.Type]bool) walker {
	w := planWalk(t.Elem(), above)
	if w == nil {
		return nil
	}
	return func(v reflect.Value, visit func(*Sealed)) {
		if v.IsNil() {
			return
		}
		c := reflect.New(t.Elem())
		c.Elem().Set(v.Elem())
		v.Set(c)
		w(c.Elem(), visit)
	}
}

func planList(t reflect.Type, above map[reflect.Type]bool) walker {
	w := planWalk(t.Elem(), above)
	if w == nil {
		return nil
	}
	return func(v reflect.Value, visit func(*Sealed)) {
		if t.Kind() == reflect.Slice && !v.IsNil() {
			c := reflect.MakeSlice(t, v.Len(), v.Len())
			reflect.Copy(c, v)
			v.Set(c)
		}
		for i := range v.Len() {
			w(v.Index(i), visit)
		}
	}
}
