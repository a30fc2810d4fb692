package audit

import (
	"hash/maphash"

	"bahi/domain/event"
)

// streams has the newest event of each stream, by a hash of its name: names would take the memory of the log's size. Two names
// may have one hash, once in some hundred million logs of a million streams.
//
// A million streams are more than a processor's caches hold, and Go's map waits for memory at each of them, one after the other.
// Here all places that a batch of events needs are asked for before the first of them is used.
type streams struct {
	seed  maphash.Seed
	slots []slot // as many as a power of two, at most three quarters of them taken
	taken int
	asked []uint64 // hashes of the streams that are looked up next …
	nth   int      // … from this one on
	near  uint64   // what asking for them is kept for, so that the compiler does not leave it out
}

type slot struct {
	hash uint64 // 0: free
	newest
}

type newest struct {
	revision int64
	number   uint64 // which event it is, from 1
}

// newStreams makes room for about so many.
func newStreams(expected uint64) streams {
	n := uint64(1 << 10)
	for n/4*3 < expected {
		n *= 2
	}
	return streams{seed: maphash.MakeSeed(), slots: make([]slot, n)}
}

// expect is told of the events whose streams are looked up next, each of them once and in this order.
func (s *streams) expect(events []event.Stored) {
	s.asked, s.nth = s.asked[:0], 0
	for i := range events {
		s.asked = append(s.asked, max(maphash.String(s.seed, events[i].Stream), 1))
	}
	for _, hash := range s.asked {
		s.near |= s.slots[s.place(hash)].hash
	}
}

// next returns the newest event of the next stream, to be read and written until the next call.
func (s *streams) next() (of *newest, known bool) {
	hash := s.asked[s.nth]
	s.nth++
	if s.taken >= len(s.slots)/4*3 {
		s.grow()
	}
	at := s.find(hash)
	if known = at.hash == hash; !known {
		at.hash = hash
		s.taken++
	}
	return &at.newest, known
}

// find returns the slot of a stream, or the free one that is to be its.
func (s *streams) find(hash uint64) *slot {
	for i := s.place(hash); ; i = (i + 1) & (len(s.slots) - 1) {
		if at := &s.slots[i]; at.hash == hash || at.hash == 0 {
			return at
		}
	}
}

func (s *streams) place(hash uint64) int { return int(hash & uint64(len(s.slots)-1)) }

func (s *streams) grow() {
	before := s.slots
	s.slots = make([]slot, 2*len(before))
	for _, taken := range before {
		if taken.hash != 0 {
			*s.find(taken.hash) = taken
		}
	}
}
