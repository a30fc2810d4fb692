// Package webhooks receives the calls of providers. It checks the proof of a call on the raw bytes, records the call, and responds with 200
// and no body. The endpoint's handler makes the effect in the background.
package webhooks

import (
	"context"
	"io"
	"mime"
	"net/http"
	"net/netip"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"bahi/commands/inbox"
	"bahi/domain/fault"
	"bahi/http/api"
)

// MaxBody is the size of the largest body (D49).
const MaxBody = 2 << 20

// limit is the group of the rate limit of calls without a valid proof (D47).
const limit = "webhooks"

// ErrUnverified refuses a call with a missing or wrong signature.
var ErrUnverified = fault.New(fault.Unauthorized, "Webhook proof missing or wrong")

// verified returns the result of a proof that belongs to the deployment.
func verified(ok bool) (about string, err error) {
	if !ok {
		err = ErrUnverified
	}
	return "", err
}

// Endpoint is a path that a provider calls.
type Endpoint struct {
	ID      string // id of the operation; permanent, because it is part of the calls' keys
	Path    string // with {channelId}, each channel has its own calls
	Summary string

	// Handshake returns the response to the GET request with which a provider checks the endpoint's address. Nil: the provider sends none. The
	// ID of its operation is the endpoint's with greet in place of receive.
	Handshake func(r *http.Request) (answer, contentType string, err error)

	// Verify returns an error unless every configured proof of the call is right. It returns the owner of the proof: the channel in the path,
	// channels with their own secret, or "" for the deployment. It must compare in constant time.
	Verify func(r *http.Request, from netip.Addr, body []byte) (about string, err error)

	// Key returns a text that identifies a call, such as the provider's id of the event. All repetitions of a call have the same key. If it
	// returns "", or is nil, the key is the hash of the body. The body may be any bytes.
	Key func(contentType string, body []byte) string

	KeyHeader string // header with the key, which takes precedence over Key; empty: none

	// Handle executes a call.
	Handle inbox.Handler
}

// receiver records calls.
type receiver interface {
	// Receive records a call, and reports whether it was recorded before.
	Receive(ctx context.Context, in inbox.Incoming) (repeated bool, err error)
	// Backlogs returns the numbers of unhandled calls by endpoint.
	Backlogs(ctx context.Context) ([]inbox.Backlog, error)
}

// Routes registers the endpoints.
type Routes struct {
	API       *api.API
	Inbox     receiver
	Endpoints []Endpoint
	Metrics   prometheus.Registerer // nil: none
}

// Handlers returns the endpoints' handlers by their IDs.
func Handlers(endpoints []Endpoint) map[string]inbox.Handler {
	all := map[string]inbox.Handler{}
	for _, e := range endpoints {
		all[e.ID] = e.Handle
	}
	return all
}

// Register registers the operations of all endpoints.
func (r *Routes) Register() {
	m := r.metrics()
	for _, e := range r.Endpoints {
		r.register(e, m)
	}
}

// perChannel is the variable in paths of channels.
const perChannel = "{channelId}"

func (r *Routes) register(e Endpoint, m *metrics) {
	op := api.Op{
		ID: e.ID, Method: "POST", Path: e.Path, Summary: e.Summary, Tags: []string{"Webhooks"},
		Public: true, NoKey: true, Limit: limit, Refusals: true, MaxBody: MaxBody, Status: http.StatusOK, Errors: []int{http.StatusUnauthorized},
	}
	if !strings.Contains(e.Path, perChannel) {
		api.Handle(r.API, op, func(ctx context.Context, in *struct{ RawBody []byte }) (*struct{}, error) {
			return r.receive(ctx, e, m, in.RawBody)
		})
		r.greet(e, op)
		return
	}
	api.Handle(r.API, op, func(ctx context.Context, in *struct {
		Channel string `path:"channelId" doc:"ID of the channel"`
		RawBody []byte
	}) (*struct{}, error) {
		return r.receive(ctx, e, m, in.RawBody)
	})
	r.greet(e, op)
}

// greet registers the endpoint's handshake.
func (r *Routes) greet(e Endpoint, op api.Op) {
	if e.Handshake == nil {
		return
	}
	op.ID, op.Method, op.Summary, op.MaxBody = "greet"+strings.TrimPrefix(e.ID, "receive"), "GET",
		"Confirm the webhook endpoint to a provider", 0
	op.Errors = []int{http.StatusForbidden}
	greet := func(ctx context.Context) (api.Content, error) {
		request, _ := api.Sender(ctx)
		answer, kind, err := e.Handshake(request)
		if err != nil || request.URL.Query().Has("crc_token") { // the response is signed, but any client can choose the token
			if tooMany := api.Count(ctx, limit); tooMany != nil {
				err = tooMany
			}
		}
		if err != nil {
			return api.Content{}, err
		}
		return api.Content{Type: kind, Write: func(_ context.Context, w io.Writer) error {
			_, err := io.WriteString(w, answer)
			return err
		}}, nil
	}
	if !strings.Contains(e.Path, perChannel) {
		api.Download(r.API, op, map[string]any{"text/plain": nil},
			func(ctx context.Context, _ *struct{}) (api.Content, error) { return greet(ctx) })
		return
	}
	api.Download(r.API, op, map[string]any{"application/json": SignedToken{}}, func(ctx context.Context, _ *struct {
		Channel string `path:"channelId" doc:"ID of the channel"`
	},
	) (api.Content, error) {
		return greet(ctx)
	})
}

func (r *Routes) receive(ctx context.Context, e Endpoint, m *metrics, body []byte) (*struct{}, error) {
	request, from := api.Sender(ctx)
	about, err := e.Verify(request, from, body)
	if err != nil {
		m.refused.WithLabelValues(e.ID).Inc()
		if tooMany := api.Count(ctx, limit); tooMany != nil {
			return nil, tooMany
		}
		return nil, err
	}
	kind := contentType(request.Header)
	call := inbox.Incoming{Endpoint: e.ID, ResourceID: about, ContentType: kind, Body: body}
	if e.KeyHeader != "" {
		call.Key = request.Header.Get(e.KeyHeader)
	}
	if e.Key != nil && call.Key == "" {
		call.Key = e.Key(kind, body)
	}
	repeated, err := r.Inbox.Receive(ctx, call)
	switch {
	case err != nil:
		return nil, err
	case repeated:
		m.repeated.WithLabelValues(e.ID).Inc()
	default:
		m.received.WithLabelValues(e.ID).Inc()
	}
	return &struct{}{}, nil
}

// contentType returns the type of the body without parameters, "" if it cannot be read.
func contentType(h http.Header) string {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return kind
}
