package book

import (
	"encoding/json"
	"fmt"
	"reflect"

	"bahi/domain/fault"
	"bahi/domain/unit"
)

// maxEntries of a side keeps the sums of one row inside 64 bits and its event small.
const maxEntries = 500

// Effect is what an entry or a row counts in each unit.
type Effect struct {
	Cash unit.Money
	Fine unit.Grams // of pure metal; the interface calls its balance "crystal"
}

// Plus adds.
func (e Effect) Plus(o Effect) Effect { return Effect{e.Cash + o.Cash, e.Fine + o.Fine} }

// Minus subtracts.
func (e Effect) Minus(o Effect) Effect { return Effect{e.Cash - o.Cash, e.Fine - o.Fine} }

// Side is one side of a row: its entries as the log has them, and what they count. The zero Side has no entry.
// Two sides are equal (==) when their entries are stored alike.
type Side struct {
	text   string // a JSON array, "" for no entry
	Effect Effect
}

// JSON returns the entries as they are stored.
func (s Side) JSON() json.RawMessage {
	if s.text == "" {
		return json.RawMessage("[]")
	}
	return json.RawMessage(s.text)
}

// StoredSide returns the side that was stored with these entries and this effect.
func StoredSide(entries string, effect Effect) Side {
	if entries == "[]" || entries == "null" {
		entries = ""
	}
	return Side{entries, effect}
}

// IsZero reports whether the side has no entry, for the option omitzero of encoding/json.
func (s Side) IsZero() bool { return s.text == "" }

// MarshalJSON writes the entries as they are stored.
func (s Side) MarshalJSON() ([]byte, error) { return s.JSON(), nil }

// UnmarshalJSON reads entries. The ledger's kinds of streams work out what they count.
func (s *Side) UnmarshalJSON(text []byte) error {
	*s = StoredSide(string(text), Effect{})
	return nil
}

// Line is one entry of a side as the log has it, and what it counts.
type Line struct {
	JSON   json.RawMessage
	Effect Effect
}

// Entry is one line of a side, of a ledger's own type. It may also be a [Completing] one.
type Entry interface {
	// Effect is what the line counts, never negative.
	Effect() Effect
	// Check returns what is wrong with the line, by field.
	Check() []fault.Field
}

// Completing is an [Entry] that has values which follow from others.
type Completing[E any] interface {
	// Complete returns the entry with the values that were not given.
	Complete(c *Computer) E
}

// Given is a side as somebody asks for it: entries of the ledger's own type, before they are completed and
// checked. The zero Given is none at all.
type Given struct{ entries any }

// Entries returns a Given with these entries.
func Entries[E Entry](list []E) Given { return Given{list} }

// SideOf returns a side with these entries as they are.
func SideOf[E Entry](list []E) Side {
	if len(list) == 0 {
		return Side{}
	}
	text, err := json.Marshal(list)
	if err != nil {
		panic(fmt.Errorf("encode entries: %w", err)) // they are plain values
	}
	return Side{string(text), effectOf(list)}
}

// EntriesOf reads a side's entries as E.
func EntriesOf[E Entry](s Side) (list []E, err error) {
	if s.text != "" {
		err = json.Unmarshal([]byte(s.text), &list)
	}
	return list, err
}

func effectOf[E Entry](list []E) (sum Effect) {
	for _, e := range list {
		sum = sum.Plus(e.Effect())
	}
	return sum
}

// codec is what a ledger knows of the entries of one side.
type codec struct {
	name     string // in_entries, out_entries
	entry    reflect.Type
	measured func(Side) (Side, error)
	lines    func(Side) ([]Line, error)
	decide   func(given Given, stored Side) (Side, []Warning, []fault.Field)
}

func codecOf[E Entry](name string) codec {
	return codec{
		name: name, entry: reflect.TypeFor[E](),
		measured: func(s Side) (Side, error) {
			list, err := EntriesOf[E](s)
			s.Effect = effectOf(list)
			return s, err
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
		decide: func(given Given, stored Side) (Side, []Warning, []fault.Field) {
			list, ok := given.entries.([]E)
			if !ok {
				panic(fmt.Sprintf("%s are %T, not %s", name, given.entries, reflect.TypeFor[[]E]()))
			}
			return decideSide(name, list, stored)
		},
	}
}

// decideSide completes and checks the entries that are given in the place of the stored ones.
func decideSide[E Entry](name string, given []E, stored Side) (side Side, warnings []Warning, wrong []fault.Field) {
	if len(given) > maxEntries {
		return side, nil, []fault.Field{{Field: name, Message: fmt.Sprintf("at most %d entries", maxEntries)}}
	}
	all := make([]E, len(given))
	var before map[string]bool
	if _, completing := any(*new(E)).(Completing[E]); completing {
		before = computedIn(stored)
	}
	for i, e := range given {
		c := &Computer{prefix: fmt.Sprintf("%s[%d].", name, i), before: before}
		if completing, ok := any(e).(Completing[E]); ok {
			e = completing.Complete(c)
		}
		faults := append(e.Check(), c.wrong...)
		for _, f := range faults {
			wrong = append(wrong, fault.Field{Field: c.prefix + f.Field, Message: f.Message})
		}
		if effect := e.Effect(); len(faults) == 0 && (effect.Cash > unit.MaxMoney || effect.Fine > unit.MaxGrams) {
			wrong = append(wrong, fault.Field{Field: fmt.Sprintf("%s[%d]", name, i), Message: tooMany})
		}
		warnings = append(warnings, c.warnings...)
		all[i] = e
	}
	if len(wrong) > 0 {
		return side, nil, wrong
	}
	return SideOf(all), warnings, nil
}
