package messaging

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"bahi/domain/event"
	"bahi/domain/fault"
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

// LiveMessage is a message that is new.
type LiveMessage struct {
	views.Message

	ContactID int64 `json:"contactId"`
}

// LiveStatus is a message that has changed.
type LiveStatus LiveMessage

// mostAtOnce bounds the messages of one read.
const mostAtOnce = 200

// Stream registers the live stream of a workspace's messages.
func (r *Routes) Stream() {
	r.live = live{log: r.Log, read: r.since, topics: map[uuid.UUID]*topic{}}
	api.Stream(r.API, api.Op{
		ID: "follow-messages", Method: "GET", Path: "/api/messages/stream", Summary: "Follow the messages of the workspace and their statuses; with Last-Event-ID, from there on",
		Tags: tags, Area: area, Limit: limit,
	}, map[string]any{"message": LiveMessage{}, "status": LiveStatus{}}, func(ctx context.Context, in *struct {
		Last string `header:"Last-Event-ID" doc:"Of the last event that was seen; absent: what is new from now on"`
	}) (api.Source, error) {
		head, err := r.Log.Head(ctx)
		if err != nil {
			return nil, err
		}
		after := head
		if in.Last != "" {
			n, err := strconv.ParseUint(in.Last, 10, 63)
			if err != nil {
				return nil, fault.Fields(fault.Field{Field: "Last-Event-ID", Message: "expected the id of an event"})
			}
			if after = event.Position(n); after > head {
				return nil, readmodels.ErrAhead
			}
		}
		workspace := api.Caller(ctx).Workspace
		return func(ctx context.Context, send func(api.Event) error) error {
			return r.live.follow(ctx, workspace, after, func(rows []told, seen event.Position) error {
				all := make([][]byte, len(rows))
				for i, m := range rows {
					if all[i] = m.asNew; m.Began <= seen {
						all[i] = m.asChanged
					}
				}
				return send(api.Event{Encoded: all})
			})
		}, nil
	})
}

// told is a message as it is sent to all who follow, encoded once.
type told struct {
	Began, Position  event.Position
	asNew, asChanged []byte
}

// since reads the messages of a workspace that are new or changed after one position, as of another one.
func (r *Routes) since(ctx context.Context, workspace uuid.UUID, after, at event.Position) ([]told, error) {
	rows, err := r.Views.MessagesSince(readmodels.AtLeast(ctx, at), workspace, after, mostAtOnce)
	if err == nil {
		err = r.link(ctx, rows)
	}
	all := make([]told, len(rows))
	for i, m := range rows {
		all[i] = told{Began: m.Began, Position: m.Position}
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

// live hands the messages of workspaces to all who follow them. Each is read once, however many follow: one goroutine of a workspace reads, as
// long as somebody follows.
type live struct {
	log  Log
	read func(ctx context.Context, workspace uuid.UUID, after, at event.Position) ([]told, error)

	mu     sync.Mutex
	topics map[uuid.UUID]*topic
}

// topic is a workspace that is followed.
type topic struct {
	followers map[chan []told]bool
	stop      context.CancelFunc
}

// pace is the least time between two reads of a workspace: what comes in the meantime is handed out together, in one write to each follower.
const pace = 100 * time.Millisecond

// waiting is how many reads a follower may lag behind. One who is slower ends, and comes again with Last-Event-ID.
const waiting = 64

// follow sends what is new after a position until ctx ends. seen is the position up to which the follower has seen all.
func (l *live) follow(ctx context.Context, workspace uuid.UUID, after event.Position, send func(rows []told, seen event.Position) error) error {
	news, leave, err := l.join(ctx, workspace)
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
		case rows, open := <-news:
			if !open {
				return nil
			}
			if err := tell(rows); err != nil {
				return err
			}
		}
	}
}

// join adds a follower of a workspace.
func (l *live) join(ctx context.Context, workspace uuid.UUID) (news chan []told, leave func(), err error) {
	head, err := l.log.Head(ctx)
	if err != nil {
		return nil, nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.topics[workspace]
	if t == nil {
		running, stop := context.WithCancel(context.WithoutCancel(ctx))
		t = &topic{followers: map[chan []told]bool{}, stop: stop}
		l.topics[workspace] = t
		go l.run(readmodels.WithFreshness(running, &readmodels.Freshness{}), workspace, t, head)
	}
	news = make(chan []told, waiting)
	t.followers[news] = true
	return news, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if t.followers[news] {
			l.drop(workspace, t, news)
		}
	}, nil
}

// drop ends a follower, and the topic with its last one.
func (l *live) drop(workspace uuid.UUID, t *topic, news chan []told) {
	delete(t.followers, news)
	close(news)
	if len(t.followers) == 0 {
		t.stop()
		if l.topics[workspace] == t {
			delete(l.topics, workspace)
		}
	}
}

// run reads what is new in a workspace, and hands it out. Where it cannot go on, its followers end and come again.
func (l *live) run(ctx context.Context, workspace uuid.UUID, t *topic, after event.Position) {
	prefix := message.Kind.Category() + "-"
	_ = l.log.Follow(ctx, after, func(events []event.Stored) error { //nolint:errcheck // the followers learn of it by their end
		at := event.Position(0)
		for _, e := range events {
			if strings.HasPrefix(e.Stream, prefix) {
				at = e.Position
			}
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
				l.hand(workspace, t, rows)
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
	for news := range t.followers {
		l.drop(workspace, t, news)
	}
}

// hand gives rows to all followers of a topic.
func (l *live) hand(workspace uuid.UUID, t *topic, rows []told) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for news := range t.followers {
		select {
		case news <- rows:
		default:
			l.drop(workspace, t, news)
		}
	}
}
