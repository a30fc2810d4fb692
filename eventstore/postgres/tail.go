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
	// tailEvents and tailBytes bound the memory that just committed events take for those who follow the
	// log. Up to twice as much is kept, so that they are not moved at each append.
	tailEvents = 16384
	tailBytes  = 32 << 20

	// maxTailBatch keeps what a follower gets at once small enough to be one transaction.
	maxTailBatch = 384

	// pollEvery is how late another process's event is seen at the latest, when its notice was lost.
	pollEvery = time.Second

	channel = "bahi_log"
)

// tail holds the newest events of the log as far as this process knows them without asking: what it
// committed itself, as long as nobody else's events lie between.
type tail struct {
	mu     sync.Mutex
	events []event.Stored // positions follow one another
	bytes  int            // of their payloads and metadata
	keep   int            // how many, at least as long as they are small
	own    event.Position // the newest position that this process appended
	head   event.Position // the newest position that somebody told of
	doubts int            // how often only a look into the database could tell what the head is
	forgot int            // the doubts at the last new connection
	change chan struct{}  // closed at every change
}

func newTail() *tail { return &tail{keep: tailEvents, doubts: 1, change: make(chan struct{})} }

// committed takes events that this process has just appended.
func (t *tail) committed(events []event.Stored) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.events); n > 0 && t.events[n-1].Position+1 != events[0].Position {
		t.events, t.bytes = nil, 0 // another process wrote in between
	}
	t.events = append(t.events, events...)
	for _, e := range events {
		t.bytes += size(e)
	}
	if len(t.events) > 2*t.keep || t.bytes > 2*tailBytes {
		t.shrink()
	}
	t.own = events[len(events)-1].Position
	t.moved(t.own)
}

// forget is for a new connection. It may lead to another server, which stands in for the one that was lost and lacks its newest
// events: what was told of them is no longer so, and only the database knows what there is.
func (t *tail) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events, t.bytes, t.own, t.head = nil, 0, 0, 0
	t.doubts++
	t.forgot = t.doubts
	t.moved(0)
}

// shrink forgets the oldest events. Those who follow may still hold the memory behind the slice, so it
// is left to them.
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

// after returns events that follow the position, none when there are none yet, and false when only
// the database knows: also whether the event at the position is still there, after a new connection.
// A follower remembers in looked which doubts it has resolved by a look.
func (t *tail) after(position event.Position, looked *int) ([]event.Stored, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.events); n > 0 && *looked >= t.forgot && position+1 >= t.events[0].Position && position < t.events[n-1].Position {
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

// told is the newest position that somebody told of.
func (t *tail) told() event.Position {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.head
}

// appended is the newest position that this process appended.
func (t *tail) appended() event.Position {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.own
}

// listen wakes followers for what other processes append, tells those of what this one appended, and
// looks every now and then by itself, since a notice can be lost with its connection.
func listen(ctx context.Context, config *pgx.ConnConfig, look time.Duration, t *tail, log *slog.Logger) {
	for ctx.Err() == nil {
		err := listenOnce(ctx, config, look, t)
		if ctx.Err() != nil {
			return
		}
		log.Warn("listening for other processes' events failed, trying again", "error", err)
		t.forget()
		select {
		case <-ctx.Done():
		case <-time.After(pollEvery):
		}
	}
}

func listenOnce(ctx context.Context, config *pgx.ConnConfig, look time.Duration, t *tail) error {
	connecting, cancel := context.WithTimeout(ctx, usualPatience.ask)
	defer cancel()
	conn, err := pgx.ConnectConfig(connecting, config)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing is left to lose
	if _, err := conn.Exec(ctx, `listen `+channel); err != nil {
		return err
	}
	t.forget() // and look for what was appended before the listening began
	for {
		wait, cancel := context.WithTimeout(ctx, look)
		notice, err := conn.WaitForNotification(wait)
		timedOut := wait.Err() != nil
		cancel()
		switch {
		case err == nil:
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

// tell lets other processes know what this one has appended, until it appends no more (done). That is
// not part of the append, because a notice inside a transaction makes its commit slower, and a lost
// one is only a delay.
func tell(ctx context.Context, pool *pgxpool.Pool, t *tail, done <-chan struct{}, log *slog.Logger) {
	var told event.Position
	news := func(ctx context.Context) {
		own := t.appended()
		if own == 0 || own == told {
			return
		}
		if _, err := pool.Exec(ctx, `select pg_notify($1, $2)`, channel, strconv.FormatUint(uint64(own), 10)); err != nil {
			log.Debug("telling other processes of new events failed", "error", err)
			return
		}
		told = own
	}
	for ctx.Err() == nil {
		changed := t.changed()
		news(ctx)
		select {
		case <-ctx.Done():
		case <-changed:
		}
		select {
		case <-ctx.Done():
		case <-time.After(tellEvery):
		}
	}
	<-done
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), pollEvery) // later they find out by themselves
	defer cancel()
	news(last)
}
