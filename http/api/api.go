package api

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humamux"
	"github.com/google/uuid"
	"github.com/gorilla/mux"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/cors"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/semaphore"

	"bahi/domain/fault"
)

// Config has the parts of an API. With the zero value, every caller is unauthenticated, and nothing is logged.
type Config struct {
	Version  string
	Document []byte // OpenAPI document of version "development"; nil: huma's

	// Credentials are tried in order, by the prefix of the bearer token.
	Credentials []Credential

	// Workspaces authorises callers in other workspaces; nil: a caller may act only in their own workspace.
	Workspaces Workspaces

	// Classify returns the part of an error that the caller may read, nil for none. It is called for errors that are not a *fault.Error.
	Classify func(error) *fault.Error

	Log     *slog.Logger          // nil: none
	Metrics prometheus.Registerer // nil: none
	Tracer  trace.TracerProvider  // nil: no spans, at no cost

	Limiting Limiting

	// Secure is true if clients use only HTTPS. Browsers must then use it (RFC 6797).
	Secure bool

	// Admit delays or refuses an authorised write while projections are slower than the writes; nil: never.
	Admit func(context.Context, Op) error

	// Origins are the origins of pages that may read responses in a browser, see [Origin]; none: only the API's own origin.
	Origins []string

	// Timeout is the timeout of a handler; 0: 30 seconds.
	Timeout time.Duration

	// Heartbeat is the interval of a stream's heartbeats; 0: 15 seconds.
	Heartbeat time.Duration

	// Recheck is the interval at which a stream checks its caller's permissions; 0: 2 seconds.
	Recheck time.Duration

	// Streams is the maximum number of concurrent streams of a caller; 0: 10.
	Streams int

	Uploads Pace
	Whole   BufferLimits
	Spool   string // folder of uploaded files and long responses; "": the system's temporary folder
}

// API is a set of operations, and the handler that serves them.
type API struct {
	config  Config
	router  *mux.Router
	huma    huma.API
	tracer  trace.Tracer
	metrics *metrics
	limiter *limiter
	shared  map[string]*cors.Cors // by path prefix
	streams parts                 // streams of each caller
	turns   *turns
	served  atomic.Int64        // time of the last response that was not expensive, in Unix nanoseconds
	files   *semaphore.Weighted // bytes of responses in files
	ops     []*operation
	pages   map[string]bool // paths besides the operations that are served by GET

	// OpenAPI returns the document of all operations, which must all be registered by then.
	OpenAPI func() []byte

	browsers Browsers // nil: operations accept no cookies, and problems are JSON
	signIn   string   // path of the page for signing in

	ending context.Context //nolint:containedctx // ends all streams
	end    context.CancelFunc
}

// New returns an API without operations.
func New(config Config) *API {
	setGlobals()
	config.Log = cmp.Or(config.Log, slog.New(slog.DiscardHandler))
	config.Timeout = cmp.Or(config.Timeout, 30*time.Second)
	config.Heartbeat = cmp.Or(config.Heartbeat, 15*time.Second) // proxies have idle timeouts, mostly of a minute
	config.Recheck = cmp.Or(config.Recheck, 2*time.Second)
	config.Streams = cmp.Or(config.Streams, 10)
	config.Whole = config.Whole.complete()
	config.Uploads = Pace{cmp.Or(config.Uploads.Rate, 64<<10), cmp.Or(config.Uploads.Grace, 20*time.Second)}
	a := &API{
		config: config, turns: newTurns(config.Whole.MaxConcurrent), files: semaphore.NewWeighted(config.Whole.Files),
		metrics: newMetrics(config.Metrics), pages: map[string]bool{}, shared: map[string]*cors.Cors{},
		limiter: newLimiter(config.Limiting),
	}
	a.shareWith(config.Origins)
	a.ending, a.end = context.WithCancel(context.Background())
	if config.Tracer != nil {
		a.tracer = config.Tracer.Tracer("bahi/http/api")
	}
	a.router = mux.NewRouter().SkipClean(true) // a redirect would convert a POST to a GET
	a.router.NotFoundHandler = http.HandlerFunc(a.noRoute)
	a.router.MethodNotAllowedHandler = a.router.NotFoundHandler
	a.huma = huma.NewAPI(humaConfig(config), humamux.NewAdapter(a.router))
	a.OpenAPI = sync.OnceValue(a.encodeDocument)
	a.serveDocument()
	return a
}

// ServeHTTP serves one request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.serve(&call{ResponseWriter: w, api: a, started: time.Now()}, r)
}

