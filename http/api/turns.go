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
	turnsOfCaller = 2  // concurrent expensive responses of a caller
	maxWaiting    = 64 // requests of a caller that wait for their turn
)

var errBusy = fault.New(fault.Unavailable, "Too many expensive requests at once, try again")

// turns limits the concurrent expensive responses: [turnsOfCaller] per caller, and a quarter of all per workspace. A request first waits
// for its caller's turn, then for a general one. So many requests of a caller delay only this caller.
type turns struct {
	parts // of callers, and of workspaces

	all       *semaphore.Weighted
	workspace int // maximum of a workspace
}

func newTurns(all int) *turns {
	return &turns{all: semaphore.NewWeighted(int64(all)), workspace: max(1, all/4)}
}

// parts counts the turns in use and the waiting requests by name.
type parts struct {
	mu sync.Mutex
	of map[string]*part
}

type part struct {
	*semaphore.Weighted

	users int
}

// enter returns the turns of a name. It limits the name's turns in use, and the number of its requests that use a turn or wait for one.
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

// take waits for a turn. After an error, the caller has no turn.
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

// InTurn runs an expensive response, or a part of one, in its caller's turn. It refuses a request after a too long wait. [Op.Expensive]
// does the same for a whole handler. Do not nest calls: the inner call would wait for the outer one.
func InTurn(ctx context.Context, work func() error) error {
	c := callOf(ctx)
	if c.api == nil {
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
	stretch = time.Millisecond // time after which an expensive response pauses
	lately  = 100 * time.Millisecond
)

// giveWay pauses an expensive response while other requests are served. The pause is as long as the time since the last pause, and ends
// with the request. Without pauses, all processors may be in use: Go then checks for new requests only every 10 ms, and Postgres's
// processes wait for each other.
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
