package api

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/gorilla/mux"

	"bahi/domain/actor"
	"bahi/domain/fault"
	"bahi/readmodels"
)

// Authenticator authenticates callers by their bearer tokens. It returns [ErrNotAuthenticated], or another fault, for an invalid token.
// After any other error, the token may be valid.
type Authenticator interface {
	Authenticate(ctx context.Context, bearer string) (actor.Actor, error)
}

// Credential is a kind of bearer token.
type Credential struct {
	Prefix string // prefix of the token, such as bahi_; empty: any
	Authenticator
}

// Workspaces authorises actors in workspaces.
type Workspaces interface {
	// Enter returns the actor with their permissions in the workspace, or errNoWorkspace if the actor is not a member. It is not called for
	// operators or for an actor's own workspace.
	Enter(ctx context.Context, who actor.Actor, workspace uuid.UUID) (actor.Actor, error)
}

// These are the refusals of callers.
var (
	ErrNotAuthenticated = fault.New(fault.Unauthorized, "Not authenticated")
	ErrNotPermitted     = fault.New(fault.Forbidden, "Not enough permissions")
	errNoWorkspace      = fault.New(fault.NotFound, "Workspace not found")
)

// authenticate identifies the caller.
func (c *call) authenticate() error {
	if c.outer != nil {
		return c.inherit()
	}
	if c.readsByCookie() {
		if !c.again { // the headers were set at the start of the stream
			c.Header().Add("Vary", "Cookie")
		}
		if known, err := c.byCookie(); known || err != nil {
			return err
		}
	}
	given := c.r.Header["Authorization"]
	if len(given) != 1 {
		return ErrNotAuthenticated
	}
	scheme, bearer, _ := strings.Cut(given[0], " ")
	bearer = strings.TrimSpace(bearer)
	if !strings.EqualFold(scheme, "bearer") || bearer == "" {
		return ErrNotAuthenticated
	}
	return c.identify(bearer)
}

// inherit copies the caller of the outer request.
func (c *call) inherit() error {
	if c.outer.request.Actor.Type == "" {
		return ErrNotAuthenticated
	}
	c.request.Actor, c.request.Workspace = c.outer.request.Actor, c.outer.request.Workspace
	return nil
}

// identified reports whether the request has a credential.
func (c *call) identified() bool {
	if c.outer != nil {
		return c.outer.request.Actor.Type != ""
	}
	return c.r.Header["Authorization"] != nil
}

// identify finds the owner of the credential.
func (c *call) identify(bearer string) error {
	for _, credential := range c.api.config.Credentials {
		if strings.HasPrefix(bearer, credential.Prefix) {
			who, err := credential.Authenticate(c.ctx, bearer)
			if err != nil && !c.again {
				return c.guessed(err)
			}
			if err != nil {
				return err
			}
			c.request.Actor, c.request.Workspace = who, who.Workspace
			return nil
		}
	}
	return ErrNotAuthenticated
}

// enter changes the caller's workspace to the one in the request.
func (c *call) enter() error {
	given, present := c.r.Header["Bahi-Workspace"]
	if !present {
		return nil
	}
	if len(given) != 1 || len(given[0]) != uuidLength {
		return fault.Wrong("Bahi-Workspace", wantUUID)
	}
	workspace, err := uuid.Parse(given[0])
	if err != nil {
		return fault.Wrong("Bahi-Workspace", wantUUID)
	}
	return c.enterWorkspace(workspace)
}

func (c *call) enterWorkspace(workspace uuid.UUID) (err error) {
	who := c.request.Actor
	switch {
	case workspace == who.Workspace:
	case who.Permissions.Operator:
		who.Workspace = workspace
	case c.api.config.Workspaces == nil:
		return errNoWorkspace
	default:
		if who, err = c.api.config.Workspaces.Enter(c.ctx, who, workspace); err != nil {
			return err
		}
		who.Workspace = workspace
	}
	c.request.Actor, c.request.Workspace = who, workspace
	return nil
}

// permit refuses callers without the operation's permission.
func (c *call) permit() error {
	who := c.request.Actor
	switch {
	case c.op.Operator && !who.Permissions.Operator, c.op.Area != "" && !who.May(c.op.Area, c.op.Level):
		return ErrNotPermitted
	}
	return nil
}

// Browsers has what differs for requests of browsers.
type Browsers interface {
	// Bearer returns the bearer token of the session in the request's cookie, and the chosen workspace. uuid.Nil means the user's own
	// workspace. The token is empty without a valid cookie. After an error, the cookie may be valid.
	Bearer(r *http.Request) (bearer string, workspace uuid.UUID, err error)

	// Refuse responds with a page that has the status and the detail of a problem.
	Refuse(w http.ResponseWriter, r *http.Request, status int, detail string)
}

// ServeBrowsers makes operations accept the cookie of a browser for GET and HEAD in requests without Authorization. A browser that requests
// a page without a session is redirected to the sign-in page. Other problems become pages.
func (a *API) ServeBrowsers(browsers Browsers, signIn string) {
	a.browsers, a.signIn = browsers, signIn
}

// sandbox prevents scripts in an upload from acting with the rights of the user who views it. Browsers show no PDF in a sandbox.
const sandbox = "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'self'; sandbox"

// byCookie identifies the caller by the cookie. It returns false if the request has no valid one.
func (c *call) byCookie() (known bool, err error) {
	bearer, workspace, err := c.api.browsers.Bearer(c.r.WithContext(c.ctx))
	if err != nil || bearer == "" {
		return false, err
	}
	if err := c.identify(bearer); err != nil {
		return false, err
	}
	c.cookie = true
	if workspace == uuid.Nil || c.r.Header["Bahi-Workspace"] != nil {
		return true, nil
	}
	return true, c.enterWorkspace(workspace)
}

// readsByCookie reports whether a cookie may identify the caller.
func (c *call) readsByCookie() bool {
	return c.api.browsers != nil && !c.op.write() && c.r.Header["Authorization"] == nil
}

// leadsToSignIn redirects a browser that requests a page without a session. It reports whether it did.
func (c *call) leadsToSignIn(refusal error) bool {
	if !errors.Is(refusal, ErrNotAuthenticated) || !c.page {
		return false
	}
	http.Redirect(c, c.r, c.api.signIn+"?next="+url.QueryEscape(c.r.URL.RequestURI()), http.StatusSeeOther)
	return true
}

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
		ctx, cancel := context.WithTimeout(c.ctx, c.timeout())
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
	if c.api == nil {
		return ctx, ErrNotAuthenticated
	}
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
