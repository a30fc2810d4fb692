package api

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"bahi/domain/fault"
)

const (
	turnsOfCaller = 2  // expensive responses of a caller at once
	maxWaiting    = 64 // requests of a caller that wait for their turn
)

var errBusy = fault.New(fault.Unavailable, "Too many expensive answers at once, try again")

// turns lets few expensive answers be made at once: [turnsOfCaller] of a caller, and a quarter of all of a workspace. A free turn goes
// to the workspace, and in it to the caller, with the fewest turns, and among equals to who has waited longest. So a caller with many
// requests delays only themselves.
type turns struct {
	mu      sync.Mutex
	free    int
	share   int            // of a workspace
	taken   map[string]int // by caller, and by workspace
	waiting []*turn        // in the order of arrival
}

type turn struct {
	caller, workspace string
	given             chan struct{} // closed when the turn has come
}

func newTurns(all int) *turns {
	return &turns{free: all, share: max(1, all/4), taken: map[string]int{}}
}

// take waits for a turn. After an error there is none to give back.
func (t *turns) take(ctx context.Context, caller, workspace string, patience time.Duration) (done func(), err error) {
	own := &turn{caller, workspace, make(chan struct{})}
	done = func() { t.giveBack(own) }
	t.mu.Lock()
	t.waiting = append(t.waiting, own)
	t.next()
	others := 0
	for _, w := range t.waiting {
		if w.caller == caller {
			others++
		}
	}
	t.mu.Unlock()
	if others > maxWaiting {
		patience = 0
	}
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-own.given:
		return done, nil
	case <-waiting.Done():
	}
	if t.leave(own) {
		return nil, cmp.Or(ctx.Err(), error(errBusy))
	}
	return done, nil // it came in the same moment
}

// next gives the free turns. The lock is held.
func (t *turns) next() {
	for t.free > 0 {
		best := -1
		for i, w := range t.waiting {
			if t.taken[w.caller] < turnsOfCaller && t.taken[w.workspace] < t.share && (best < 0 || t.before(w, t.waiting[best])) {
				best = i
			}
		}
		if best < 0 {
			return
		}
		w := t.waiting[best]
		t.waiting = slices.Delete(t.waiting, best, best+1)
		t.free--
		t.taken[w.caller]++
		t.taken[w.workspace]++
		close(w.given)
	}
}

// before reports whether a gets a turn before b, which has waited longer.
func (t *turns) before(a, b *turn) bool {
	return cmp.Or(cmp.Compare(t.taken[a.workspace], t.taken[b.workspace]), cmp.Compare(t.taken[a.caller], t.taken[b.caller])) < 0
}

func (t *turns) giveBack(w *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free++
	for _, of := range []string{w.caller, w.workspace} {
		if t.taken[of]--; t.taken[of] == 0 {
			delete(t.taken, of)
		}
	}
	t.next()
}

// leave reports whether the turn had not come; then it will not.
func (t *turns) leave(w *turn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.waiting, w)
	if i < 0 {
		return false
	}
	t.waiting = slices.Delete(t.waiting, i, i+1)
	return true
}

// InTurn makes an expensive answer, or a part of one, when it is the turn of its caller. It refuses callers whose turn does not come in
// time. [Op.Expensive] does this
// for a whole handler. One in the other would wait for itself.
func InTurn(ctx context.Context, work func() error) error {
	c := callOf(ctx)
	if c == nil {
		return work()
	}
	c.expensive = true
	caller, workspace := c.request.Actor.ID, "workspace "+c.request.Workspace.String()
	if caller == "" {
		caller = "address " + clientAddress(c.r, c.api.config.Limiting.Proxies).String()
	}
	if c.request.Workspace == uuid.Nil {
		workspace = "of " + caller
	}
	done, err := c.api.turns.take(ctx, caller, workspace, c.api.config.Whole.Wait)
	if err != nil {
		return err
	}
	defer done()
	return work()
}

const (
	stretch = time.Millisecond // how long an expensive answer is made before it gives way
	lately  = 100 * time.Millisecond
)

// giveWay pauses an expensive answer for as long as it was made since the last pause, while others are served. It ends at once with the
// request. With every processor in use, Go looks for arrived requests every 10 ms only, and Postgres's processes wait for each other.
func (s *spool) giveWay() error {
	now, ctx := time.Now(), s.call.r.Context()
	if now.Sub(s.rested) < stretch {
		return nil
	}
	if now.UnixNano()-s.call.api.served.Load() < int64(lately) {
		select {
		case <-time.After(min(now.Sub(s.rested), 5*stretch)):
		case <-ctx.Done():
		}
		now = time.Now()
	}
	s.rested = now
	return ctx.Err()
}
