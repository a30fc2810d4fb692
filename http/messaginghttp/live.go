package messaginghttp

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"bahi/domain/event"
	"bahi/domain/messaging/message"
	"bahi/http/api"
	"bahi/readmodels"
	"bahi/readmodels/messagingview"
)

// Log delivers new events.
type Log interface {
	Head(ctx context.Context) (event.Position, error)
	// Follow calls take with the events after a position until ctx ends or take fails.
	Follow(ctx context.Context, after event.Position, take func([]event.Stored) error) error
}

// maxConcurrent is the maximum number of messages in one read.
const maxConcurrent = 200

// MessageBroadcaster sends the messages of workspaces to their followers. One goroutine for each followed workspace reads its messages once
// for all followers.
type MessageBroadcaster struct {
	log   Log
	views *messagingview.Views
	files Files

	mu     sync.Mutex
	topics map[uuid.UUID]*topic
}

// NewLive returns a broadcaster of the messages of workspaces.
func NewLive(log Log, v *messagingview.Views, files Files) *MessageBroadcaster {
	return &MessageBroadcaster{log: log, views: v, files: files, topics: map[uuid.UUID]*topic{}}
}

// encodedMessage is a message with its encoded form, which is the same for all followers.
type encodedMessage struct {
	messagingview.Message

	asNew, asChanged []byte
}

// read returns the messages of a workspace that were added or changed after one position and up to another one.
func (l *MessageBroadcaster) read(ctx context.Context, workspace uuid.UUID, after, at event.Position) ([]encodedMessage, error) {
	rows, err := l.views.MessagesSince(ctx, new(readmodels.At).After(at), workspace, after, maxConcurrent)
	if err == nil {
		err = link(ctx, l.files, rows)
	}
	all := make([]encodedMessage, len(rows))
	for i, m := range rows {
		all[i] = encodedMessage{Message: m}
		id := strconv.FormatUint(uint64(m.Position), 10)
		if err == nil {
			all[i].asNew, err = api.EncodeEvent("message", id, liveMessage{m, m.Contact})
		}
		if err == nil {
			all[i].asChanged, err = api.EncodeEvent("status", id, liveStatus{m, m.Contact})
		}
	}
	return all, err
}

// topic is a followed workspace.
type topic struct {
	followers map[chan *part]bool
	stop      context.CancelFunc
}

// part has messages for followers that have received all messages up to a position.
type part struct {
	rows []encodedMessage
	seen event.Position
	text []byte // the encoded rows; nil: not encoded yet
}

// partOf returns the rows after a position.
func partOf(rows []encodedMessage, seen event.Position) part {
	first, _ := slices.BinarySearchFunc(rows, seen+1, func(m encodedMessage, at event.Position) int { return cmp.Compare(m.Position, at) })
	return part{rows: rows[first:], seen: seen}
}

// encoded returns the encoded rows.
func (p part) encoded() []byte {
	if p.text != nil {
		return p.text
	}
	var text []byte
	for _, m := range p.rows {
		if m.Began <= p.seen {
			text = append(text, m.asChanged...)
		} else {
			text = append(text, m.asNew...)
		}
	}
	return text
}

// pace is the minimum time between two reads of a workspace. Messages in between are sent together in one write to each follower. The time
// increases with the number of followers: 2,000 followers get three writes a second.
const (
	pace     = 100 * time.Millisecond
	paceEach = 100 * time.Microsecond
	paceMost = 500 * time.Millisecond
)

// waiting is the maximum number of reads that a follower may lag behind. A slower follower is disconnected, and reconnects with
// Last-Event-ID.
const waiting = 64

// follow sends new messages after a position until ctx ends. Messages that wait for a slow follower are sent together.
func (l *MessageBroadcaster) follow(ctx context.Context, workspace uuid.UUID, after event.Position, send func([]part) error) error {
	changes, leave, err := l.join(ctx, workspace)
	if err != nil {
		return err
	}
	defer leave()
	head, err := l.log.Head(ctx)
	if err != nil {
		return err
	}
	var waits []part
	add := func(p part) {
		if p.seen != after {
			p = partOf(p.rows, after)
		}
		if len(p.rows) > 0 {
			waits, after = append(waits, p), p.rows[len(p.rows)-1].Position
		}
	}
	notify := func() (err error) {
		if len(waits) > 0 {
			err = send(waits)
		}
		waits = waits[:0]
		return err
	}
	for { // messages from before the follower joined
		rows, err := l.read(ctx, workspace, after, head)
		if err != nil {
			return err
		}
		add(part{rows: rows, seen: after})
		if err := notify(); err != nil {
			return err
		}
		if len(rows) < maxConcurrent {
			break
		}
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case n, open := <-changes:
			for more := true; open && more; {
				add(*n)
				select {
				case n, open = <-changes:
				default:
					more = false
				}
			}
			if err := notify(); err != nil || !open {
				return err
			}
		}
	}
}

// join adds a follower of a workspace.
func (l *MessageBroadcaster) join(ctx context.Context, workspace uuid.UUID) (changes chan *part, leave func(), err error) {
	head, err := l.log.Head(ctx)
	if err != nil {
		return nil, nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.topics[workspace]
	if t == nil {
		running, stop := context.WithCancel(context.WithoutCancel(ctx))
		t = &topic{followers: map[chan *part]bool{}, stop: stop}
		l.topics[workspace] = t
		go l.run(running, workspace, t, head)
	}
	changes = make(chan *part, waiting)
	t.followers[changes] = true
	return changes, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if t.followers[changes] {
			l.drop(workspace, t, changes)
		}
	}, nil
}

// drop removes a follower, and the topic with its last one.
func (l *MessageBroadcaster) drop(workspace uuid.UUID, t *topic, changes chan *part) {
	delete(t.followers, changes)
	close(changes)
	if len(t.followers) == 0 {
		t.stop()
		if l.topics[workspace] == t {
			delete(l.topics, workspace)
		}
	}
}

// run reads new messages of a workspace and sends them to its followers. After an error it disconnects the followers, which reconnect.
func (l *MessageBroadcaster) run(ctx context.Context, workspace uuid.UUID, t *topic, after event.Position) {
	messages := message.Kind.Category() + "-"
	_ = l.log.Follow(ctx, after, func(events []event.Stored) error { // followers are disconnected after an error
		at := event.Position(0)
		for _, e := range events {
			if strings.HasPrefix(e.Stream, messages) {
				at = e.Position
			}
		}
		for more := at > 0; more; {
			rows, err := l.read(ctx, workspace, after, at)
			switch {
			case errors.Is(err, readmodels.ErrPositionTimeout): // the tables lag
				continue
			case err != nil:
				return err
			case len(rows) > 0:
				all := part{rows: rows, seen: after}
				all.text = all.encoded() // encoded once for all followers
				followers := l.hand(workspace, t, all)
				if after = rows[len(rows)-1].Position; len(rows) < maxConcurrent {
					time.Sleep(min(pace+time.Duration(followers)*paceEach, paceMost))
				}
			}
			more = len(rows) == maxConcurrent
		}
		return nil
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	for changes := range t.followers {
		l.drop(workspace, t, changes)
	}
}

// hand sends new messages to all followers of a topic, and returns their number.
func (l *MessageBroadcaster) hand(workspace uuid.UUID, t *topic, n part) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	for changes := range t.followers {
		select {
		case changes <- &n: // all followers share n
		default:
			l.drop(workspace, t, changes)
		}
	}
	return len(t.followers)
}
