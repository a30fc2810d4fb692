package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"bahi/domain/fault"
)

// kinds are the statuses of refusals. No other table has them.
var kinds = map[fault.Kind]int{
	fault.Invalid:      http.StatusUnprocessableEntity,
	fault.Malformed:    http.StatusBadRequest,
	fault.Unauthorized: http.StatusUnauthorized,
	fault.Forbidden:    http.StatusForbidden,
	fault.NotFound:     http.StatusNotFound,
	fault.Conflict:     http.StatusConflict,
	fault.Stale:        http.StatusPreconditionFailed,
	fault.Unavailable:  http.StatusServiceUnavailable,
	fault.TooLarge:     http.StatusRequestEntityTooLarge,
	fault.TooMany:      http.StatusTooManyRequests,
	fault.Unsupported:  http.StatusUnsupportedMediaType,
	fault.Upstream:     http.StatusBadGateway,
}

// StatusOf returns the HTTP status of a refusal, 500 for an unknown kind.
func StatusOf(kind fault.Kind) int { return cmp.Or(kinds[kind], http.StatusInternalServerError) }

// statuses have the default code of each status, and the detail of an error that is not a fault.
var statuses = map[int]struct{ code, detail string }{
	http.StatusBadRequest:            {"malformed", "Malformed request"},
	http.StatusUnauthorized:          {"not_authenticated", ""},
	http.StatusForbidden:             {"forbidden", ""},
	http.StatusNotFound:              {"not_found", "Not found"},
	http.StatusMethodNotAllowed:      {"method_not_allowed", "Method not allowed"},
	http.StatusRequestTimeout:        {"timeout", "The request took too long to arrive"},
	http.StatusConflict:              {"conflict", ""},
	http.StatusPreconditionFailed:    {"stale", ""},
	http.StatusRequestEntityTooLarge: {"too_large", "The request body is too large"},
	http.StatusUnsupportedMediaType:  {"unsupported_media_type", "The body must be application/json"},
	http.StatusUnprocessableEntity:   {"invalid", "Validation error"},
	http.StatusTooManyRequests:       {"rate_limited", ""},
	statusClientGone:                 {"client_gone", "The client disconnected"},
	http.StatusInternalServerError:   {"internal", "Internal error"},
	http.StatusBadGateway:            {"provider_refused", ""},
	http.StatusServiceUnavailable:    {"unavailable", ""},
}

// statusClientGone is the status in the log after the client has disconnected. It is never sent.
const statusClientGone = 499

const (
	jsonType    = "application/json"
	problemType = "application/problem+json"
)

// Problem is the body of a refusal (RFC 9457, CONTRACT.md D40).
type Problem struct {
	Detail    string        `json:"detail" doc:"What is wrong, in one sentence"`
	Code      string        `json:"code" doc:"A stable word for programs"`
	Status    int           `json:"status" doc:"HTTP status"`
	Title     string        `json:"title" doc:"Title of the status"`
	Errors    []fault.Field `json:"errors,omitempty" doc:"Faults by field"`
	RequestID string        `json:"request_id" doc:"ID of the request in logs"`

	contentType string
	after       int // Retry-After in seconds; 0: the default of the status
}

// Error is for huma.
func (p *Problem) Error() string { return p.Detail }

// GetStatus is for huma.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType is for huma.
func (p *Problem) ContentType(string) string {
	if p.contentType == "" {
		return problemType
	}
	return p.contentType
}

// ProblemOf returns the problem of a status, with its default code and detail.
func ProblemOf(status int) *Problem {
	known := statuses[status]
	return &Problem{Detail: cmp.Or(known.detail, http.StatusText(status)), Code: cmp.Or(known.code, "error"), Status: status}
}

// problem returns the caller's part of an error, and records the rest for the log.
func (c *call) problem(err error) *Problem {
	p := c.judge(err)
	c.adapt(p)
	c.complement(p)
	return p
}

// adapt sets a status of a problem that is special to this operation.
func (c *call) adapt(p *Problem) {
	if c.op == nil {
		return
	}
	switch {
	case c.op.FieldErrorStatus != 0 && p.Status == http.StatusUnprocessableEntity && len(p.Errors) > 0 && p.Code == statuses[p.Status].code:
		p.Status = c.op.FieldErrorStatus
	case c.op.Unstored != "" && (p.Status == http.StatusServiceUnavailable || p.Status == http.StatusInternalServerError):
		p.Detail, p.Code, p.Status, p.after = c.op.Unstored, "internal", http.StatusInternalServerError, max(p.after, retryUnstored)
	}
}

