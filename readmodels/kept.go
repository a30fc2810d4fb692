package readmodels

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
)

const (
	// keptBytes bounds what a reader keeps.
	keptBytes = 32 << 20

	// keptFor bounds how long.
	keptFor = time.Minute

	// keptOverhead is what an answer takes beside its own bytes.
	keptOverhead = 512

	// maxChanges bounds the workspaces of which a reader remembers when they changed.
	maxChanges = 1 << 14
)

// CacheKey names an answer from the tables of a projection that is Telling: what it is the answer to. The last part is comparable.
type CacheKey struct {
	Projection string
	Workspace  uuid.UUID
	Of         any
}

// Cached returns what read returned for the key before, as long as the projection changed no rows of the workspace since then, and
// otherwise calls it. Of callers who ask at once one reads, and the others look again whether its answer is theirs.
// The answer is as fresh as that of a read, and reports the same position. read must find the same for each caller of the workspace, and
// nothing may change its value afterwards; size is how many bytes that has, 0 for one that is not worth keeping.
//
// A cache that is told of changes by messages would be late by the time that a message takes. This one asks the database, in one snapshot,
// how far the tables are and when the workspace last changed.
func Cached[T any](ctx context.Context, r *Reader, k CacheKey, size func(T) int, read func(context.Context) (T, error)) (T, error) {
	f, c := FreshnessOf(ctx), &r.kept
	top := c.newest(k.Projection)
	kept := func() (value T, done bool, err error) {
		a, found := c.get(k)
		if !found {
			return value, false, nil
		}
		same, own, err := r.unchanged(ctx, k, a, top)
		if err != nil || same {
			f.take(own)
			value, _ = a.value.(T) // the key is of one kind of answer
		}
		return value, err != nil || same, err
	}
	if value, done, err := kept(); done {
		return value, err
	}
	if f.Min == 0 { // it does not wait long, so that others may wait for it
		others, end := c.begin(k)
		defer end()
		if others != nil {
			select {
			case <-others:
			case <-ctx.Done():
			}
			if value, done, err := kept(); done {
				return value, err
			}
		}
	}
	own := f.again()
	value, err := read(WithFreshness(ctx, own))
	f.take(own)
	if at, was := own.Position(); err == nil && was {
		c.put(k, answer{value: value, bytes: size(value), generation: own.generation, at: at, since: time.Now()}, top)
	}
	return value, err
}

// errUntold is for tables of which nobody tells what changed: an older program folds them.
var errUntold = errors.New("the changes of the tables are not told")

// unchanged reports whether the answer is still the one, and what that read saw.
func (r *Reader) unchanged(ctx context.Context, k CacheKey, a answer, top event.Position) (bool, *Freshness, error) {
	own := FreshnessOf(ctx).again()
	type change struct {
		Generation int
		At         int64
	}
	last, err := Row(WithFreshness(ctx, own), r, errUntold, pgx.RowToStructByPos[change], fmt.Sprintf(`
		select g.generation, greatest(g.told_from, (
			select c.position from projection.change c where c.name = g.name and c.generation = g.generation and c.workspace_id = $1))
		from projection.generation g
		where g.live and g.name = '%[1]s' and g.version = %[2]d and g.told_to = g.position /* %[1]s.tables */`, k.Projection,
		r.versions[k.Projection]), k.Workspace)
	if errors.Is(err, errUntold) {
		return false, own, nil
	}
	if err != nil {
		return false, own, err
	}
	at, _ := own.Position()
	if at < top { // what was read before has seen more: the database was restored
		r.kept.clear()
		return false, own, nil
	}
	r.kept.changed(k, told{generation: last.Generation, at: event.Position(last.At)})
	return last.Generation == a.generation && event.Position(last.At) <= a.at, own, nil
}

// answers are the answers that a reader keeps, the newest of those that were asked for.
type answers struct {
	mu    sync.Mutex
	byKey map[CacheKey]*list.Element
	order list.List // of *keptAnswer, the one that was asked for last first
	bytes int
	most  int // bytes
	top   map[string]event.Position
	told  map[CacheKey]told // when a workspace last changed, as far as it is known

	reading map[CacheKey]chan struct{} // closed once the caller that reads the answer has it
}

// answer is what a read found in the tables of a generation, at a position.
type answer struct {
	value      any
	bytes      int
	generation int
	at         event.Position
	since      time.Time
}

type keptAnswer struct {
	answer

	key CacheKey
}

// told is the last change of a workspace in a generation.
type told struct {
	generation int
	at         event.Position
}

// newest returns the highest position at which an answer from the projection was read. A later read sees no less.
func (c *answers) newest(projection string) event.Position {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.top[projection]
}

// get returns the answer, unless it is known to be outdated.
func (c *answers) get(k CacheKey) (answer, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byKey[k]
	if e == nil {
		return answer{}, false
	}
	a, _ := e.Value.(*keptAnswer) // the list has no others
	last := c.told[k.whose()]
	if time.Since(a.since) > keptFor || last.generation == a.generation && last.at > a.at {
		c.drop(e)
		return answer{}, false
	}
	c.order.MoveToFront(e)
	return a.answer, true
}

// whose is the key of what is known of the workspace.
func (k CacheKey) whose() CacheKey { return CacheKey{Projection: k.Projection, Workspace: k.Workspace} }

// changed notes when a workspace last changed.
func (c *answers) changed(k CacheKey, last told) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.told == nil || len(c.told) >= maxChanges {
		c.told = map[CacheKey]told{}
	}
	if was := c.told[k.whose()]; was.generation != last.generation || was.at < last.at {
		c.told[k.whose()] = last
	}
}

// begin returns a channel that is closed once the caller that reads the answer has it, or nil: then this caller is the one, until end.
func (c *answers) begin(k CacheKey) (others <-chan struct{}, end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if reading := c.reading[k]; reading != nil {
		return reading, func() {}
	}
	if c.reading == nil {
		c.reading = map[CacheKey]chan struct{}{}
	}
	reading := make(chan struct{})
	c.reading[k] = reading
	return nil, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.reading, k)
		close(reading)
	}
}

// put keeps an answer, and drops those that nobody asked for the longest.
func (c *answers) put(k CacheKey, a answer, top event.Position) {
	if a.at < top {
		c.clear()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey == nil {
		c.byKey, c.top = map[CacheKey]*list.Element{}, map[string]event.Position{}
	}
	if e := c.byKey[k]; e != nil {
		c.drop(e)
	}
	if a.bytes == 0 {
		return
	}
	a.bytes += keptOverhead
	c.byKey[k] = c.order.PushFront(&keptAnswer{answer: a, key: k})
	c.top[k.Projection] = max(c.top[k.Projection], a.at)
	for c.bytes += a.bytes; c.bytes > c.most; {
		c.drop(c.order.Back())
	}
}

func (c *answers) drop(e *list.Element) {
	a, _ := c.order.Remove(e).(*keptAnswer) // the list has no others
	delete(c.byKey, a.key)
	c.bytes -= a.bytes
}

// clear drops all.
func (c *answers) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byKey, c.top, c.told, c.bytes = nil, nil, nil, 0
	c.order.Init()
}
