package ratelimit

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Memory counts in this process. Goroutines may share it.
//
// Its memory is limited: 8 to 16 bytes for each request that was allowed in a window, and about 200 for each key. Keys with an empty window
// are removed when other keys arrive. Beyond the maximum number of keys, the count of the least recently used one is removed. An attacker
// with so many addresses gains no more than by one more address. No client is refused without reason. Known callers are separate from
// addresses, so a flood of addresses cannot remove their counts.
type Memory struct {
	now   func() time.Time
	began time.Time

	mu                 sync.Mutex
	callers, addresses *simplelru.LRU[Key, *window]
}

// maxKeys is the maximum number of callers, and of addresses, in a Memory. The least recently used ones are removed.
const maxKeys = 1 << 17

// window has the times of a key's allowed requests, oldest first.
type window struct {
	times []time.Duration
	empty time.Duration // time at which the last request leaves the window
}

// NewMemory returns a Memory for at most so many callers, and as many addresses. If most is 0, the maximum is 131,072.
func NewMemory(now func() time.Time, most int) *Memory {
	most = cmp.Or(most, maxKeys)
	m := &Memory{now: now, began: now()}
	m.callers, _ = simplelru.NewLRU[Key, *window](most, nil) // fails only for sizes below 1
	m.addresses, _ = simplelru.NewLRU[Key, *window](most, nil)
	return m
}

// Take counts a request if the limit allows it. Each key must always have the same limit.
func (m *Memory) Take(_ context.Context, key Key, limit Limit) Decision {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, keys := m.now().Sub(m.began), m.keys(key) // in the lock, so that times are in order
	for range 2 {                                  // removes unused keys faster than new ones arrive
		if _, w, some := keys.GetOldest(); some && w.empty <= now {
			keys.RemoveOldest()
		}
	}
	w, known := keys.Get(key)
	if !known {
		w = &window{}
		keys.Add(key, w)
	}
	for len(w.times) > 0 && w.times[0] <= now-limit.Per {
		w.times = w.times[1:]
	}
	d := Decision{Allowed: len(w.times) < limit.Requests}
	if d.Allowed {
		w.times, w.empty = append(w.times, now), now+limit.Per
	}
	d.Remaining, d.Next = limit.Requests-len(w.times), w.times[0]+limit.Per-now
	return d
}

// Return removes the newest counted request.
func (m *Memory) Return(_ context.Context, key Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if w, known := m.keys(key).Get(key); known && len(w.times) > 0 {
		w.times = w.times[:len(w.times)-1]
	}
}

func (m *Memory) keys(key Key) *simplelru.LRU[Key, *window] {
	if key.Caller != "" {
		return m.callers
	}
	return m.addresses
}
