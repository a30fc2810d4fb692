package audit

import (
	"fmt"
	"hash/maphash"

	"bahi/domain/event"
)

// order holds a log's order against itself: positions, times, and the revisions of each stream. What it finds needs no
// checkpoint, but somebody who knows the rules can write a log that keeps them.
type order struct {
	sparse bool
	count  uint64
	last   event.Stored
	clue   *Finding // the first

	restores []Event

	// The newest event of each stream, by a hash of its name: names would take the memory of the log's size. Two names
	// may have one hash, once in some hundred million logs of a million streams.
	streams map[uint64]newest
	seed    maphash.Seed
}

// restoreAccepted is the stored name of the event by which a log goes on after a restore that lost its tail (docs/events.md).
const restoreAccepted = "CheckpointRestoreAccepted"

type newest struct {
	revision int64
	number   uint64 // which event it is, from 1
}

func newOrder(sparse bool) order {
	return order{sparse: sparse, streams: map[uint64]newest{}, seed: maphash.MakeSeed()}
}

// add answers false if nothing of what follows can be held against anything: then events are missing.
func (o *order) add(e event.Stored) bool {
	n := o.count + 1
	switch {
	case !o.sparse && e.Position > event.Position(n):
		o.found(e, Removed, n, n, "The log has no position %d: %s.", n, o.neighbours(e))
		return false
	case e.Position <= o.last.Position:
		o.found(e, Reordered, n, n, "Positions do not rise: %s.", o.neighbours(e))
		return false
	case e.At.Before(o.last.At):
		o.found(e, Reordered, o.count, n, "Time runs backward: event %d was recorded at %s, and event %d before it at %s; one of them was changed, moved or inserted.",
			n, e.At.UTC().Format(moment), o.count, o.last.At.UTC().Format(moment))
	}
	if e.Type == restoreAccepted {
		o.restores = append(o.restores, Of(e))
	}
	o.stream(e, n)
	o.last = event.Stored{Position: e.Position, At: e.At}
	o.count = n
	return true
}

func (o *order) stream(e event.Stored, n uint64) {
	name := maphash.String(o.seed, e.Stream)
	before, known := o.streams[name]
	expected := before.revision + 1
	if !known {
		expected = 0
	}
	switch {
	case e.Revision > expected:
		o.found(e, Removed, before.number+1, n, "Stream %s has no revision %d: an event of it was removed, or changed, before event %d.", e.Stream, expected, n)
	case e.Revision < expected:
		o.found(e, Inserted, before.number, n, "Stream %s has revision %d a second time or in another order: an event of it was inserted, moved or changed.", e.Stream, e.Revision)
	}
	o.streams[name] = newest{e.Revision, n}
}

func (o *order) neighbours(e event.Stored) string {
	if o.count == 0 {
		return fmt.Sprintf("it begins with position %d", e.Position)
	}
	return fmt.Sprintf("position %d is followed by position %d", o.last.Position, e.Position)
}

func (o *order) found(e event.Stored, kind Kind, first, last uint64, why string, args ...any) {
	if o.clue == nil {
		there := Of(e)
		o.clue = &Finding{Kind: kind, First: max(first, 1), Last: last, Event: &there, Why: fmt.Sprintf(why, args...)}
	}
}
