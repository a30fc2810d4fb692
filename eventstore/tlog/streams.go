package tlog

import (
	"hash/maphash"

	"bahi/domain/event"
)

// streams has the newest event of each stream by the hash of its name, because names would take too much memory. Two names share a hash
// once in some hundred million logs of a million streams.
//
// A million streams exceed a processor's caches. Lookups in Go's map would wait for memory one after another. So streams prefetches the
// slots of a batch of events before it uses the first one.
type streams struct {
	seed  maphash.Seed
	slots []slot // a power of two, at most three quarters in use
	taken int
	asked []uint64 // hashes of the streams of the next lookups …
	nth   int      // … from this one on
	near  uint64   // keeps the compiler from removing the prefetch
}

type slot struct {
	hash uint64 // 0: unused
	newest
}

type newest struct {
	revision int64
	number   uint64 // number of the event, from 1
}

// newStreams reserves memory for about expected streams.
func newStreams(expected uint64) streams {
	n := uint64(1 << 10)
	for n/4*3 < expected {
		n *= 2
	}
	return streams{seed: maphash.MakeSeed(), slots: make([]slot, n)}
}

// expect prefetches the slots of the events' streams, which the next calls of next look up in this order.
func (s *streams) expect(events []event.Stored) {
	s.asked, s.nth = s.asked[:0], 0
	for i := range events {
		s.asked = append(s.asked, max(maphash.String(s.seed, events[i].Stream), 1))
	}
	for _, hash := range s.asked {
		s.near |= s.slots[s.place(hash)].hash
	}
}

// next returns the newest event of the next stream, valid until the next call.
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

// find returns the slot of a stream, or a free one for it.
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
