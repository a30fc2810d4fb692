package commands

import (
	"context"
	"sync"
	"time"
)

// reads are the reads of streams that several callers want as new as their calls. Those who ask while a read of the stream is under way share the next one: a busy
// channel, which each message asks for, costs a read for all of them.
type reads struct {
	mu      sync.Mutex
	next    map[string]*read // may still be joined
	running map[string]*read // the newest that began
}

type read struct {
	ended  chan struct{} // is closed when the rest is set
	loaded any
	err    error
}

// readWithin bounds a read, as its callers' own deadlines differ.
const readWithin = 10 * time.Second

// sharing marks the context of a read that others wait for. What it reads besides is its own, so that no two reads wait for each other.
type sharing struct{}

func newReads() *reads { return &reads{next: map[string]*read{}, running: map[string]*read{}} }

// share returns what do returns, which begins after the call.
func (r *reads) share(ctx context.Context, stream string, do func(context.Context) (any, error)) (any, error) {
	if ctx.Value(sharing{}) != nil {
		return do(ctx)
	}
	r.mu.Lock()
	mine, first := r.next[stream], r.next[stream] == nil
	before := r.running[stream]
	if first {
		mine = &read{ended: make(chan struct{})}
		r.next[stream] = mine
	}
	r.mu.Unlock()
	if first {
		if before != nil {
			<-before.ended
		}
		r.mu.Lock()
		delete(r.next, stream)
		r.running[stream] = mine
		r.mu.Unlock()
		r.lead(ctx, stream, mine, do)
	}
	select {
	case <-mine.ended:
		return mine.loaded, mine.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (r *reads) lead(ctx context.Context, stream string, mine *read, do func(context.Context) (any, error)) {
	ctx, cancel := context.WithTimeout(context.WithValue(context.WithoutCancel(ctx), sharing{}, true), readWithin)
	defer cancel()
	mine.loaded, mine.err = do(ctx)
	r.mu.Lock()
	if r.running[stream] == mine {
		delete(r.running, stream)
	}
	r.mu.Unlock()
	close(mine.ended)
}
