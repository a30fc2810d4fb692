package tlog

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

// Difference is the first difference of two copies of a log. Only checkpoints show which copy is true.
type Difference struct {
	Kind   Kind   `json:"kind"`             // the change of the second copy if the first is true
	Number uint64 `json:"event"`            // number of the event, from 1; the position if positions are dense
	First  *Event `json:"first,omitempty"`  // the first copy's event there; nil if the copy ends before
	Second *Event `json:"second,omitempty"` // the second copy's event there
	// the parts of the event that differ: "payload: amount", "metadata: occurred_at", "recorded_at" …
	Parts  []string `json:"parts,omitempty"`
	Reason string   `json:"why"` // a sentence
}

func (d Difference) String() string {
	return fmt.Sprintf("They differ from event %d on. %s", d.Number, d.Reason)
}

// Compare reads two copies of a log in parallel and returns their first difference, or nil. A longer second copy does not differ,
// because a log grows. An error means that one of them became unreadable.
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
			return &Difference{Kind: Truncated, Number: n, First: &there,
				Reason: fmt.Sprintf("The second one ends there. The first one has %s.", there)}, nil
		case !equal(mine, theirs):
			return differ(n, a, b), nil
		}
		if progress != nil && n%blockEvents == 0 {
			progress(n)
		}
	}
}

// cursor reads a copy and can look ahead.
type cursor struct {
	pull  func() (event.Stored, error, bool)
	stop  func()
	ahead []event.Stored // the current event, and later ones that were read
	held  int            // bytes of these events
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

// at returns the current event for 0, or the i-th event after it within the look-ahead.
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

// find returns the distance to the event with the same id within the look-ahead; 0 if there is none.
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

// differ describes the difference at which two copies diverge.
func differ(n uint64, a, b *cursor) *Difference {
	mine, theirs := *a.at(0), *b.at(0)
	one, other := Of(mine), Of(theirs)
	d := &Difference{Number: n, First: &one, Second: &other}
	if mine.ID == theirs.ID {
		d.Kind, d.Parts = Changed, parts(mine, theirs)
		d.Reason = fmt.Sprintf("In %s these differ: %s.", one, strings.Join(d.Parts, ", "))
		return d
	}
	missing, extra := a.find(&theirs), b.find(&mine) // distance of the second copy's event in the first, and vice versa
	switch {
	case missing > 0 && extra > 0:
		d.Kind = Reordered
		d.Reason = fmt.Sprintf("The first one has %s there, the second one has it as event %d, and %s in its place.", one, n+uint64(extra), other)
	case missing > 0:
		d.Kind = Removed
		d.Reason = fmt.Sprintf("%s missing in the second one, the first of them %s.", events(uint64(missing), "is", "are"), one)
	case extra > 0:
		d.Kind = Inserted
		d.Reason = fmt.Sprintf("%s in the second one only, the first of them %s.", events(uint64(extra), "is", "are"), other)
	default:
		d.Kind = Changed
		d.Reason = fmt.Sprintf("The first one has %s there, and the second one %s.", one, other)
	}
	return d
}

// parts returns the parts in which two versions of an event differ.
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

// maxNamed limits how many members are named.
const maxNamed = 20

// members returns the members in which two JSON objects differ, or whole if they are not both objects.
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
			if len(names) == maxNamed {
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
