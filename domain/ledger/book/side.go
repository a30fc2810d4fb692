package book

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"bahi/domain/fault"
	"bahi/domain/unit"
)

// maxEntries is the maximum number of entries of a side. With it, the sums of a row fit into 64 bits and its event stays small.
const maxEntries = 500

// Effect is the value of an entry or a row in each unit.
type Effect struct {
	Cash unit.Money
	Fine unit.Grams // weight of pure metal; its balance is called "crystal" in the API
}

// Plus returns the sum.
func (e Effect) Plus(o Effect) Effect { return Effect{e.Cash + o.Cash, e.Fine + o.Fine} }

// Minus returns the difference.
func (e Effect) Minus(o Effect) Effect { return Effect{e.Cash - o.Cash, e.Fine - o.Fine} }

// Side is one side of a row: its stored entries and their effect. The zero Side has no entry. Two sides are equal (==)
// if their entries are stored alike.
type Side struct {
	text   string // a JSON array, "" for no entry
	Effect Effect
	Loss   unit.Grams // contained in Effect.Fine
	Metal  string     // metal of the entries with metal; "": the metal of the account
}

// JSON returns the entries as they are stored.
func (s Side) JSON() json.RawMessage {
	if s.text == "" {
		return json.RawMessage("[]")
	}
	return json.RawMessage(s.text)
}

// StoredSide returns a side with these stored entries and this effect.
func StoredSide(entries string, effect Effect) Side {
	if entries == "[]" || entries == "null" {
		entries = ""
	}
	return Side{text: entries, Effect: effect}
}

// IsZero reports whether the side has no entry, for the option omitzero of encoding/json.
func (s Side) IsZero() bool { return s.text == "" }

// MarshalJSON writes the entries as they are stored.
func (s Side) MarshalJSON() ([]byte, error) { return s.JSON(), nil }

// UnmarshalJSON reads the entries. The ledger's kinds of streams compute their effect.
func (s *Side) UnmarshalJSON(text []byte) error {
	*s = StoredSide(string(text), Effect{})
	return nil
}

// Line is one stored entry of a side, with its effect.
type Line struct {
	JSON   json.RawMessage
	Effect Effect
}

// Entry is one entry of a side, of the ledger's own type. It may implement [completer].
type Entry interface {
	// Effect returns the value of the entry, which is never negative.
	Effect() Effect
	// Check returns the faults by field; field "" is the entry as a whole.
	Check() []fault.Field
}

// completer is an [Entry] with values that are computed from others.
type completer[E any] interface {
	// Complete returns the entry with its absent values computed.
	Complete(c *Computer) E
}

// Metallic is an [Entry] that may name its metal.
type Metallic interface{ MetalName() Metal }

// Lossy is an [Entry] with metal that may include wastage.
type Lossy interface{ Lost() unit.Grams }

// SideInput is the requested content of a side: entries of the ledger's own type, before completion and checks. The zero
// value has no entries.
type SideInput struct{ entries any }

// Entries returns a SideInput with these entries.
func Entries[E Entry](list []E) SideInput { return SideInput{list} }

// SideOf returns a side with these entries unchanged.
func SideOf[E Entry](list []E) Side {
	if len(list) == 0 {
		return Side{}
	}
	text, err := json.Marshal(list)
	if err != nil {
		panic(fmt.Errorf("encode entries: %w", err)) // entries are plain values
	}
	return sideOf(string(text), list)
}

// EntriesOf decodes the entries of a side as E.
func EntriesOf[E Entry](s Side) (list []E, err error) {
	if s.text != "" {
		err = json.Unmarshal([]byte(s.text), &list)
	}
	return list, err
}

func sideOf[E Entry](text string, list []E) Side {
	s := Side{text: text}
	for _, e := range list {
		effect := e.Effect()
		s.Effect = s.Effect.Plus(effect)
		if lossy, ok := any(e).(Lossy); ok {
			s.Loss += lossy.Lost()
		}
		if metallic, ok := any(e).(Metallic); ok && effect.Fine != 0 {
			s.Metal = cmp.Or(s.Metal, string(metallic.MetalName()))
		}
	}
	return s
}

// codec decodes and decides the entries of one side of a ledger.
type codec struct {
	name     string
	entry    reflect.Type
	measured func(Side) (Side, error)
	lines    func(Side) ([]Line, error)
	input    func(json.RawMessage) (SideInput, error)
	none     SideInput // no entry of the ledger's type
}

