package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/gorilla/mux"

	"bahi/domain/actor"
	"bahi/readmodels"
)

// Mount serves what is no operation at a path and everywhere below it, by whatever method and to
// everybody: the handler itself says who may. Logs and metrics know its requests by the name. The context that
// it gets is ready for readmodels, for [Authenticate] and for [Count].
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
		ctx, cancel := c.timeout(readmodels.WithFreshness(c.ctx, &c.fresh))
		defer cancel()
		handler.ServeHTTP(c, r.WithContext(ctx))
	})
}

// Authenticate finds out who a request bears the credential of, for handlers that are given it in another
// way than operations are. A credential that opens nothing counts for the request's address, as an
// operation's does. The context that it returns has the actor's [Request].
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

// Failed tells the log why a handler that answers by itself could not do what it was asked.
func Failed(ctx context.Context, cause error) {
	if c := callOf(ctx); c != nil {
		c.cause = cause
	}
}
