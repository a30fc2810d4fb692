package api

import (
	"bytes"
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"
)

// Response is the answer of an operation to a request from inside the process.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Inside runs an operation for the caller of the request that ctx belongs to, see [Authenticate] and [Enter]. The operation
// checks permissions, limits, keys and revisions as it does for a request from outside.
func (a *API) Inside(ctx context.Context, r *http.Request) Response {
	r = r.WithContext(ctx)
	written := &answerWriter{header: http.Header{}}
	outer := callOf(ctx)
	if outer != nil { // limits count its address
		r.RemoteAddr = outer.r.RemoteAddr
		r.Header["X-Request-Id"] = []string{outer.request.RequestID}
		if forwarded := outer.r.Header["X-Forwarded-For"]; forwarded != nil {
			r.Header["X-Forwarded-For"] = forwarded
		}
	}
	a.serve(&call{ResponseWriter: written, api: a, outer: outer, started: time.Now()}, r)
	return Response{Status: written.status, Header: written.header, Body: written.body.Bytes()}
}

// Enter moves the authenticated caller of a handler that [API.Mount] serves to another workspace.
func Enter(ctx context.Context, workspace uuid.UUID) (context.Context, error) {
	c := callOf(ctx)
	if c == nil {
		return ctx, ErrNotAuthenticated
	}
	if err := c.enterWorkspace(workspace); err != nil {
		return ctx, err
	}
	return c.withRequest(ctx), nil
}

// answerWriter holds an answer in memory. Pages ask for one page of a list at a time, which bounds it.
type answerWriter struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *answerWriter) Header() http.Header         { return w.header }
func (w *answerWriter) Write(b []byte) (int, error) { return w.body.Write(b) }
func (w *answerWriter) WriteHeader(status int)      { w.status = status }
func (w *answerWriter) Flush()                      {} // the answer is read when it is complete
