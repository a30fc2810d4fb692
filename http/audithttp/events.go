package audithttp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/google/uuid"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/http/api"
	"bahi/readmodels"
	"bahi/readmodels/auditview"
	"bahi/readmodels/opsview"
)

// Filter narrows the events.
type Filter struct {
	Stream    string                  `query:"stream"    maxLength:"512" doc:"A stream, such as bankrow-12"`
	Category  string                  `query:"category"  maxLength:"512" doc:"The name of a stream up to its first dash, such as bankrow"`
	Type      string                  `query:"type"      maxLength:"512" doc:"Such as BankRowAdded"`
	Actor     string                  `query:"actor"     maxLength:"512" doc:"Actor, such as user:<id>"`
	Workspace api.Optional[uuid.UUID] `query:"workspace" doc:"ID of a workspace; for operators only; absent: all workspaces"`
}

func (f Filter) view(ctx context.Context) (v opsview.Filter, in uuid.UUID, err error) {
	of, in, err := scope(ctx, f.Workspace)
	return opsview.Filter{Stream: f.Stream, Category: f.Category, Type: f.Type, Actor: f.Actor, Workspace: of}, in, err
}

// Range is a part of the log.
type Range struct {
	Filter

	From     int64  `query:"from_position" minimum:"0" maximum:"4611686018427387904" doc:"First position"`
	FromTime string `query:"from_time" maxLength:"64" doc:"Recorded at this RFC 3339 moment or later"`
	To       int64  `query:"to_position" minimum:"0" maximum:"4611686018427387904" doc:"Last position; absent: the log's end"`
	ToTime   string `query:"to_time"   maxLength:"64" doc:"Recorded at this RFC 3339 moment or before"`
	Newest   bool   `query:"newest_first" doc:"Newest first; the next page has older events"`
	Limit    int    `query:"limit" default:"100" minimum:"1" maximum:"1000" doc:"Events of a page"`
}

