package api

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/semaphore"

	"bahi/domain/fault"
)

const (
	turnsOfCaller = 2  // expensive responses of a caller at once
	maxWaiting    = 64 // requests of a caller that wait for their turn
)

var errBusy = fault.New(fault.Unavailable, "Too many expensive answers at once, try again")

// turns lets few expensive answers be made at once: [turnsOfCaller] of a caller, and a quarter of all of a workspace. Who has as many
// waits for their own, before they wait for a turn of all. So a caller with many requests delays only themselves.
type turns struct {
	all   *semaphore.Weighted
	share int64 // of a workspace

	mu sync.Mutex
	of map[string]*part // by caller, and by workspace
}

// part is the turns of a caller, or of a workspace.
type part struct {
	*semaphore.Weighted

	users int // that have a turn or wait for one
}

func newTurns(all int) *turns {
	return &turns{all: semaphore.NewWeighted(int64(all)), share: max(1, int64(all/4)), of: map[string]*part{}}
}

// enter returns the turns of a caller or a workspace, and how many use them until leave.
func (t *turns) enter(name string, most int64) (p *part, users int, leave func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of[name] == nil {
		t.of[name] = &part{Weighted: semaphore.NewWeighted(most)}
	}
	p = t.of[name]
	p.users++
	return p, p.users, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if p.users--; p.users == 0 {
			delete(t.of, name)
		}
	}
}

// take waits for a turn. After an error there is none to give back.
func (t *turns) take(ctx context.Context, caller, workspace string, patience time.Duration) (done func(), err error) {
	own, users, leave := t.enter(caller, turnsOfCaller)
	shared, _, leaveShared := t.enter(workspace, t.share)
	if users > turnsOfCaller+maxWaiting {
		patience = 0
	}
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ends := []func(){leave, leaveShared}
	done = func() {
		for _, end := range slices.Backward(ends) {
			end()
		}
	}
	for _, s := range []*semaphore.Weighted{own.Weighted, shared.Weighted, t.all} {
		if s.Acquire(waiting, 1) != nil {
			done()
			return nil, cmp.Or(ctx.Err(), error(errBusy))
		}
		ends = append(ends, func() { s.Release(1) })
	}
	return done, nil
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
