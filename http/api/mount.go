package api

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/gorilla/mux"

	"bahi/domain/actor"
	"bahi/readmodels"
)

// Mount serves a path and all paths below it without an operation, for any method. The handler itself checks access. name identifies it in
// logs and metrics. The handler's context supports [At], [Authenticate] and [Count].
func (a *API) Mount(name, path string, handler http.Handler) {
	o := &operation{Op: Op{ID: name, Method: "ANY", Path: path, Status: http.StatusOK}}
	a.router.MatcherFunc(func(r *http.Request, _ *mux.RouteMatch) bool {
		return r.URL.Path == path || strings.HasPrefix(r.URL.Path, path+"/")
	}).HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, _ := w.(*call)
		c.op = o
		c.begin()
		c.fresh = &readmodels.At{}
		ctx, cancel := context.WithTimeout(c.ctx, c.within())
		defer cancel()
		handler.ServeHTTP(c, r.WithContext(ctx))
	})
}

// Authenticate finds the owner of a request's credential. It is for handlers outside of operations. As in an operation, an invalid
// credential is counted for the request's address. The returned context has the actor's [Request].
func Authenticate(ctx context.Context, bearer string) (context.Context, actor.Actor, error) {
	c := callOf(ctx)
	if c.api == nil {
		return ctx, actor.Actor{}, ErrNotAuthenticated
	}
	if err := c.identify(bearer); err != nil {
		return ctx, actor.Actor{}, err
	}
	return c.withRequest(ctx), c.request.Actor, nil
}

// Failed logs the error of a handler that writes its own response.
func Failed(ctx context.Context, cause error) { callOf(ctx).cause = cause }

// Response is the response to a request from inside the process.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Inside runs an operation for the caller of the request of ctx, see [Authenticate] and [Enter]. The operation checks permissions, limits,
// keys and revisions as for a request from outside.
func (a *API) Inside(ctx context.Context, r *http.Request) Response {
	r = r.WithContext(ctx)
	written := &answerWriter{header: http.Header{}}
	outer := callOf(ctx)
	r.RemoteAddr = outer.r.RemoteAddr // limits count its address
	r.Header["X-Request-Id"] = []string{outer.request.RequestID}
	if forwarded := outer.r.Header["X-Forwarded-For"]; forwarded != nil {
		r.Header["X-Forwarded-For"] = forwarded
	}
	a.serve(&call{ResponseWriter: written, api: a, outer: outer, started: time.Now()}, r)
	return Response{Status: written.status, Header: written.header, Body: written.body.Bytes()}
}

// Enter changes the workspace of the authenticated caller in an [API.Mount] handler.
func Enter(ctx context.Context, workspace uuid.UUID) (context.Context, error) {
	c := callOf(ctx)
	if err := c.enterWorkspace(workspace); err != nil {
		return ctx, err
	}
	return c.withRequest(ctx), nil
}

// answerWriter stores a response in memory. Its size is limited, because pages request one page of a list at a time.
type answerWriter struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *answerWriter) Header() http.Header         { return w.header }
func (w *answerWriter) Write(b []byte) (int, error) { return w.body.Write(b) }
func (w *answerWriter) WriteHeader(status int)      { w.status = status }
func (w *answerWriter) Flush()                      {} // the caller reads the complete response
