package projections

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
)

// asksChannel has the notices by which processes ask each other for positions. A notice is "ask <projection> <position>" to the process
// that folds it, or "has <projection> <position>" to those that have asked. A lost notice only costs time: events are folded, and readers
// look, also without.
const asksChannel = "bahi_asks"

// positionRequests are what this process and others ask of each other. The runner's mu guards it.
type positionRequests struct {
	sent     map[string]event.Position // what this process has asked others for
	received map[string]event.Position // what others have asked this process for
	out      []string                  // notices to be sent
	ready    chan struct{}             // wakes who sends them
}

func newAsks() positionRequests {
	return positionRequests{sent: map[string]event.Position{}, received: map[string]event.Position{}, ready: make(chan struct{}, 1)}
}

// enqueue queues a notice.
func (a *positionRequests) enqueue(verb, name string, at event.Position) {
	a.out = append(a.out, verb+" "+name+" "+strconv.FormatUint(uint64(at), 10))
	select {
	case a.ready <- struct{}{}:
	default:
	}
}

// requestPosition asks the process that folds a projection for a position, unless this process has done so. The caller holds mu.
func (r *Runner) requestPosition(name string, asked event.Position) {
	if asked > r.asks.sent[name] {
		r.asks.sent[name] = asked
		r.asks.enqueue("ask", name, asked)
	}
}

// announceReached tells other processes that a projection has what they have asked for. The caller holds mu.
func (r *Runner) announceReached(name string, at event.Position) {
	if owed := r.asks.received[name]; owed > 0 && at >= owed {
		delete(r.asks.received, name)
		r.asks.enqueue("has", name, at)
	}
}

// handleNotice takes a notice of another process, or of this one.
func (r *Runner) handleNotice(notice string) {
	verb, rest, _ := strings.Cut(notice, " ")
	name, number, _ := strings.Cut(rest, " ")
	at, err := strconv.ParseUint(number, 10, 63)
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.status[name]
	switch {
	case s == nil:
	case verb == "ask" && s.Working:
		r.asks.received[name] = max(r.asks.received[name], event.Position(at))
		r.demands[name].raise(event.Position(at))
		r.announceReached(name, s.Position)
	case verb == "has" && !s.Working: // readers look for themselves
		r.moves[name].Notify()
	}
}

// exchange sends and takes notices until ctx ends.
func (r *Runner) exchange(ctx context.Context) {
	for lost := false; ctx.Err() == nil; lost = true {
		if err := r.exchangeOnce(ctx, lost); ctx.Err() == nil {
			r.log.Debug("asking other processes for positions failed; trying again", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(tryAgain):
			}
		}
	}
}

// exchangeOnce exchanges notices until its connection fails. lost says that an earlier connection failed.
func (r *Runner) exchangeOnce(ctx context.Context, lost bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, r.pool.Config().ConnConfig) // not as a follower: it holds no lock
	if err != nil {
		return fmt.Errorf("connect to hear other processes: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the connection is discarded
	if _, err := conn.Exec(ctx, `listen `+asksChannel); err != nil {
		return fmt.Errorf("hear other processes: %w", err)
	}
	if lost {
		r.beginAgain()
	}
	failed := make(chan error, 1)
	go func() { failed <- r.sendNotices(ctx); cancel() }()
	for {
		notice, err := conn.WaitForNotification(ctx)
		if err != nil {
			cancel()
			return errors.Join(<-failed, err)
		}
		r.handleNotice(notice.Payload)
	}
}

// beginAgain makes each follower that works read its checkpoint again. Postgres may have crashed, which loses checkpoints that were not on
// its disk. A follower without events to fold notices neither that nor the loss of its connection.
func (r *Runner) beginAgain() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, stop := range r.again {
		if s := r.status[name]; s != nil && s.Working && stop != nil {
			stop()
		}
	}
}

// sendNotices sends what is queued until ctx ends.
func (r *Runner) sendNotices(ctx context.Context) error {
	for {
		select {
		case <-r.asks.ready:
		case <-ctx.Done():
			return nil
		}
		r.mu.Lock()
		out := r.asks.out
		r.asks.out = nil
		r.mu.Unlock()
		if _, err := r.pool.Exec(ctx, `select pg_notify($1, notice) from unnest($2::text[]) notice`, asksChannel, out); err != nil {
			return fmt.Errorf("ask other processes: %w", err)
		}
	}
}
