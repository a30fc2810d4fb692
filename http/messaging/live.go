package messaging

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"bahi/domain/event"
	"bahi/domain/messaging/contact"
	"bahi/domain/messaging/message"
	"bahi/http/api"
	"bahi/readmodels"
	views "bahi/readmodels/messaging"
)

// Log tells of new events.
type Log interface {
	Head(ctx context.Context) (event.Position, error)
	// Follow hands over the events after a position until ctx ends or take fails.
	Follow(ctx context.Context, after event.Position, take func([]event.Stored) error) error
}

// mostAtOnce bounds the messages of one read.
const mostAtOnce = 200

// Live hands the messages of workspaces to all who follow them. Each is read once, however many follow: one goroutine of a workspace reads, as
// long as somebody follows.
type Live struct {
	log   Log
	views *views.Views
	files Files

	mu     sync.Mutex
	topics map[uuid.UUID]*topic
}

// NewLive returns what tells of the messages of workspaces.
func NewLive(log Log, v *views.Views, files Files) *Live {
	return &Live{log: log, views: v, files: files, topics: map[uuid.UUID]*topic{}}
}

// told is a message as it is sent to all who follow, encoded once.
type told struct {
	views.Message

	asNew, asChanged []byte
}

// read reads the messages of a workspace that are new or changed after one position, as of another one.
func (l *Live) read(ctx context.Context, workspace uuid.UUID, after, at event.Position) ([]told, error) {
	rows, err := l.views.MessagesSince(readmodels.AtLeast(ctx, at), workspace, after, mostAtOnce)
	if err == nil {
		err = link(ctx, l.files, rows)
	}
	all := make([]told, len(rows))
	for i, m := range rows {
		all[i] = told{Message: m}
		id := strconv.FormatUint(uint64(m.Position), 10)
		if err == nil {
			all[i].asNew, err = api.EncodeEvent("message", id, LiveMessage{m, m.Contact})
		}
		if err == nil {
			all[i].asChanged, err = api.EncodeEvent("status", id, LiveStatus{m, m.Contact})
		}
	}
	return all, err
}

// topic is a workspace that is followed.
type topic struct {
	followers map[chan news]bool
	stop      context.CancelFunc
}

// news is what is new in a workspace: messages, or contacts, of whom 0 is any.
type news struct {
	messages []told
	contacts []int64
}

// together is how long changes are gathered before a page is told of them.
const together = 300 * time.Millisecond

// Changed tells of the contacts of a workspace that have changed or have written, from now on until ctx ends. 0 stands for any contact.
func (l *Live) Changed(ctx context.Context, workspace uuid.UUID, tell func(contacts []int64) error) error {
	changes, leave, err := l.join(ctx, workspace)
	if err != nil {
		return err
	}
	defer leave()
	changed, soon := map[int64]bool{}, time.NewTimer(0)
	<-soon.C
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case n, open := <-changes:
			if !open {
				return nil
			}
			if len(changed) == 0 {
				soon.Reset(together)
			}
			for _, m := range n.messages {
				changed[m.Contact] = true
			}
			for _, id := range n.contacts {
				changed[id] = true
			}
		case <-soon.C:
			if err := tell(slices.Sorted(maps.Keys(changed))); err != nil {
				return err
			}
			clear(changed)
		}
	}
}

// pace is the least time between two reads of a workspace: what comes in the meantime is handed out together, in one write to each follower.
const pace = 100 * time.Millisecond

// waiting is how many reads a follower may lag behind. One who is slower ends, and comes again with Last-Event-ID.
const waiting = 64

