package ratelimit

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Memory counts in this process. Goroutines may share it.
//
// Its memory is bounded: 8 to 16 bytes for each request that was allowed within a window, and some 200 for
// each key. Keys with an empty window are removed when other keys of their shard come. Beyond the largest number of keys,
// the least recently used one is removed, and begins again: an attacker with so many addresses gains no more by that than
// by using yet another address, and no client is refused without reason. Known callers
// are kept apart from addresses, so that a flood of addresses cannot remove their counts.
type Memory struct {
	now       func() time.Time
	began     time.Time
	seed      maphash.Seed
	callers   [shards]shard
	addresses [shards]shard
}

const (
	shards = 64

	// MaxKeys is how many callers, and how many addresses, a Memory knows at a time: the least recent are removed.
	MaxKeys = 1 << 17
)

// shard has its own lock, with a cache line between it and the next one's.
type shard struct {
	mu   sync.Mutex
	logs *simplelru.LRU[Key, *moments]
	_    [48]byte
}

// NewMemory makes a Memory with up to most keys of either kind; 0: [MaxKeys].
func NewMemory(now func() time.Time, most int) *Memory {
	if most == 0 {
		most = MaxKeys
	}
	m := &Memory{now: now, began: now(), seed: maphash.MakeSeed()}
	for _, half := range []*[shards]shard{&m.callers, &m.addresses} {
		for i := range half {
			half[i].logs, _ = simplelru.NewLRU[Key, *moments]((most+shards-1)/shards, nil) // fails only for sizes below 1
		}
	}
	return m
}

// Take counts a request if the limit allows it. A key must always come with the same limit.
func (m *Memory) Take(key Key, limit Limit) Decision {
	s := m.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	// Within the lock, so that times are in order.
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

// Return takes back the newest request that counts.
func (m *Memory) Return(key Key) {
	s := m.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if log, known := s.logs.Get(key); known && log.count > 0 {
		log.count--
	}
}

func (m *Memory) shard(key Key) *shard {
	i := maphash.Comparable(m.seed, key) % shards
	if key.Caller != "" {
		return &m.callers[i]
	}
	return &m.addresses[i]
}

// sweep removes unused keys: two at a time, so that they go faster than they come.
func (s *shard) sweep(now time.Duration) {
	for range 2 {
		_, log, some := s.logs.GetOldest()
		if !some || log.empty > now {
			return
		}
		s.logs.RemoveOldest()
	}
}

// moments are the times of the counted requests, oldest first, in a ring.
type moments struct {
	ring         []time.Duration
	first, count int
	empty        time.Duration // when the last of them leaves the window
}

func (l *moments) oldest() time.Duration { return l.ring[l.first] }

// leave removes the times up to a moment.
func (l *moments) leave(until time.Duration) {
	for l.count > 0 && l.oldest() <= until {
		l.first = (l.first + 1) % len(l.ring)
		l.count--
	}
}

const fewMoments = 4

// add adds a time. There are never more than most.
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
