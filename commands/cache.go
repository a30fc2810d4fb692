package commands

import (
	"math"
	"sync"

	"github.com/google/uuid"
	"github.com/hashicorp/golang-lru/v2/simplelru"

	"bahi/domain/event"
	"bahi/eventstore"
)

const (
	// maxCached limits the number of cached states, and maxCachedBytes the bytes of their events, because a bulk post may be as large as a
	// thousand rows. A state takes about 1.5 kB in addition to its events' bytes.
	maxCached      = 16384
	maxCachedBytes = 64 << 20
)

// cached is a stream's state with its revision.
type cached struct {
	loaded   any // Loaded[S]
	revision int64
	bytes    int // size of its events' payloads
}

// cache stores states until newer events are appended. A subscription to the log detects these.
type cache struct {
	mu      sync.Mutex
	states  *simplelru.LRU[string, cached]
	bytes   int // size of all states
	loading map[string]*ticket
	fed     known
}

// known is an event of the log that this process knows.
type known struct {
	position event.Position
	id       uuid.UUID
}

// ticket is a load or an append in progress. When it ends, its result may be outdated.
type ticket struct {
	stream string
	holds  int
	newest int64 // latest revision seen in the log since the beginning
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

// begin registers an operation that will cache a state of the stream.
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

// end caches the loaded state unless it is outdated; nil: no state.
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
	c.bytes += entry.bytes - now.bytes // Add does not report the replaced entry
	c.states.Add(t.stream, *entry)
	for c.bytes > maxCachedBytes {
		c.states.RemoveOldest()
	}
}

// reset drops all states, and the results of operations in progress.
func (c *cache) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.states.Purge()
	for _, t := range c.loading {
		t.newest = math.MaxInt64
	}
	c.fed = known{}
}

// feed drops the states of streams with newer events, including those that other processes append.
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
	if n := len(batch.Events); n > 0 {
		c.fed = known{batch.Events[n-1].Position, batch.Events[n-1].ID}
	}
}

// newest returns the newest event that the states include; the zero value: none.
func (c *cache) newest() known {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fed
}
