package window

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Memory counts in this process. It may be used by many goroutines.
//
// Its memory is bounded: 8 to 16 bytes for each request that was allowed within a window, and some 200 for
// each key. Keys whose window is empty go when others of their shard come. When there are more keys than
// it takes, the one that asked longest ago is forgotten, and may begin again: who has so many addresses
// gains by it no more than by using yet another address, and nobody is refused who did nothing. Callers
// that are known are kept apart from addresses, so that no flood of addresses makes their counts forgotten.
type Memory struct {
	now       func() time.Time
	began     time.Time
	seed      maphash.Seed
	callers   [shards]shard
	addresses [shards]shard
}

const (
	shards = 64

	// MostKeys is how many callers a Memory knows at a time, and how many addresses: the least recent go.
	MostKeys = 1 << 17
)

// shard has its own lock, and a cache line between it and the next one's.
type shard struct {
	mu   sync.Mutex
	logs *simplelru.LRU[Key, *moments]
	_    [48]byte
}

// NewMemory makes a Memory that holds most keys of either kind; 0: [MostKeys].
func NewMemory(now func() time.Time, most int) *Memory {
	if most == 0 {
		most = MostKeys
	}
	m := &Memory{now: now, began: now(), seed: maphash.MakeSeed()}
	for _, half := range []*[shards]shard{&m.callers, &m.addresses} {
		for i := range half {
			half[i].logs, _ = simplelru.NewLRU[Key, *moments]((most+shards-1)/shards, nil) // refuses sizes below 1 only
		}
	}
	return m
}

// Take counts a request if the limit allows it. The same limit must come with a key each time.
func (m *Memory) Take(key Key, limit Limit) Decision {
	s := m.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	// Within the lock, so that moments are in order.
	now := m.now().Sub(m.began)
	s.sweep(now)
	log, known := s.logs.Get(key)
	if !known {
		log = &moments{}
		s.logs.Add(key, log)
	}
	log.leave(now - limit.Per)
	d := Decision{Allowed: log.count < limit.Requests}
	if d.Allowed {
		log.add(now, limit.Requests)
		log.empty = now + limit.Per
	}
	d.Remaining, d.Next = limit.Requests-log.count, log.oldest()+limit.Per-now
	return d
}

// Look returns what Take would find, and counts nothing: Allowed says whether a request would be.
func (m *Memory) Look(key Key, limit Limit) Decision {
	s := m.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	log, known := s.logs.Get(key)
	if !known {
		return Decision{Allowed: true, Remaining: limit.Requests}
	}
	now := m.now().Sub(m.began)
	log.leave(now - limit.Per)
	d := Decision{Allowed: log.count < limit.Requests, Remaining: limit.Requests - log.count}
	if log.count > 0 {
		d.Next = log.oldest() + limit.Per - now
	}
	return d
}

func (m *Memory) shard(key Key) *shard {
	i := maphash.Comparable(m.seed, key) % shards
	if key.Caller != "" {
		return &m.callers[i]
	}
	return &m.addresses[i]
}

// sweep takes away keys that nobody asks for: two at a time, so that they go faster than they come.
func (s *shard) sweep(now time.Duration) {
	for range 2 {
		_, log, some := s.logs.GetOldest()
		if !some || log.empty > now {
			return
		}
		s.logs.RemoveOldest()
	}
}

// moments are those of the requests that count, oldest first, in a ring.
type moments struct {
	ring         []time.Duration
	first, count int
	empty        time.Duration // when the last of them will have left
}

func (l *moments) oldest() time.Duration { return l.ring[l.first] }

// leave forgets what came at or before a moment.
func (l *moments) leave(until time.Duration) {
	for l.count > 0 && l.oldest() <= until {
		l.first = (l.first + 1) % len(l.ring)
		l.count--
	}
}

const fewMoments = 4

// add takes one in. There are never more than most.
func (l *moments) add(at time.Duration, most int) {
	if l.count == len(l.ring) {
		larger := make([]time.Duration, min(most, max(fewMoments, 2*len(l.ring))))
		n := copy(larger, l.ring[l.first:])
		copy(larger[n:], l.ring[:l.first])
		l.ring, l.first = larger, 0
	}
	l.ring[(l.first+l.count)%len(l.ring)] = at
	l.count++
}
