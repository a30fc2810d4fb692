package api

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/trace"

	"bahi/commands"
	"bahi/domain/actor"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/readmodels"
)

// call is one request with its state and its response. It implements the ResponseWriter that the router passes on, so code with the
// ResponseWriter also has the call.
type call struct {
	http.ResponseWriter

	api     *API
	op      *operation // nil before routing
	r       *http.Request
	ctx     context.Context //nolint:containedctx // the call is the request, and lives as long
	started time.Time

	request commands.Request
	fresh   *readmodels.At // nil: its reads are not reported
	body    []byte         // nil if huma reads it, or if the request has none
	print   *fingerprint   // nil without a key
	file    File           // file of a form
	wrong   []fault.Field  // faults found so far
	unsure  []string       // fields that rules must not report, see decode

	head    bool  // HEAD: net/http drops the body
	outer   *call // the outer request; nil: the request is from outside of the process
	counted bool  // an inner read was counted, see limit
	cookie  bool  // the cookie identified the caller
	page    bool  // a browser opens the address: a problem becomes a page
	again   bool  // recheck of a stream's caller, which does not count as a guess
	prefers bool  // Prefer: return=representation
	later   bool  // Prefer: respond-async
	applied bool  // the handler obeyed the preference

	expensive bool // the request waits for a turn

	over *Problem // refusal by the rate limit; a valid token lifts it, see [Op.Proof]

	wrote    event.Position
	replayed bool

	answering *spool // the buffered response; nil: it is sent while it is written

	status  int
	code    string   // code of the problem in the response
	refused *Problem // that becomes a page
	sent    bool
	bytes   int64
	cause   error // internal cause, which the response hides
	stack   []byte
	span    trace.Span
}

type callKey struct{}

// callOf returns the call of a context; outside of a request, one without an API.
func callOf(ctx context.Context) *call {
	if c, known := ctx.Value(callKey{}).(*call); known {
		return c
	}
	return &call{r: &http.Request{URL: &url.URL{}}}
}

// Caller returns the caller; the zero Actor in public operations.
func Caller(ctx context.Context) actor.Actor { return callOf(ctx).request.Actor }

// requestKey is the context's key of the request.
type requestKey struct{}

// withRequest returns the handler's context.
func (c *call) withRequest(ctx context.Context) context.Context {
	return context.WithValue(ctx, requestKey{}, c.request)
}

// Request returns the request's data for commands. It returns the zero Request outside of handlers.
func Request(ctx context.Context) commands.Request {
	r, _ := ctx.Value(requestKey{}).(commands.Request)
	return r
}

// Sender returns the HTTP request and the address of its client. It is for operations that check signatures instead of credentials, or that
// read the whole query.
func Sender(ctx context.Context) (*http.Request, netip.Addr) {
	c := callOf(ctx)
	return c.r, c.peer()
}

// peer returns the address of the client.
func (c *call) peer() netip.Addr { return wholeAddress(c.r, c.api.config.Limiting.Proxies) }

// Prefers reports whether the caller requests the whole record in the response (Prefer: return=representation). A handler that calls it
// must obey it.
func Prefers(ctx context.Context) bool {
	c := callOf(ctx)
	c.applied = c.applied || c.prefers
	return c.prefers
}

// PrefersLater reports whether the caller requests a response before the work is done (Prefer: respond-async, RFC 7240).
func PrefersLater(ctx context.Context) bool { return callOf(ctx).later }

// At returns the freshness that the request requires of its reads. The reads also report to it. It is nil outside of a request, and if the
// operation has no Reads.
func At(ctx context.Context) *readmodels.At { return callOf(ctx).fresh }

// SetWriteHeaders sets the headers of a write: the log position of the write's last event, and whether the outcome is that of an earlier
// request with the same Idempotency-Key. It sets none in a dry run. See [WriteResult].
func SetWriteHeaders(ctx context.Context, position event.Position, replayed bool) {
	if c := callOf(ctx); !c.request.DryRun {
		c.wrote, c.replayed = position, replayed
	}
}

// WriteHeader stores the status until the first byte, so that a failed encoding can still become a problem.
func (c *call) WriteHeader(status int) {
	if c.sent {
		return
	}
	c.status = status
}

// Write sends the bytes, and before the first ones the head. It drops a problem that becomes a page.
func (c *call) Write(b []byte) (int, error) {
	if c.page && c.refused != nil {
		return len(b), nil //nolint:nilerr // the page has the problem
	}
	c.send()
	n, err := c.ResponseWriter.Write(b)
	c.bytes += int64(n)
	return n, err
}

