package postgres

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"bahi/domain/event"
	"bahi/eventstore/signal"
)

const (
	// tailEvents and tailBytes limit the memory for recent events, which subscribers read. The tail may reach twice the limit, so that not
	// every append moves it.
	tailEvents = 16384
	tailBytes  = 32 << 20

	// maxTailBatch limits a subscriber's batch to what one transaction should process.
	maxTailBatch = 384

	// pollInterval is the maximum delay of another process's event whose notice was lost.
	pollInterval = time.Second

	channel = "bahi_log"
)

// tail has the newest events that this process appended, without gaps.
type tail struct {
	mu            sync.Mutex
	events        []event.Stored // at successive positions
	bytes         int            // size of their payloads and metadata
	keep          int            // number of events to keep, if they are small
	own           event.Position // the last position that this process appended
	head          event.Position // the last position that a notice announced
	doubts        int            // counts how often only the database knew the head
	doubtsAtReset int            // value of doubts at the last new connection
	change        signal.Signal
	waiters       map[*waiter]bool
	began         time.Time
}

func newTail() *tail {
	return &tail{keep: tailEvents, doubts: 1, waiters: map[*waiter]bool{}, began: time.Now()}
}

// waiter is a subscriber that waits for a change. Waking each subscriber for each append cost more than the append.
type waiter struct {
	patience func([]event.Stored) time.Duration
	wake     chan struct{} // closed to wake the subscriber
	timer    *time.Timer   // closes wake for events that may wait; nil: there are none
	most     time.Duration // how long such events may wait
}

// wait returns a waiter for the next change. The caller must release it with leave.
func (t *tail) wait(patience func([]event.Stored) time.Duration) *waiter {
	w := &waiter{patience: patience, wake: make(chan struct{})}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiters[w] = true
	return w
}

func (t *tail) leave(w *waiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(w)
}

func (t *tail) drop(w *waiter) {
	delete(t.waiters, w)
	if w.timer != nil {
		w.timer.Stop()
	}
}

func (t *tail) rouse(w *waiter) {
	if t.waiters[w] {
		close(w.wake)
		t.drop(w)
	}
}

// rouseIn wakes a waiter after at most a time. Waiters with the same time wake together, so that they share their queries.
func (t *tail) rouseIn(w *waiter, most time.Duration) {
	switch {
	case most <= 0:
		t.rouse(w)
		return
	case w.timer == nil:
	case w.most <= most:
		return
	default:
		w.timer.Stop()
	}
	w.most = most
	w.timer = time.AfterFunc(most-time.Since(t.began)%most, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.rouse(w)
	})
}

// committed adds events that this process has appended.
func (t *tail) committed(events []event.Stored) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.events); n > 0 && t.events[n-1].Position+1 != events[0].Position {
		t.events, t.bytes = nil, 0 // another process appended in between
	}
	t.events = append(t.events, events...)
	for _, e := range events {
		t.bytes += size(e)
	}
	if len(t.events) > 2*t.keep || t.bytes > 2*tailBytes {
		t.shrink()
	}
	t.own = events[len(events)-1].Position
	t.announce(t.own)
	for w := range t.waiters {
		t.rouseIn(w, w.patience(events))
	}
}

// reset resets the tail after a new connection. The new server may lack the newest events of the lost one, so only the database knows which
// exist.
func (t *tail) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events, t.bytes, t.own, t.head = nil, 0, 0, 0
	t.doubts++
	t.doubtsAtReset = t.doubts
	t.moved(0)
}

// shrink drops the oldest events. Subscribers may still read the memory behind the slice, so it is not reused.
func (t *tail) shrink() {
	first, bytes := len(t.events), 0
	for first > 0 && len(t.events)-first < t.keep {
		more := bytes + size(t.events[first-1])
		if more > tailBytes {
			break
		}
		first, bytes = first-1, more
	}
	t.events = append(make([]event.Stored, 0, 2*t.keep), t.events[first:]...)
	t.bytes = bytes
}

func size(e event.Stored) int { return len(e.Data) + len(e.Meta) }

// headMoved records that the log has grown to head; 0 means that the new head is unknown.
func (t *tail) headMoved(head event.Position) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if head == 0 {
		t.doubts++
	}
	if head == 0 || head > t.head {
		t.moved(head)
	}
}

// moved announces a head whose events are not in this process's memory.
func (t *tail) moved(head event.Position) {
	t.announce(head)
	for w := range t.waiters {
		t.rouse(w)
	}
}

func (t *tail) announce(head event.Position) {
	t.head = max(t.head, head)
	t.change.Notify()
}

