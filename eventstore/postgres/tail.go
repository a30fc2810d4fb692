package postgres

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"bahi/domain/event"
)

const (
	// tailEvents bounds the memory that just committed events take for those who follow the log.
	tailEvents = 16384

	// maxTailBatch keeps what a follower gets at once small enough to be one transaction.
	maxTailBatch = 2048

	// pollEvery is how late another process's event is seen at the latest, when its notice was lost.
	pollEvery = time.Second

	channel = "bahi_log"
)

// tail holds the newest events of the log as far as this process knows them without asking: what it
// committed itself, as long as nobody else's events lie between.
type tail struct {
	mu     sync.Mutex
	events []event.Stored // positions follow one another
	head   event.Position // the newest position that somebody told of
	doubts int            // how often only a look into the database could tell what the head is
	change chan struct{}  // closed at every change
}

func newTail() *tail { return &tail{doubts: 1, change: make(chan struct{})} }

// committed takes events that this process has just appended.
func (t *tail) committed(events []event.Stored) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.events); n > 0 && t.events[n-1].Position+1 != events[0].Position {
		t.events = nil // another process wrote in between
	}
	if len(t.events)+len(events) > 2*tailEvents {
		t.events = append(make([]event.Stored, 0, 2*tailEvents), t.events[len(t.events)-tailEvents:]...)
	}
	t.events = append(t.events, events...)
	t.moved(events[len(events)-1].Position)
}

// heard takes notice that the log has grown to head, or that it may have when head is 0.
func (t *tail) heard(head event.Position) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if head == 0 {
		t.doubts++
	}
	if head == 0 || head > t.head {
		t.moved(head)
	}
}

func (t *tail) moved(head event.Position) {
	t.head = max(t.head, head)
	close(t.change)
	t.change = make(chan struct{})
}

// changed is closed when something happens after the call.
func (t *tail) changed() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.change
}

// after answers events that follow the position, none when there are none yet, and false when only
// the database knows. A follower remembers in looked which doubts it has resolved by a look.
func (t *tail) after(position event.Position, looked *int) ([]event.Stored, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.events); n > 0 && position+1 >= t.events[0].Position && position < t.events[n-1].Position {
		first := int(position + 1 - t.events[0].Position)
		last := min(first+maxTailBatch, n)
		return t.events[first:last:last], true
	}
	if position >= t.head && *looked == t.doubts {
		return nil, true
	}
	*looked = t.doubts
	return nil, false
}

// appended is the newest position that this process appended.
func (t *tail) appended() event.Position {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.events) == 0 {
		return 0
	}
	return t.events[len(t.events)-1].Position
}

// listen wakes followers for what other processes append, tells those of what this one appended, and
// looks every now and then by itself, since a notice can be lost with its connection.
func listen(ctx context.Context, config *pgx.ConnConfig, t *tail, log *slog.Logger) {
	for ctx.Err() == nil {
		err := listenOnce(ctx, config, t)
		if ctx.Err() != nil {
			return
		}
		log.Warn("listening for other processes' events failed, trying again", "error", err)
		t.heard(0)
		select {
		case <-ctx.Done():
		case <-time.After(pollEvery):
		}
	}
}

func listenOnce(ctx context.Context, config *pgx.ConnConfig, t *tail) error {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing is left to lose
	if _, err := conn.Exec(ctx, `listen `+channel); err != nil {
		return err
	}
	t.heard(0) // what was appended before the listening began
	for {
		wait, cancel := context.WithTimeout(ctx, pollEvery)
		notice, err := conn.WaitForNotification(wait)
		timedOut := wait.Err() != nil
		cancel()
		switch {
		case err == nil && notice.PID != 0:
			t.heard(parsePosition(notice.Payload))
		case ctx.Err() != nil:
			return ctx.Err()
		case timedOut && !conn.IsClosed():
			t.heard(0)
		default:
			return err
		}
	}
}

// parsePosition reads a notice; what it cannot read is a reason to look.
func parsePosition(text string) (p event.Position) {
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return 0
		}
		p = p*10 + event.Position(c-'0')
	}
	return p
}

// tellEvery keeps notices few under load; each wakes every process.
const tellEvery = 5 * time.Millisecond

// tell lets other processes know what this one has appended. That is not part of the append, because
// a notice inside a transaction makes its commit slower, and a lost one is only a delay.
func tell(ctx context.Context, pool *pgxpool.Pool, t *tail, log *slog.Logger) {
	var told event.Position
	for {
		changed := t.changed()
		if own := t.appended(); own > told {
			if _, err := pool.Exec(ctx, `select pg_notify($1, $2)`, channel, strconv.FormatUint(uint64(own), 10)); err != nil {
				log.Debug("telling other processes of new events failed", "error", err)
			}
			told = own
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(tellEvery):
		}
	}
}
