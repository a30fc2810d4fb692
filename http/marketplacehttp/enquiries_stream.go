package marketplacehttp

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/google/uuid"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/marketplace/enquiry"
	"bahi/http/api"
	"bahi/readmodels"
	"bahi/readmodels/marketplaceview"
)

const (
	streamPage    = 100              // number of enquiries in one read
	streamTimeout = 30 * time.Second // maximum delay of the tables
)

var errLastEvent = fault.Wrong("Last-Event-ID", "expected the id of an event")

// followEnquiries registers the stream of new enquiries. New events only trigger reads of the tables, so a client that reconnects after a
// long time costs no more than its enquiries.
func (r *Routes) followEnquiries() {
	api.Stream(r.API, enquiryOp("follow-enquiries", "GET", "/stream",
		"Stream new enquiries to the caller's companies. Last-Event-ID resumes the stream."),
		map[string]any{"enquiry": marketplaceview.Enquiry{}}, func(ctx context.Context, in *struct {
			Last string `header:"Last-Event-ID" doc:"ID of the last received event"`
		}) (api.Source, error) {
			head, err := r.Log.Head(ctx)
			if err != nil {
				return nil, err
			}
			t := tail{views: r.Views, workspace: api.Caller(ctx).Workspace, sent: int64(head)}
			if in.Last != "" {
				last, err := strconv.ParseInt(in.Last, 10, 64)
				switch {
				case err != nil || last < 0:
					return nil, errLastEvent
				case last > int64(head):
					return nil, readmodels.ErrBeyondHead
				}
				t.sent = last
			}
			return func(ctx context.Context, send func(api.Event) error) error {
				t.send = send
				if err := t.catchUp(ctx, head); err != nil {
					return err
				}
				return r.Log.Follow(ctx, head, func(events []event.Stored) error { return t.take(ctx, events) })
			}, nil
		})
}

// tail is a running stream.
type tail struct {
	views     *marketplaceview.Views
	workspace uuid.UUID
	send      func(api.Event) error
	sent      int64 // position of the last enquiry
}

// take sends the enquiries of events.
func (t *tail) take(ctx context.Context, events []event.Stored) error {
	for _, e := range events {
		if category, _ := event.SplitStream(e.Stream); category != enquiry.Kind.Category() {
			continue
		}
		r, err := enquiry.Kind.Decode(e)
		if err != nil {
			return err
		}
		if sent, is := r.Data.(enquiry.Sent); is && !sent.Spam && r.Meta.Workspace == t.workspace && int64(e.Position) > t.sent {
			if err := t.catchUp(ctx, e.Position); err != nil {
				return err
			}
		}
	}
	return nil
}

// catchUp sends the enquiries up to a position of the log.
func (t *tail) catchUp(ctx context.Context, to event.Position) error {
	at := &readmodels.At{Min: to, Wait: streamTimeout}
	for {
		rows, err := t.views.EnquiriesAfter(ctx, at, t.workspace, t.sent, streamPage)
		if errors.Is(err, readmodels.ErrPositionTimeout) { // the client reconnects
			return nil
		}
		if err != nil {
			return err
		}
		for _, e := range rows {
			if err := t.send(api.Event{ID: strconv.FormatInt(e.Position, 10), Data: e.Enquiry}); err != nil {
				return err
			}
			t.sent = e.Position
		}
		if len(rows) < streamPage {
			return nil
		}
	}
}
