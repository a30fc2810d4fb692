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

// turns limits the expensive responses that are made at once: [turnsOfCaller] for a caller, and a quarter of all for a workspace. A request
// waits for its caller's turn first, and then for one of all. So a caller with many requests delays only themselves.
type turns struct {
	parts // of callers, and of workspaces

	all       *semaphore.Weighted
	workspace int // how many a workspace has
}

func newTurns(all int) *turns {
	return &turns{all: semaphore.NewWeighted(int64(all)), workspace: max(1, all/4)}
}

// parts counts by name what is used or waited for.
type parts struct {
	mu sync.Mutex
	of map[string]*part
}

type part struct {
	*semaphore.Weighted

	users int
}

// enter returns the share of a name, which bounds how many have it at once, and how many use it or wait for it until they leave.
func (s *parts) enter(name string, most int) (own *part, users int, leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[string]*part{}
	}
	if s.of[name] == nil {
		s.of[name] = &part{Weighted: semaphore.NewWeighted(int64(most))}
	}
	own = s.of[name]
	own.users++
	return own, own.users, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if own.users--; own.users == 0 {
			delete(s.of, name)
		}
	}
}

// take waits for a turn. After an error there is none to give back.
func (t *turns) take(ctx context.Context, caller, workspace string, patience time.Duration) (done func(), err error) {
	own, users, leave := t.enter(caller, turnsOfCaller)
	shared, _, leaveShared := t.enter(workspace, t.workspace)
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