// follow sends what is new after a position until ctx ends. seen is the position up to which the follower has seen all.
func (l *Live) follow(ctx context.Context, workspace uuid.UUID, after event.Position, send func(rows []told, seen event.Position) error) error {
	changes, leave, err := l.join(ctx, workspace)
	if err != nil {
		return err
	}
	defer leave()
	head, err := l.log.Head(ctx)
	if err != nil {
		return err
	}
	tell := func(rows []told) error {
		fresh := rows[:0:0]
		for _, m := range rows {
			if m.Position > after {
				fresh = append(fresh, m)
			}
		}
		if len(fresh) == 0 {
			return nil
		}
		err := send(fresh, after)
		after = fresh[len(fresh)-1].Position
		return err
	}
	for { // what was there before the follower came
		rows, err := l.read(ctx, workspace, after, head)
		if err == nil {
			err = tell(rows)
		}
		if err != nil {
			return err
		}
		if len(rows) < mostAtOnce {
			break
		}
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case n, open := <-changes:
			if !open {
				return nil
			}
			if err := tell(n.messages); err != nil {
				return err
			}
		}
	}
}

// join adds a follower of a workspace.
func (l *Live) join(ctx context.Context, workspace uuid.UUID) (changes chan news, leave func(), err error) {
	head, err := l.log.Head(ctx)
	if err != nil {
		return nil, nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.topics[workspace]
	if t == nil {
		running, stop := context.WithCancel(context.WithoutCancel(ctx))
		t = &topic{followers: map[chan news]bool{}, stop: stop}
		l.topics[workspace] = t
		go l.run(readmodels.WithFreshness(running, &readmodels.Freshness{}), workspace, t, head)
	}
	changes = make(chan news, waiting)
	t.followers[changes] = true
	return changes, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if t.followers[changes] {
			l.drop(workspace, t, changes)
		}
	}, nil
}

// drop ends a follower, and the topic with its last one.
func (l *Live) drop(workspace uuid.UUID, t *topic, changes chan news) {
	delete(t.followers, changes)
	close(changes)
	if len(t.followers) == 0 {
		t.stop()
		if l.topics[workspace] == t {
			delete(l.topics, workspace)
		}
	}
}

// run reads what is new in a workspace, and hands it out. Where it cannot go on, its followers end and come again.
func (l *Live) run(ctx context.Context, workspace uuid.UUID, t *topic, after event.Position) {
	messages, contacts := message.Kind.Category()+"-", contact.Kind.Category()+"-"
	_ = l.log.Follow(ctx, after, func(events []event.Stored) error { //nolint:errcheck // the followers learn of it by their end
		at, changed := event.Position(0), []int64(nil)
		for _, e := range events {
			of, isContact := strings.CutPrefix(e.Stream, contacts)
			switch {
			case isContact && in(workspace, e):
				id, _ := strconv.ParseInt(of, 10, 64) // another one's is none
				changed = append(changed, id)
			case strings.HasPrefix(e.Stream, messages):
				at = e.Position
				if e.Type == seenType && in(workspace, e) { // which changes no message
					changed = append(changed, 0)
				}
			}
		}
		if len(changed) > 0 {
			l.hand(workspace, t, news{contacts: changed})
		}
		for more := at > 0; more; {
			rows, err := l.read(ctx, workspace, after, at)
			switch {
			case errors.Is(err, readmodels.ErrNotYet): // the tables are late
				continue
			case err != nil:
				return err
			case len(rows) > 0:
				after = rows[len(rows)-1].Position
				l.hand(workspace, t, news{messages: rows})
				if len(rows) < mostAtOnce {
					time.Sleep(pace)
				}
			}
			more = len(rows) == mostAtOnce
		}
		return nil
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	for changes := range t.followers {
		l.drop(workspace, t, changes)
	}
}

// seenType is the stored name of [message.Seen].
const seenType = "MessageSeen"

// in reports whether an event is of a workspace.
func in(workspace uuid.UUID, e event.Stored) bool {
	var meta event.Meta
	return json.Unmarshal(e.Meta, &meta) == nil && meta.Workspace == workspace
}

// hand gives news to all followers of a topic.
func (l *Live) hand(workspace uuid.UUID, t *topic, n news) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for changes := range t.followers {
		select {
		case changes <- n:
		default:
			l.drop(workspace, t, changes)
		}
	}
}
