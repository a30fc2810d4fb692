package commands

import (
	"context"
	"sync"
	"time"

	"bahi/eventstore/signal"
)

const (
	yields      = 3           // rest per unit of time that requests have waited
	maxYielded  = 15          // maximum rest per unit of work, so that the work continues under any load
	longestRest = time.Second // upper limit, so that a slow disk does not stop the work
)

// waiting measures how long requests wait for their commands.
type waiting struct {
	mu     sync.Mutex
	now    int64         // number of waiting requests
	waited time.Duration // total time of ended waits, minus the start times of current ones
}

// epoch is the origin of the start times.
var epoch = time.Now()

// begin records the start of a request's wait, and returns a function that records the end.
func (w *waiting) begin() (end func()) {
	w.add(1)
	return func() { w.add(-1) }
}

func (w *waiting) add(n int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now += n
	w.waited -= time.Duration(n) * time.Since(epoch)
}

// total returns the sum of all waiting times until now.
func (w *waiting) total() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waited + time.Duration(w.now)*time.Since(epoch)
}

// Pacer paces background work. The pauses of the work are proportional to the time that requests of this process waited meanwhile. So
// posting rows stays fast during a campaign to a hundred thousand recipients.
type Pacer struct {
	handler      *Handler
	waited, took time.Duration
}

// Yield returns a pacer for new work.
func (h *Handler) Yield() *Pacer { return &Pacer{handler: h} }

// Do does a part of the work and records its duration.
func (y *Pacer) Do(part func() error) error {
	waited, began := y.handler.waiting.total(), time.Now()
	err := part()
	y.waited, y.took = y.waited+y.handler.waiting.total()-waited, y.took+time.Since(began)
	return err
}

// Rest ends the part and waits for the rest period, or until ctx ends.
func (y *Pacer) Rest(ctx context.Context) {
	if rest := rest(y.waited, y.took); rest > 0 {
		_ = signal.Sleep(ctx, rest)
	}
}

// rest returns the rest period after work that took a time, during which requests waited for a total time.
func rest(waited, took time.Duration) time.Duration {
	return min(yields*waited, maxYielded*took, longestRest)
}