// fields returns the names of the fields of an entry.
func (c codec) fields() (names []string) {
	for field := range c.entry.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// The names of the two sides.
const (
	inEntries  = "in_entries"
	outEntries = "out_entries"
)

func codecOf[E Entry](name string) codec {
	return codec{
		name: name, entry: reflect.TypeFor[E](), none: Entries([]E{}),
		input: func(text json.RawMessage) (SideInput, error) {
			var list []E
			err := json.Unmarshal(text, &list)
			return Entries(list), err
		},
		measured: func(s Side) (Side, error) {
			list, err := EntriesOf[E](s)
			return sideOf(s.text, list), err
		},
		lines: func(s Side) ([]Line, error) {
			list, err := EntriesOf[E](s)
			if err != nil || list == nil {
				return nil, err
			}
			var texts []json.RawMessage
			err = json.Unmarshal([]byte(s.text), &texts)
			lines := make([]Line, len(texts))
			for i, text := range texts {
				lines[i] = Line{text, list[i].Effect()}
			}
			return lines, err
		},
	}
}

// deciding is one side of a row between the request and the stored form.
type deciding[E Entry] struct {
	name     string
	stored   Side
	given    bool // false: the stored entries are unchanged
	list     []E
	warnings []warning
}

// newDeciding returns a side with the requested entries. If none are requested and both sides are decided together, it
// uses the stored entries.
func newDeciding[E Entry](name string, asked SideInput, stored Side, together bool) *deciding[E] {
	d := &deciding[E]{name: name, stored: stored, given: asked.entries != nil || together}
	switch {
	case asked.entries != nil:
		list, ok := asked.entries.([]E)
		if !ok {
			panic(fmt.Sprintf("%s are %T, not %s", name, asked.entries, reflect.TypeFor[[]E]()))
		}
		d.list = slices.Clone(list)
	case together:
		d.list = d.before()
	}
	return d
}

// before returns the stored entries.
func (d *deciding[E]) before() []E {
	list, err := EntriesOf[E](d.stored)
	if err != nil {
		panic(fmt.Errorf("read stored entries: %w", err)) // they were decoded with their event
	}
	return list
}

// complete completes and checks the entries and returns their faults.
func (d *deciding[E]) complete() (wrong []fault.Field) {
	if len(d.list) > maxEntries {
		return []fault.Field{{Field: d.name, Message: fmt.Sprintf("at most %d entries", maxEntries)}}
	}
	var before map[string]bool
	if _, completing := any(*new(E)).(completer[E]); completing {
		before = computedIn(d.stored)
	}
	for i, e := range d.list {
		c := &Computer{prefix: fmt.Sprintf("%s[%d].", d.name, i), before: before}
		if completing, ok := any(e).(completer[E]); ok {
			d.list[i] = completing.Complete(c)
		}
		wrong = append(wrong, d.check(i, c.wrong)...)
		d.warnings = append(d.warnings, c.warnings...)
	}
	return wrong
}

// check returns the faults of an entry, followed by the faults of its completion.
func (d *deciding[E]) check(nth int, completing []fault.Field) (wrong []fault.Field) {
	e, at := d.list[nth], fmt.Sprintf("%s[%d]", d.name, nth)
	for _, f := range append(e.Check(), completing...) {
		if f.Field == "" {
			f.Of = quantities[E]()
		}
		wrong = append(wrong, f.Placed(func(field string) string { return strings.TrimSuffix(at+"."+field, ".") }))
	}
	if effect := e.Effect(); len(wrong) == 0 && (effect.Cash > unit.MaxMoney || effect.Fine > unit.MaxGrams) {
		wrong = append(wrong, fault.Field{Field: at, Message: tooMany})
	}
	return wrong
}

// quantities returns the names of an entry's amounts, weights and percentages.
func quantities[E Entry]() (names []string) {
	for f := range reflect.TypeFor[E]().Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); f.Type.Kind() == reflect.Pointer && f.Type != reflect.TypeFor[*int64]() {
			names = append(names, name)
		}
	}
	return names
}

// decided returns the side as it is stored.
func (d *deciding[E]) decided() Side {
	if !d.given {
		return d.stored
	}
	return SideOf(d.list)
}

// warned returns the warnings of this side. before has the stored warnings.
func (d *deciding[E]) warned(before Warnings) []warning {
	if !d.given {
		return before.of(d.name)
	}
	return d.warnings
}

// decideRow returns the requested row and the faults of its entries.
func decideRow[In, Out Entry](s Spec[In, Out], before Row, asked RowInput) (after Row, wrong []fault.Field) {
	after = before
	if asked.Date != nil {
		after.Date = *asked.Date
	}
	together := s.AddCounterEntries != nil && (asked.In.entries != nil || asked.Out.entries != nil)
	in, out := newDeciding[In](inEntries, asked.In, before.In, together), newDeciding[Out](outEntries, asked.Out, before.Out, together)
	wrong = append(in.complete(), out.complete()...)
	c := &Computer{}
	if together && len(wrong) == 0 {
		paired := s.AddCounterEntries(c, Sides[In, Out]{in.list, out.list}, Sides[In, Out]{in.before(), out.before()})
		in.list, out.list, wrong = paired.In, paired.Out, c.wrong
		for i := range in.list {
			wrong = append(wrong, in.check(i, nil)...)
		}
		for i := range out.list {
			wrong = append(wrong, out.check(i, nil)...)
		}
	}
	if len(wrong) > 0 {
		return after, wrong
	}
	after.In, after.Out = in.decided(), out.decided()
	if metal := after.Metal(); metal != "" {
		wrong = append(checkMetal[In](inEntries, after.In, metal), checkMetal[Out](outEntries, after.Out, metal)...)
	}
	after.Warnings = warningsOf(slices.Concat(in.warned(before.Warnings), out.warned(before.Warnings), c.warnings))
	return after, wrong
}
