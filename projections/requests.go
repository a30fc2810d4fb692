package projections

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/eventstore/signal"
)

// positionsChannel is the channel for notices between processes. "ask <projection> <position>" requests a position from the process that
// folds the projection. "has <projection> <position>" is its reply to the requesting processes. A lost notice only costs time: processes
// fold events without requests, and readers check the position themselves.
const positionsChannel = "bahi_positions"

// positionRequests are the requests between this process and others. The runner's mu guards it.
type positionRequests struct {
	sent     map[string]event.Position // positions that this process has requested from others
	received map[string]event.Position // positions that others have requested from this process
	out      []string                  // notices to be sent
	ready    chan struct{}             // wakes the sender
}

func newPositionRequests() positionRequests {
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

// requestPosition requests a position from the process that folds a projection, unless this process has already requested it. The caller
// holds mu.
func (r *Runner) requestPosition(name string, asked event.Position) {
	if asked > r.requests.sent[name] {
		r.requests.sent[name] = asked
		r.requests.enqueue("ask", name, asked)
	}
}

// announceReached notifies other processes that a projection has reached a requested position. The caller holds mu.
func (r *Runner) announceReached(name string, at event.Position) {
	if owed := r.requests.received[name]; owed > 0 && at >= owed {
		delete(r.requests.received, name)
		r.requests.enqueue("has", name, at)
	}
}

// handleNotice handles a notice of another process, or of this one.
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
		r.requests.received[name] = max(r.requests.received[name], event.Position(at))
		r.demands[name].raise(event.Position(at))
		r.announceReached(name, s.Position)
	case verb == "has" && !s.Working: // readers check the position themselves
		r.moves[name].Notify()
	}
}

// exchange sends and receives notices until ctx ends.
func (r *Runner) exchange(ctx context.Context) {
	for lost := false; ctx.Err() == nil; lost = true {
		if err := r.exchangeOnce(ctx, lost); ctx.Err() == nil {
			r.log.Debug("exchanging positions with other processes failed; retrying", "error", err)
			_ = signal.Sleep(ctx, tryAgain)
		}
	}
}

// exchangeOnce exchanges notices until its connection fails. lost is true if an earlier connection failed.
func (r *Runner) exchangeOnce(ctx context.Context, lost bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, r.pool.Config().ConnConfig) // the connection holds no lock
	if err != nil {
		return fmt.Errorf("connect for notices: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the connection is discarded
	if _, err := conn.Exec(ctx, `listen `+positionsChannel); err != nil {
		return fmt.Errorf("listen for notices: %w", err)
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

// beginAgain makes each working follower read its checkpoint again. A crash of Postgres may have lost checkpoints that were not on disk. A
// follower without events to fold would not detect a lost checkpoint or a lost connection.
func (r *Runner) beginAgain() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, stop := range r.again {
		if s := r.status[name]; s != nil && s.Working && stop != nil {
			stop()
		}
	}
}

// sendNotices sends the queued notices until ctx ends.
func (r *Runner) sendNotices(ctx context.Context) error {
	for {
		select {
		case <-r.requests.ready:
		case <-ctx.Done():
			return nil
		}
		r.mu.Lock()
		out := r.requests.out
		r.requests.out = nil
		r.mu.Unlock()
		if _, err := r.pool.Exec(ctx, `select pg_notify($1, notice) from unnest($2::text[]) notice`, positionsChannel, out); err != nil {
			return fmt.Errorf("send a notice: %w", err)
		}
	}
}