// retryUnstored is the Retry-After in seconds if the log is unreachable.
const retryUnstored = 1

func (c *call) judge(err error) *Problem {
	if c.over != nil {
		return c.over
	}
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return ofFault(f)
	}
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	c.cause = cmp.Or(c.cause, err)
	switch {
	case errors.Is(err, context.Canceled) && c.r.Context().Err() != nil:
		return ProblemOf(statusClientGone)
	case errors.Is(err, context.DeadlineExceeded):
		return ofFault(errTooLong)
	}
	if c.api.config.Classify != nil {
		if f := c.api.config.Classify(err); f != nil {
			return ofFault(f)
		}
	}
	return ProblemOf(http.StatusInternalServerError)
}

var errTooLong = fault.New(fault.Unavailable, "It took too long, try again")

func ofFault(f *fault.Error) *Problem {
	if kinds[f.Kind] == 0 {
		return ProblemOf(http.StatusInternalServerError)
	}
	p := ProblemOf(kinds[f.Kind])
	p.Detail, p.Code, p.Errors, p.after = f.Detail, cmp.Or(f.Code, p.Code), f.Fields[:min(len(f.Fields), maxWrong)], f.RetryAfter
	return p
}

// complement adds the common members of all problems, and their headers.
func (c *call) complement(p *Problem) {
	c.code, c.refused = p.Code, p
	p.Title = http.StatusText(p.Status)
	p.RequestID = c.request.RequestID
	p.contentType = problemType
	if accept := strings.Join(c.r.Header["Accept"], ","); strings.Contains(accept, jsonType) && !strings.Contains(accept, problemType) {
		p.contentType = jsonType
	}
	h := c.Header()
	switch p.Status {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", "Bearer")
	case http.StatusServiceUnavailable:
		h.Set("Retry-After", "1")
	case http.StatusRequestTimeout, http.StatusRequestEntityTooLarge:
		h.Set("Connection", "close") // the rest of the body is unread
	}
	if p.after > 0 {
		h.Set("Retry-After", strconv.Itoa(p.after))
	}
}

// refuse sends the refusal for an error.
func (c *call) refuse(err error) {
	p := c.problem(err)
	c.Header().Set("Content-Type", p.contentType)
	c.Header().Set("Cache-Control", "no-store")
	c.WriteHeader(p.Status)
	_ = json.NewEncoder(c).Encode(p) //nolint:errchkjson // the client may have disconnected
}

// setGlobals makes huma use Bahi's form of problems, and document lists as not nullable. huma has global variables for that, so they are
// set once. The call has all data that differ between APIs.
var setGlobals = sync.OnceFunc(func() {
	huma.DefaultArrayNullable = false
	huma.NewError = func(status int, _ string, _ ...error) huma.StatusError { return ProblemOf(status) }
	huma.NewErrorWithContext = func(ctx huma.Context, status int, msg string, errs ...error) huma.StatusError {
		p := fromHuma(status, errs)
		if c := callOf(ctx.Context()); c.api != nil {
			if status >= http.StatusInternalServerError && p.Status >= http.StatusInternalServerError {
				c.cause = errors.Join(append([]error{errors.New(msg)}, errs...)...)
			}
			for i, f := range p.Errors {
				p.Errors[i].Field = cmp.Or(c.op.vars[f.Field], f.Field)
			}
			if p.Status == http.StatusUnprocessableEntity {
				p.Errors = append(p.Errors, c.others()...)
			}
			c.complement(p)
		}
		return p
	}
})

// fromHuma converts huma's error to Bahi's texts. It drops the rejected values that huma adds, because they may be passwords.
func fromHuma(status int, errs []error) *Problem {
	p := ProblemOf(status)
	for _, err := range errs {
		detailed, ok := err.(huma.ErrorDetailer)
		if !ok || status >= http.StatusInternalServerError {
			continue
		}
		d := detailed.ErrorDetail()
		_, where, _ := strings.Cut(d.Location, ".")
		p.Errors = append(p.Errors, fault.Field{Field: cmp.Or(where, d.Location), Message: wording(d.Message)})
	}
	return p
}

// wording removes quoted input from a parser's message.
func wording(message string) string {
	switch {
	case strings.HasPrefix(message, "required "):
		return "is required"
	case message == "invalid integer":
		return "expected a whole number"
	case strings.HasPrefix(message, "invalid value: ") && (strings.Contains(message, "UUID") || strings.Contains(message, "urn")):
		return wantUUID
	case strings.HasPrefix(message, "invalid value: parsing time"):
		return wantTime
	}
	return strings.TrimPrefix(message, "invalid value: ")
}