// changed returns a channel that the next change closes.
func (t *tail) changed() <-chan struct{} { return t.change.Wait() }

// after returns the events after the position, possibly none. It returns false if the caller must query the database: for these
// events or, after a new connection, for the existence of the event at the position. looked counts the doubts that the
// subscriber has resolved by a query.
func (t *tail) after(position event.Position, looked *int) ([]event.Stored, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.events); n > 0 && *looked >= t.doubtsAtReset && position+1 >= t.events[0].Position && position < t.events[n-1].Position {
		first := int(position + 1 - t.events[0].Position)
		last := min(first+maxTailBatch, n)
		last = min(last+event.More(t.events[last-1].Meta), n)
		return t.events[first:last:last], true
	}
	if position >= t.head && *looked == t.doubts {
		return nil, true
	}
	*looked = t.doubts
	return nil, false
}

// announced returns the last position that a notice announced.
func (t *tail) announced() event.Position {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.head
}

// appended returns the last position that this process appended.
func (t *tail) appended() event.Position {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.own
}

// listen wakes subscribers when other processes append. It also polls, because a notice is lost with its connection.
func listen(
	ctx context.Context, config *pgx.ConnConfig, p timeouts, t *tail, log *slog.Logger, connected func(context.Context, *pgx.Conn),
) {
	for ctx.Err() == nil {
		err := listenOnce(ctx, config, p, t, connected)
		if ctx.Err() != nil {
			return
		}
		log.Warn("listening for other processes' appends failed; retrying", "error", err)
		t.reset()
		_ = signal.Sleep(ctx, pollInterval)
	}
}

func listenOnce(ctx context.Context, config *pgx.ConnConfig, p timeouts, t *tail, connected func(context.Context, *pgx.Conn)) error {
	connecting, cancel := context.WithTimeout(ctx, p.ask)
	defer cancel()
	conn, err := pgx.ConnectConfig(connecting, config)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the connection is discarded
	if _, err := conn.Exec(connecting, `listen `+channel); err != nil {
		return err
	}
	connected(ctx, conn)
	t.reset() // look for events that were appended before the LISTEN
	var known logEnd
	for {
		wait, cancel := context.WithTimeout(ctx, p.look)
		notice, err := conn.WaitForNotification(wait)
		timedOut := wait.Err() != nil
		cancel()
		switch {
		case err == nil:
			t.headMoved(parsePosition(notice.Payload))
		case ctx.Err() != nil:
			return ctx.Err()
		case timedOut && !conn.IsClosed():
			if known, err = poll(ctx, conn, p, t, known); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// logEnd identifies the log's last event; it is zero for an empty log.
type logEnd struct {
	position event.Position
	id       uuid.UUID
}

// poll reads the log's end. It wakes the subscribers if the end differs from the end at the last poll, or from the position in the last
// notice. So one query is enough for all subscribers of a quiet log. The same end means the same log, because positions have no gaps.
func poll(ctx context.Context, conn *pgx.Conn, p timeouts, t *tail, known logEnd) (end logEnd, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.ask)
	defer cancel()
	err = conn.QueryRow(ctx, `select position, id from log.event order by position desc limit 1`).Scan(&end.position, &end.id)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return end, err
	}
	if end != known || end.position != t.announced() {
		t.headMoved(0)
		t.headMoved(end.position)
	}
	return end, nil
}

// parsePosition returns the position in a notice, 0 if it has none.
func parsePosition(text string) (p event.Position) {
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return 0
		}
		p = p*10 + event.Position(c-'0')
	}
	return p
}

// noticeInterval limits the notices under load; each wakes every process.
const noticeInterval = 5 * time.Millisecond

// sendNotices notifies the other processes of this process's appends, until done is closed. The append's transaction does not include the
// notice: that would slow the commit, and a lost notice only costs time.
func sendNotices(ctx context.Context, pool *pgxpool.Pool, t *tail, done <-chan struct{}, log *slog.Logger) {
	var sent event.Position
	news := func(ctx context.Context) {
		own := t.appended()
		if own == 0 || own == sent {
			return
		}
		if _, err := pool.Exec(ctx, `select pg_notify($1, $2)`, channel, strconv.FormatUint(uint64(own), 10)); err != nil {
			log.Debug("notifying other processes of new events failed", "error", err)
			return
		}
		sent = own
	}
	for ctx.Err() == nil {
		changed := t.changed()
		news(ctx)
		select {
		case <-ctx.Done():
		case <-changed:
		}
		_ = signal.Sleep(ctx, noticeInterval)
	}
	<-done
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), pollInterval) // then the others poll
	defer cancel()
	news(last)
}