// next returns the address of the page that begins at a position.
func (r Range) next(at event.Position) string {
	from, to := strconv.FormatUint(uint64(at), 10), strconv.FormatInt(r.To, 10)
	q := url.Values{"limit": {strconv.Itoa(r.Limit)}}
	if r.Newest {
		from, to = strconv.FormatInt(r.From, 10), from
		q.Set("newest_first", "true")
	}
	if from != "0" {
		q.Set("from_position", from)
	}
	if to != "0" {
		q.Set("to_position", to)
	}
	for name, value := range map[string]string{
		"stream": r.Stream, "category": r.Category, "type": r.Type, "actor": r.Actor, "from_time": r.FromTime, "to_time": r.ToTime,
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if r.Workspace.Set {
		q.Set("workspace", r.Workspace.Value.String())
	}
	return fmt.Sprintf(`</audit/events?%s>; rel="next"`, q.Encode())
}

// trail registers the operations that list and follow the log's events.
func (r *Routes) trail() {
	r.follow()
	api.Handle(r.API, api.Op{
		ID: "list-events", Method: "GET", Path: "/audit/events",
		Summary: "List the events of the log. Oldest first unless newest_first. " +
			"A page reads a bounded part of the log, so a short or empty page may still link to a next one.",
		Tags: tags, Area: area, Limit: limit, Reads: []string{"log"}, StrictQuery: true,
	}, func(ctx context.Context, in *Range) (*struct {
		Link string `header:"Link" doc:"The next page (RFC 8288); absent on the last"`
		Body []auditview.Event
	}, error) {
		f, workspace, err := in.view(ctx)
		if err != nil {
			return nil, err
		}
		if f.From, err = moment("from_time", in.FromTime); err != nil {
			return nil, err
		}
		if f.To, err = moment("to_time", in.ToTime); err != nil {
			return nil, err
		}
		if f.From != nil && f.To != nil && f.From.After(*f.To) {
			return nil, fault.Wrong("from_time", "must not be after to_time")
		}
		f.After = event.Position(max(in.From-1, 0))
		if in.To > 0 {
			f.Before = event.Position(in.To) + 1
		}
		head, err := r.Events.Log.Head(ctx)
		if err == nil {
			err = api.At(ctx).ReadLog(head)
		}
		if err == nil && f.After > head {
			err = readmodels.ErrBeyondHead
		}
		if err != nil {
			return nil, err
		}
		read := r.Events.Page
		if in.Newest {
			read = r.Events.PageBack
		}
		page, err := read(ctx, workspace, f, in.Limit)
		if err != nil {
			return nil, err
		}
		out := &struct {
			Link string `header:"Link" doc:"The next page (RFC 8288); absent on the last"`
			Body []auditview.Event
		}{Body: page.Events}
		if page.More {
			out.Link = in.next(page.Next)
		}
		return out, nil
	})
}

// passed reports the progress of a stream that found no event.
type passed struct {
	Position event.Position `json:"position" doc:"Position of the last event that was examined"`
}

const (
	progressInterval = 10 * time.Second // report progress after so long without an event
	progressAfter    = 20_000           // or after so many events
)

func (r *Routes) follow() {
	api.Stream(r.API, api.Op{
		ID: "follow-events", Method: "GET", Path: "/audit/events/stream",
		Summary: "Stream the log's events as they are written. Last-Event-ID or from_position sets the start.",
		Tags:    tags, Area: area, Limit: limit, StrictQuery: true,
	}, map[string]any{"event": auditview.Event{}, "passed": passed{}}, func(ctx context.Context, in *struct {
		Filter

		From  api.Optional[int64] `query:"from_position" minimum:"0" maximum:"4611686018427387904" doc:"First position; absent: only new events"`
		Limit int64               `query:"limit" minimum:"0" doc:"End after so many events; absent: never"`
		Last  string              `header:"Last-Event-ID" doc:"Position of the last event that was seen; overrides from_position"`
	}) (api.Source, error) {
		f, workspace, err := in.view(ctx)
		if err != nil {
			return nil, err
		}
		head, err := r.Events.Log.Head(ctx)
		if err != nil {
			return nil, err
		}
		after := head
		if in.From.Set {
			after = event.Position(max(in.From.Value-1, 0))
		}
		if in.Last != "" {
			n, err := strconv.ParseUint(in.Last, 10, 63)
			if err != nil {
				return nil, errLast
			}
			after = event.Position(n)
		}
		if after > head {
			return nil, readmodels.ErrBeyondHead
		}
		return func(ctx context.Context, send func(api.Event) error) error {
			t := tailing{views: r.Events, filter: f, workspace: workspace, send: send, sentAt: time.Now(), at: after, left: in.Limit}
			from, err := after, error(nil)
			if after < head {
				from, err = t.catchUp(ctx, after)
			}
			if err == nil {
				err = r.Feed.Follow(ctx, from, func(events []event.Stored) error { return t.take(ctx, events) })
			}
			if errors.Is(err, errEnough) {
				err = nil
			}
			return err
		}, nil
	})
}

// tailing is a running stream.
type tailing struct {
	views     *auditview.Events
	filter    opsview.Filter
	workspace uuid.UUID
	send      func(api.Event) error
	ready     [][]byte // events to send

	sentAt time.Time // time of the last message to the client about a position, which is at
	at     event.Position
	left   int64 // events until the stream ends; 0: no end
}

var errEnough = errors.New("the client has all requested events")

// catchUpPage is the number of events that a stream reads at once while it catches up.
const catchUpPage = 200

// catchUp sends the matching events after a position, and returns the position up to which it searched. The search skips
// other workspaces' events; a stream that begins long ago would otherwise read them all.
func (t *tailing) catchUp(ctx context.Context, after event.Position) (event.Position, error) {
	f := t.filter
	for f.After = after; ; {
		page, err := t.views.Page(ctx, t.workspace, f, catchUpPage)
		if err != nil {
			return 0, err
		}
		for _, e := range page.Events {
			if err = t.found(e); err != nil {
				break
			}
		}
		if err == nil {
			err = t.passed(page.Upto)
		}
		if err := cmp.Or(t.flush(), err); err != nil {
			return 0, err
		}
		if f.After = page.Upto; !page.More {
			return page.Upto, nil
		}
	}
}

func (t *tailing) take(ctx context.Context, events []event.Stored) error {
	var err error
	for i := 0; i < len(events) && err == nil; i++ {
		if e := events[i]; t.filter.Matches(e) {
			err = t.found(t.views.Show(ctx, t.workspace, e))
		} else {
			err = t.passed(e.Position)
		}
	}
	return cmp.Or(t.flush(), err, ctx.Err())
}

// found writes an event. It returns errEnough after the last requested event.
func (t *tailing) found(e auditview.Event) error {
	err := t.sendAt("event", e.Position, e)
	if t.left--; err == nil && t.left == 0 {
		err = errEnough
	}
	return err
}

// passed reports progress to the client at intervals.
func (t *tailing) passed(at event.Position) error {
	if at < t.at+progressAfter && time.Since(t.sentAt) < progressInterval {
		return nil
	}
	return t.sendAt("passed", at, passed{at})
}

func (t *tailing) sendAt(name string, at event.Position, what any) error {
	t.sentAt, t.at = time.Now(), at
	text, err := api.EncodeEvent(name, strconv.FormatUint(uint64(at), 10), what)
	if err == nil {
		t.ready = append(t.ready, text)
	}
	return err
}

// flush sends the ready events together: a write for each event would cost more than the event.
func (t *tailing) flush() error {
	if len(t.ready) == 0 {
		return nil
	}
	all := t.ready
	t.ready = nil
	return t.send(api.Event{Encoded: all})
}
