package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"bahi/domain/event"
)

// Difference is the first one between two copies of a log. It does not say which of them is the true one: checkpoints do.
type Difference struct {
	Kind   Kind     `json:"kind"`             // what was done to the second, if the first is true
	Number uint64   `json:"event"`            // which event, from 1: its position where positions are dense
	First  *Event   `json:"first,omitempty"`  // what the first copy has there; nil: it ends before
	Second *Event   `json:"second,omitempty"` // what the second has there
	Parts  []string `json:"parts,omitempty"`  // of one event, what differs: "payload: amount", "metadata: occurred_at", "recorded_at" …
	Why    string   `json:"why"`              // a sentence
}

func (d Difference) String() string {
	return fmt.Sprintf("They differ from event %d on. %s", d.Number, d.Why)
}

// Compare reads two copies of a log beside each other and answers where they part, nil if nowhere. A second copy that goes on
// after the first has ended is no difference: a log grows. Its error says that one of them cannot be read on.
func Compare(first, second iter.Seq2[event.Stored, error], progress func(events uint64)) (*Difference, error) {
	a, b := newCopy(first), newCopy(second)
	defer a.stop()
	defer b.stop()
	for n := uint64(1); ; n++ {
		mine, theirs := a.next(), b.next()
		switch {
		case a.err != nil:
			return nil, a.err
		case mine == nil:
			return nil, nil
		case b.err != nil:
			return nil, b.err
		case theirs == nil:
			there := Of(*mine)
			return &Difference{Kind: Truncated, Number: n, First: &there, Why: fmt.Sprintf("The second one ends there. The first one has %s.", there)}, nil
		case !equal(mine, theirs):
			return differ(n, a, b), nil
		}
		if progress != nil && n%blockEvents == 0 {
			progress(n)
		}
	}
}

// cursor reads a copy, and can look ahead.
type cursor struct {
	pull  func() (event.Stored, error, bool)
	stop  func()
	ahead []event.Stored // the event at hand, and those behind it that were looked at
	held  int            // bytes of these
	err   error
}

func newCopy(events iter.Seq2[event.Stored, error]) *cursor {
	pull, stop := iter.Pull2(events)
	return &cursor{pull: pull, stop: stop}
}

// next returns the next event, nil at the end.
func (c *cursor) next() *event.Stored {
	clear(c.ahead)
	c.ahead, c.held = c.ahead[:0], 0
	return c.at(0)
}

// at returns the event at hand, or one behind it, if that is not too far.
func (c *cursor) at(i int) *event.Stored {
	for len(c.ahead) <= i {
		if c.held > lookAheadBytes {
			return nil
		}
		e, err, ok := c.pull()
		if err != nil || !ok {
			c.err = err
			return nil
		}
		c.ahead, c.held = append(c.ahead, e), c.held+sizeOf(&e)
	}
	return &c.ahead[i]
}

// find returns how far ahead the event with an id is, at most so many; 0: nowhere.
func (c *cursor) find(e *event.Stored) int {
	for d := 1; d <= lookAhead; d++ {
		there := c.at(d)
		if there == nil {
			return 0
		}
		if there.ID == e.ID && there.Stream == e.Stream {
			return d
		}
	}
	return 0
}

func equal(a, b *event.Stored) bool {
	return a.Position == b.Position && a.Revision == b.Revision && a.ID == b.ID && a.Stream == b.Stream && a.Type == b.Type &&
		a.At.UnixMicro() == b.At.UnixMicro() && bytes.Equal(a.Data, b.Data) && bytes.Equal(a.Meta, b.Meta)
}

// differ says what was done where two copies part.
func differ(n uint64, a, b *cursor) *Difference {
	mine, theirs := *a.at(0), *b.at(0)
	one, other := Of(mine), Of(theirs)
	d := &Difference{Number: n, First: &one, Second: &other}
	if mine.ID == theirs.ID {
		d.Kind, d.Parts = Changed, parts(mine, theirs)
		d.Why = fmt.Sprintf("In %s these differ: %s.", one, strings.Join(d.Parts, ", "))
		return d
	}
	missing, extra := a.find(&theirs), b.find(&mine) // what the second has stands so far ahead in the first, and the other way round
	switch {
	case missing > 0 && extra > 0:
		d.Kind = Reordered
		d.Why = fmt.Sprintf("The first one has %s there, the second one has it as event %d, and %s in its place.", one, n+uint64(extra), other)
	case missing > 0:
		d.Kind = Removed
		d.Why = fmt.Sprintf("%s missing in the second one, the first of them %s.", events(uint64(missing), "is", "are"), one)
	case extra > 0:
		d.Kind = Inserted
		d.Why = fmt.Sprintf("%s in the second one only, the first of them %s.", events(uint64(extra), "is", "are"), other)
	default:
		d.Kind = Changed
		d.Why = fmt.Sprintf("The first one has %s there, and the second one %s.", one, other)
	}
	return d
}

// parts names what differs between two forms of one event.
func parts(a, b event.Stored) (parts []string) {
	for _, p := range []struct {
		name string
		same bool
	}{
		{"position", a.Position == b.Position}, {"stream", a.Stream == b.Stream}, {"revision", a.Revision == b.Revision},
		{"type", a.Type == b.Type}, {"recorded_at", a.At.Equal(b.At)},
	} {
		if !p.same {
			parts = append(parts, p.name)
		}
	}
	parts = append(parts, members("payload", a.Data, b.Data)...)
	return append(parts, members("metadata", a.Meta, b.Meta)...)
}

// mostNamed is how many members are named.
const mostNamed = 20

// members names the members of two JSON objects that differ, or the whole if it cannot tell.
func members(whole string, a, b []byte) (names []string) {
	if bytes.Equal(a, b) {
		return nil
	}
	var one, other map[string]json.RawMessage
	if json.Unmarshal(a, &one) == nil && json.Unmarshal(b, &other) == nil {
		all := maps.Clone(one)
		maps.Copy(all, other)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if bytes.Equal(one[name], other[name]) {
				continue
			}
			if len(names) == mostNamed {
				return append(names, whole+": …")
			}
			names = append(names, whole+": "+shown(name))
		}
	}
	if len(names) == 0 {
		return []string{whole}
	}
	return names
}
