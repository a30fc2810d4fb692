package commands

import (
	"math"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"bahi/domain/event"
	"bahi/eventstore"
)

const (
	// maxCached is how many streams' states are kept, and maxCachedBytes of how many bytes of events they
	// may be made: a bulk of rows weighs as much as a thousand rows. A state takes some 1.5 kB beside its events' bytes.
	maxCached      = 16384
	maxCachedBytes = 64 << 20
)

// cached is a stream's state of whatever type, with the revision that it is of.
type cached struct {
	loaded   any // Loaded[S]
	revision int64
	bytes    int // of its events' payloads
}

// cache keeps states as long as nothing newer was appended, which it learns by following the log.
type cache struct {
	mu      sync.Mutex
	states  *simplelru.LRU[string, cached]
	bytes   int // of all states
	loading map[string]*ticket
	fed     event.Position
}

// ticket is a load or an append under way: what it brings home may be old by then.
type ticket struct {
	stream string
	holds  int
	newest int64 // revision that the log's followers have seen since
}

func newCache() *cache {
	c := &cache{loading: map[string]*ticket{}}
	c.states, _ = simplelru.NewLRU(maxCached, func(_ string, gone cached) { c.bytes -= gone.bytes }) // fails for sizes below 1 only
	return c
}

func (c *cache) get(stream string) (cached, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.states.Get(stream)
}

// begin announces that a state of the stream will be put.
func (c *cache) begin(stream string) *ticket {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.loading[stream]
	if t == nil {
		t = &ticket{stream: stream, newest: -1}
		c.loading[stream] = t
	}
	t.holds++
	return t
}

// end puts what was loaded, nil for nothing, unless it is old by now.
func (c *cache) end(t *ticket, entry *cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.holds--; t.holds == 0 {
		delete(c.loading, t.stream)
	}
	if entry == nil || entry.revision < t.newest {
		return
	}
	now, ok := c.states.Peek(t.stream)
	if ok && now.revision > entry.revision {
		return
	}
	c.bytes += entry.bytes - now.bytes // Add does not tell of what it replaces
	c.states.Add(t.stream, *entry)
	for c.bytes > maxCachedBytes {
		c.states.RemoveOldest()
	}
}

// reset drops what was put while nobody followed the log, and what is about to be. It is fed from the position on.
func (c *cache) reset(at event.Position) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.states.Purge()
	for _, t := range c.loading {
		t.newest = math.MaxInt64
	}
	c.fed = at
}

// feed drops states as newer events are appended, by whomever.
func (c *cache) feed(batch eventstore.Batch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range batch.Events {
		if entry, ok := c.states.Peek(e.Stream); ok && entry.revision < e.Revision {
			c.states.Remove(e.Stream)
		}
		if t := c.loading[e.Stream]; t != nil {
			t.newest = max(t.newest, e.Revision)
		}
	}
	c.fed = batch.UpTo
}

func (c *cache) position() event.Position {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fed
}
