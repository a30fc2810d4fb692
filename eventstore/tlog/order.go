package tlog

import (
	"fmt"
	"hash/maphash"
	"slices"

	"bahi/domain/event"
)

// order checks a log against itself: positions, times, and the revisions of each stream. It needs no checkpoint, but a forger who knows the
// rules can satisfy them.
type order struct {
	count uint64
	torn  bool // positions are broken: nothing after them can be checked
	last  event.Stored
	clues []Finding // the first few, and the one that ended the reading

	restores []Event // the first few

	// The newest event of each stream by the hash of its name, because names would take too much memory. Two names share a hash once in some
	// hundred million logs of a million streams.
	streams map[uint64]newest
	seed    maphash.Seed
}

type newest struct {
	revision int64
	number   uint64 // number of the event, from 1
}

// restoreAccepted is the stored name of the event that continues a log after a restore that lost its tail (docs/events.md).
const restoreAccepted = "CheckpointRestoreAccepted"

// maxNoted limits the stored clues and restores: a forged log may have millions.
const maxNoted = 100

// maxExpected limits the memory that is reserved because of a checkpoint's claim.
const maxExpected = 1 << 20

// newOrder reserves memory for a number of events, as if most had their own streams.
func newOrder(expected uint64) order {
	return order{streams: make(map[uint64]newest, min(expected, maxExpected)), seed: maphash.MakeSeed()}
}

// add returns false if events are missing, so that nothing after e can be checked.
func (o *order) add(e *event.Stored) bool {
	n := o.count + 1
	switch {
	case e.Position > event.Position(n):
		return o.ended(e, Removed, n, "The log has no position %d: %s.", n, o.neighbours(e))
	case e.Position <= o.last.Position:
		return o.ended(e, Reordered, n, "Positions do not increase: %s.", o.neighbours(e))
	case e.At.Before(o.last.At):
		o.found(e, Reordered, o.count, n, "Time runs backward: event %d was recorded at %s, and event %d before it at %s; one of them was "+
			"changed, moved or inserted.",
			n, e.At.UTC().Format(moment), o.count, o.last.At.UTC().Format(moment))
	}
	if e.Type == restoreAccepted && len(o.restores) < maxNoted {
		o.restores = append(o.restores, Of(*e))
	}
	o.stream(e, n)
	o.last = event.Stored{Position: e.Position, At: e.At}
	o.count = n
	return true
}

func (o *order) stream(e *event.Stored, n uint64) {
	hash := maphash.String(o.seed, e.Stream)
	before, known := o.streams[hash]
	expected := before.revision + 1
	if !known {
		expected = 0
	}
	switch {
	case e.Revision > expected:
		o.found(e, Removed, before.number+1, n, "Stream %s has no revision %d: an event of it was removed, or changed, before event %d.",
			shown(e.Stream), expected, n)
	case e.Revision < expected:
		o.found(e, Inserted, before.number, n, "Stream %s has revision %d a second time or in another order: an event of it was inserted, "+
			"moved or changed.", shown(e.Stream), e.Revision)
	}
	o.streams[hash] = newest{e.Revision, n}
}

func (o *order) neighbours(e *event.Stored) string {
	if o.count == 0 {
		return fmt.Sprintf("it begins with position %d", e.Position)
	}
	return fmt.Sprintf("position %d is followed by position %d", o.last.Position, e.Position)
}

func (o *order) found(e *event.Stored, kind Kind, first, last uint64, why string, args ...any) {
	if len(o.clues) < maxNoted {
		there := Of(*e)
		o.clues = append(o.clues, Finding{Kind: kind, First: max(first, 1), Last: last, Event: &there, Reason: fmt.Sprintf(why, args...)})
	}
}

// ended keeps the clue that ends the reading, even if the list is full. It returns false.
func (o *order) ended(e *event.Stored, kind Kind, number uint64, why string, args ...any) bool {
	o.torn = true
	o.clues = o.clues[:min(len(o.clues), maxNoted-1)]
	o.found(e, kind, number, number, why, args...)
	return false
}

// clue returns the first clue that the caller accepts, or nil.
func (o *order) clue(wanted func(Finding) bool) *Finding {
	if i := slices.IndexFunc(o.clues, wanted); i >= 0 {
		return &o.clues[i]
	}
	return nil
}
