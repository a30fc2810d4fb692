package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/gorilla/mux"

	"bahi/domain/actor"
	"bahi/readmodels"
)

// Mount serves a path and everything below it without an operation, by any method and to everybody: the handler itself decides
// who may use it. Logs and metrics use the name for its requests. The context is ready for [At], [Authenticate]
// and [Count].
func (a *API) Mount(name, path string, handler http.Handler) {
	o := &operation{Op: Op{ID: name, Method: "ANY", Path: path, Status: http.StatusOK}}
	o.metrics = a.metrics.of(o)
	a.router.MatcherFunc(func(r *http.Request, _ *mux.RouteMatch) bool {
		return r.URL.Path == path || strings.HasPrefix(r.URL.Path, path+"/")
	}).HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, _ := w.(*call)
		c.op = o
		c.ctx = context.WithValue(r.Context(), callKey{}, c)
		if a.tracer != nil {
			c.trace()
		}
		c.fresh = &readmodels.At{}
		ctx, cancel := c.timeout(c.ctx)
		defer cancel()
		handler.ServeHTTP(c, r.WithContext(ctx))
	})
}

// Authenticate finds the owner of a request's credential, for handlers that do not get it as operations do. An invalid
// credential counts for the request's address, as in an operation. The returned context has the actor's
// [Request].
func Authenticate(ctx context.Context, bearer string) (context.Context, actor.Actor, error) {
	c := callOf(ctx)
	if c == nil {
		return ctx, actor.Actor{}, ErrNotAuthenticated
	}
	if err := c.identify(bearer); err != nil {
		return ctx, actor.Actor{}, err
	}
	return c.withRequest(ctx), c.request.Actor, nil
}

// Failed logs why a handler that answers by itself has failed.
func Failed(ctx context.Context, cause error) {
	if c := callOf(ctx); c != nil {
		c.cause = cause
	}
}
