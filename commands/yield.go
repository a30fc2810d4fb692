package commands

import (
	"context"
	"sync"
	"time"
)

const (
	yields      = 3           // rests for each time that others waited
	maxYielded  = 15          // rests for each time that the work took: it goes on, if slowly, however many write
	longestRest = time.Second // so that a slow disk does not stop it
)

// waiting counts how long requests wait for their commands.
type waiting struct {
	mu     sync.Mutex
	now    int64         // how many wait
	waited time.Duration // how long those that have ended waited, without the moments at which those that wait began
}

// epoch is what the moments of waiting count from.
var epoch = time.Now()

// begin notes that a request waits, and end, which it returns, that it does no longer.
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

// total returns how long all have waited, one beside the other, until now.
func (w *waiting) total() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waited + time.Duration(w.now)*time.Since(epoch)
}

// Pacer is work that nobody waits for. It rests the longer, the longer requests of this process waited for their commands meanwhile: a
// campaign to a hundred thousand people leaves the processors to those who post rows.
type Pacer struct {
	handler      *Handler
	waited, took time.Duration
}

// Yield returns work that has not begun.
func (h *Handler) Yield() *Pacer { return &Pacer{handler: h} }

// Do does a part of the work, and notes what it took.
func (y *Pacer) Do(part func() error) error {
	waited, began := y.handler.waiting.total(), time.Now()
	err := part()
	y.waited, y.took = y.waited+y.handler.waiting.total()-waited, y.took+time.Since(began)
	return err
}

// Rest ends the work, and waits as long as it has to rest, or until ctx ends.
func (y *Pacer) Rest(ctx context.Context) {
	if rest := rest(y.waited, y.took); rest > 0 {
		select {
		case <-time.After(rest):
		case <-ctx.Done():
		}
	}
}

// rest returns how long work rests that took some time, in which others waited for a time in all.
func rest(waited, took time.Duration) time.Duration {
	return min(yields*waited, maxYielded*took, longestRest)
}