// FlushError sends the buffered bytes.
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
	c.status = cmp.Or(c.status, http.StatusOK)
	if c.request.DryRun && c.status < http.StatusMultipleChoices {
		c.status = http.StatusOK
	}
	h := c.Header()
	if c.cookie && h["Content-Security-Policy"] == nil && h.Get("Content-Type") != "application/pdf" {
		h.Set("Content-Security-Policy", sandbox)
	}
	if position, stale, known := c.complete(); known {
		h.Set("Bahi-Position", strconv.FormatUint(uint64(position), 10))
		if stale {
			h.Set("Warning", `110 - "Response is Stale"`)
			h.Set("Bahi-Stale", "true")
		}
	}
	if c.replayed {
		h.Set("Idempotency-Replayed", "true")
	}
	if c.applied && c.status < http.StatusMultipleChoices {
		h.Set("Preference-Applied", "return=representation")
	}
	c.ResponseWriter.WriteHeader(c.status)
}

// complete returns the position up to which the response is complete: the position of the write, or else of the reads.
func (c *call) complete() (position event.Position, stale, known bool) {
	position, known = c.fresh.Position()
	stale = known && c.fresh.Stale()
	if c.wrote != 0 {
		return c.wrote, stale, true
	}
	return position, stale, known
}

// A 422 lists every fault of a request (CONTRACT.md 0.8). There are three sources of faults: headers and query, the body, and the rules of
// the domain. [call.wrong] collects the first two; [call.rules] adds the third.

// noted collects faults of fields. It returns any other error, which ends the request.
func (c *call) noted(err error) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Kind != fault.Invalid || f.Code != "" || len(f.Fields) == 0 {
		return err
	}
	c.wrong = append(c.wrong, f.Fields...)
	return nil
}

// decode fills the input with body and file. It returns the faults of the request, or nil.
func (c *call) decode(in reflect.Value, try func(context.Context) error) error {
	o := c.op
	if o.file != nil {
		in.FieldByIndex(o.file).Set(reflect.ValueOf(c.file))
	}
	if o.body != nil {
		if err := c.noted(c.decodeBody(in)); err != nil {
			return err
		}
	}
	if c.wrong == nil {
		return nil
	}
	return fault.Fields(append(c.wrong, c.rules(try)...)...)
}

// decodeBody fills the input's Body.
func (c *call) decodeBody(in reflect.Value) (err error) {
	b := c.op.body
	switch {
	case len(c.body) > 0:
		c.unsure, err = b.decode(c.body, in.FieldByIndex(b.index))
	case b.required:
		err = errNoBody
	}
	return err
}

// others returns the faults of headers and body. It is for a request with a path or query that huma has refused.
func (c *call) others() []fault.Field {
	if c.op.body != nil && c.body != nil {
		_ = c.noted(c.decodeBody(reflect.New(c.op.input).Elem())) // the response is huma's refusal in any case
	}
	return c.wrong
}

// rules returns the faults that the operation's rules find in the readable part of the request. It runs the operation without a write. It
// drops a fault if the same field, or a field in or around it, was unreadable, because the rule has seen an empty value. It also drops the
// fault of an absent field if the object has an unknown field, which may be the same field misspelt.
func (c *call) rules(try func(context.Context) error) (found []fault.Field) {
	if !c.op.tried() || len(c.wrong) >= maxWrong {
		return nil
	}
	defer func() {
		if p := recover(); p != nil { // the earlier faults are still reported
			c.panicked(p)
		}
	}()
	c.request.DryRun, c.request.Key = c.op.DryRun, ""
	ctx, cancel := context.WithTimeout(c.withRequest(commands.Trial(c.ctx)), c.timeout())
	defer cancel()
	f, ok := errors.AsType[*fault.Error](try(ctx))
	c.wrote, c.replayed = 0, false
	if !ok || !f.Listed() && f.Kind != fault.Malformed {
		return nil
	}
	for _, field := range f.Fields {
		if !c.unread(field) {
			found = append(found, field)
		}
	}
	return found
}

// tried reports whether the rules are tried on a request with faults.
func (o *operation) tried() bool {
	return o.DryRun || o.write() && o.file == nil && !o.Operator && !o.Untried
}

// unread reports whether a field that decides about a rule's fault was unreadable: one of [fault.Field.Of], or a field in or around it.
// Without these, it is the fault's own field.
func (c *call) unread(f fault.Field) bool {
	of := f.Of
	if of == nil {
		of = []string{f.Field}
	}
	return slices.ContainsFunc(c.wrong, func(known fault.Field) bool {
		return known.Message != unknownField && (known.Field == wholeBody || slices.ContainsFunc(of, func(field string) bool {
			return fault.Within(known.Field, field) || fault.Within(field, known.Field)
		}))
	}) || slices.ContainsFunc(c.unsure, func(absent string) bool { return fault.Within(f.Field, absent) })
}
