package api

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"go.opentelemetry.io/otel/trace"

	"bahi/commands"
	"bahi/domain/actor"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/readmodels"
)

// call is one request on its way: what is known of it, and its answer. It is the ResponseWriter that
// the router hands on, so that whoever has one has the other.
type call struct {
	http.ResponseWriter

	api     *API
	op      *operation // nil until a route is found
	r       *http.Request
	ctx     context.Context //nolint:containedctx // the call is the request, and lives as long
	started time.Time
	view    view

	request commands.Request
	fresh   readmodels.Freshness
	body    *bytes.Buffer // nil when huma reads it, or there is none
	print   *fingerprint  // nil without a key
	file    File          // of a form
	wrong   []fault.Field // faults found so far
	unsure  []string      // fields of which no rule can tell, see decode

	head    bool // nobody reads the body
	again   bool // a stream's caller is checked again: nobody guesses
	prefers bool // return=representation
	applied bool // and the handler did

	wrote    event.Position
	replayed bool

	answering *spool // nil: the answer is made while it goes out

	status int
	code   string // of the problem that is answered
	sent   bool
	bytes  int64
	cause  error // of an answer that does not tell it
	stack  []byte
	span   trace.Span
}

type callKey struct{}

func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// Caller answers who asks; the zero Actor in public operations.
func Caller(ctx context.Context) actor.Actor {
	if c := callOf(ctx); c != nil {
		return c.request.Actor
	}
	return actor.Actor{}
}

// requestKey is the context's key of the request.
type requestKey struct{}

// withRequest returns the context that a handler gets.
func (c *call) withRequest(ctx context.Context) context.Context {
	return context.WithValue(ctx, requestKey{}, c.request)
}

// Request returns what commands want to know of the request; the zero Request outside of handlers.
func Request(ctx context.Context) commands.Request {
	r, _ := ctx.Value(requestKey{}).(commands.Request)
	return r
}

// RequestID answers the request's id.
func RequestID(ctx context.Context) string {
	if c := callOf(ctx); c != nil {
		return c.request.RequestID
	}
	return ""
}

// Prefers says whether the caller wants the whole thing back (Prefer: return=representation). A handler
// that asks is taken to do so.
func Prefers(ctx context.Context) bool {
	c := callOf(ctx)
	if c == nil || !c.prefers {
		return false
	}
	c.applied = true
	return true
}

// Wrote sets what the headers tell of a write: the log position of what was written, and whether an earlier request with
// the same Idempotency-Key wrote it. A dry run wrote nothing. See [Written].
func Wrote(ctx context.Context, position event.Position, replayed bool) {
	if c := callOf(ctx); c != nil && !c.request.DryRun {
		c.wrote, c.replayed = position, replayed
	}
}

// WriteHeader keeps the status until something is written, so that an answer that cannot be encoded
// still becomes a problem.
func (c *call) WriteHeader(status int) {
	if c.sent {
		return
	}
	c.status = status
}

// Write sends the head, if it was not, and the bytes.
func (c *call) Write(b []byte) (int, error) {
	c.send()
	n, err := c.ResponseWriter.Write(b)
	c.bytes += int64(n)
	return n, err
}

// FlushError sends what there is.
func (c *call) FlushError() error {
	c.send()
	return http.NewResponseController(c.ResponseWriter).Flush()
}

// Unwrap is for [http.ResponseController].
func (c *call) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *call) send() {
	if c.sent {
		return
	}
	c.sent = true
	if c.status == 0 {
		c.status = http.StatusOK
	}
	if c.request.DryRun && c.status < http.StatusMultipleChoices {
		c.status = http.StatusOK
	}
	h := c.Header()
	if position, stale, known := c.complete(); known {
		h["Bahi-Position"] = []string{strconv.FormatUint(uint64(position), 10)}
		if stale {
			h["Warning"], h["Bahi-Stale"] = staleWarning, trueValue
		}
	}
	if c.replayed {
		h["Idempotency-Replayed"] = trueValue
	}
	if c.applied && c.status < http.StatusMultipleChoices {
		h["Preference-Applied"] = representationApplied
	}
	c.ResponseWriter.WriteHeader(c.status)
}

// Values of headers, made once. The slices are not written to.
var (
	trueValue             = []string{"true"}
	staleWarning          = []string{`110 - "Response is Stale"`}
	representationApplied = []string{"return=representation"}
	noStore               = []string{"no-store"}
	nosniff               = []string{"nosniff"}
	transportSecurity     = []string{"max-age=31536000"} // a year
	retrySoon             = []string{"1"}
	bearerOnly            = []string{"Bearer"}
)

// complete answers up to where the answer is complete: what was written, else what was read.
func (c *call) complete() (position event.Position, stale, known bool) {
	position, known = c.fresh.Position()
	stale = known && c.fresh.Stale()
	if c.wrote != 0 {
		return c.wrote, stale, true
	}
	return position, stale, known
}

// humaContext only keeps the embedded field from having a method's name.
type humaContext huma.Context

// view is the call as huma sees it.
type view struct {
	humaContext

	call *call
}

// Context is the call's, which the steps have added to.
func (v *view) Context() context.Context { return v.call.ctx }

// BodyReader answers an empty body when ours is read already.
func (v *view) BodyReader() io.Reader {
	if v.call.op.body != nil || v.call.op.file != nil {
		return http.NoBody
	}
	return v.call.r.Body
}

// Unwrap is for the adapter's own Unwrap.
func (v *view) Unwrap() huma.Context { return v.humaContext }