func (a *API) serve(c *call, r *http.Request) {
	c.r = r
	c.request.RequestID = requestID(r.Header)
	c.request.CorrelationID = named(r.Header, "X-Correlation-Id")
	h := c.Header()
	h.Set("X-Request-Id", c.request.RequestID)
	h.Set("X-Content-Type-Options", "nosniff")
	if a.config.Secure {
		h.Set("Strict-Transport-Security", "max-age=31536000") // a year
	}
	c.page = a.browsers != nil && c.outer == nil && (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		r.Header["Authorization"] == nil && strings.HasPrefix(r.Header.Get("Accept"), "text/html")
	a.metrics.inFlight.Inc()
	defer a.finish(c)
	if c.share() {
		return
	}
	if r.Method == http.MethodHead { // net/http drops the body with its own copy of the request
		c.head = true
		get := *r
		get.Method = http.MethodGet
		r = &get
	}
	if sane(r.URL.Path) && saneQuery(r.URL.RawQuery) {
		a.router.ServeHTTP(c, r)
	} else {
		c.refuse(fault.New(fault.Malformed, "Malformed URL"))
	}
	if p := c.refused; p != nil && c.page {
		c.refused = nil
		a.browsers.Refuse(c, r, p.Status, p.Detail)
	}
}

// finish sends the rest of the response, and reports the request to logs and metrics. It also recovers from a panic.
func (a *API) finish(c *call) {
	abort := false
	if p := recover(); p != nil {
		if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			abort = true
		} else {
			c.panicked(p)
			abort = c.sent
			if c.page = false; !c.sent {
				c.refuse(errPanic)
			}
		}
	}
	c.send()
	c.release()
	a.metrics.inFlight.Dec()
	if !c.expensive {
		a.served.Store(time.Now().UnixNano())
	}
	c.report()
	if abort { // otherwise a partial response would look complete
		panic(http.ErrAbortHandler)
	}
}

var errPanic = errors.New("panic")

func (c *call) panicked(p any) {
	c.cause = fmt.Errorf("panic: %v", p)
	c.stack = debug.Stack()
}

// noRoute refuses a request without an operation. The status is 405 if the path has another method, otherwise 404.
func (a *API) noRoute(w http.ResponseWriter, r *http.Request) {
	c, _ := w.(*call)
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		other, match := *r, mux.RouteMatch{}
		other.Method = method
		if a.router.Match(&other, &match); match.MatchErr == nil {
			allowed = append(allowed, method)
		}
	}
	if slices.Contains(allowed, http.MethodGet) {
		allowed = append(allowed, http.MethodHead)
	}
	if len(allowed) == 0 {
		c.refuse(ProblemOf(http.StatusNotFound))
		return
	}
	c.Header().Set("Allow", strings.Join(allowed, ", "))
	c.refuse(ProblemOf(http.StatusMethodNotAllowed))
}

// Page serves a public path that is not an operation, by GET.
func (a *API) Page(path string, handler http.Handler) {
	a.pages[path] = true
	a.router.Path(path).Methods(http.MethodGet).Handler(handler)
}

// requestID returns the client's id of the request, otherwise a new one.
func requestID(h http.Header) string {
	if id := named(h, "X-Request-Id"); id != "" {
		return id
	}
	id := uuid.New()
	return hex.EncodeToString(id[:])
}

// named returns the id in a header of the client, or "" if there is none or it is unsafe in logs and events.
func named(h http.Header, header string) string {
	if given := h[header]; len(given) == 1 && plain(given[0]) {
		return given[0]
	}
	return ""
}

var plain = regexp.MustCompile(`^[-0-9A-Za-z_.:/+=@]{1,128}$`).MatchString

// sane reports whether Postgres accepts the text: it must be UTF-8, without NUL.
func sane(text string) bool {
	return utf8.ValidString(text) && strings.IndexByte(text, 0) < 0
}

// Inputs returns the types of the operations' inputs by the operations' ids.
func (a *API) Inputs() map[string]reflect.Type {
	inputs := map[string]reflect.Type{}
	for _, op := range a.ops {
		inputs[op.ID] = op.input
	}
	return inputs
}

// Operations returns the operations in the order of their registration.
func (a *API) Operations() []Op {
	ops := make([]Op, 0, len(a.ops))
	for _, op := range a.ops {
		ops = append(ops, op.Op)
	}
	return ops
}

// within returns the handler's timeout.
func (c *call) timeout() time.Duration { return cmp.Or(c.op.Timeout, c.api.config.Timeout) }
