package console

import (
	"context"
	"crypto/cipher"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"bahi/commands"
	"bahi/domain/actor"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/http/api"
	"bahi/http/ops"
	"bahi/readmodels"
	books "bahi/readmodels/ledger"
	marketplace "bahi/readmodels/marketplace"
	views "bahi/readmodels/ops"
)

// Path is the console's path.
const Path = "/console"

// Builds rebuilds projections and handles parked followers.
type Builds = ops.Builds

// Events searches the log.
type Events interface {
	Search(ctx context.Context, f views.Filter, size int) (views.Found, error)
	Event(ctx context.Context, at event.Position) (views.Event, views.Place, error)
	Upto(ctx context.Context, stream string, revision int64, most int) ([]views.Event, error)
	Head(ctx context.Context) (at event.Position, recorded time.Time, err error)
	PositionAt(ctx context.Context, moment time.Time) (event.Position, error)
}

// Config has the dependencies of a Console.
type Config struct {
	Projections *views.Projections
	Builds      Builds
	Jobs        *views.Jobs
	Queue       ops.Queue
	Events      Events
	Whole       func(context.Context, event.Position) (event.Position, error) // is http/ledger's Log
	Accounts    *views.Accounts
	Books       *books.Views
	Commands    *commands.Handler
	Marketplace *marketplace.Views
	Captured    map[string]ops.Captured // by port: messages kept by embedded providers
	Inbox       ops.Inbox
	Scans       Scans

	Sessions  Sessions
	Key       []byte         // seals cookies; 32 bytes, the same on all nodes
	PublicURL string         // the system's address for browsers
	Zone      *time.Location // time zone of the workshop, for display
	Version   string         // of the program
	Store     string         // the log's id
	Now       func() time.Time
	Log       *slog.Logger

	// Classify returns what an operator may read of an internal error, or nil.
	Classify func(error) *fault.Error
}

// site is a group of pages with a sign-in of its own.
type site struct {
	path      string
	name      string // beside Bahi
	folder    string // of its templates, beside the shared ones
	cookie    string // of its sessions
	sections  []section
	confirmed map[string]string // the confirmations by the word in the address
	enter     func(*visit, session) error
	signIn    func(*visit) (string, error)
}

// Console serves the pages. It is an [http.Handler] for [api.API.Mount].
type Console struct {
	Config
	site

	inbox *InboxConfig // of the inbox, which is a site of its own

	mux    *http.ServeMux
	doors  []string // patterns that require a signed-in operator
	pages  map[string]*template.Template
	seal   cipher.AEAD
	origin *http.CrossOriginProtection
	secure bool
	served map[string]asset
}

//go:embed templates
var templates embed.FS

// New returns the console. It returns an error if the key or the public URL is invalid.
func New(config Config) (*Console, error) {
	return complete(&Console{Config: config, site: site{
		path: Path, name: "console", folder: "templates", cookie: sessionCookie, sections: sections, confirmed: done, enter: (*visit).enterByKey, signIn: (*visit).signInByKey,
	}}, (*Console).routes)
}

// complete reads the templates of a site, and registers its pages.
func complete(c *Console, routes func(*Console)) (*Console, error) {
	config := c.Config
	c.mux, c.origin, c.served = http.NewServeMux(), http.NewCrossOriginProtection(), assets()
	public, err := url.Parse(config.PublicURL)
	if err != nil {
		return nil, fmt.Errorf("the console's public URL: %w", err)
	}
	c.secure = public.Scheme == "https"
	if err := c.origin.AddTrustedOrigin(public.Scheme + "://" + public.Host); err != nil {
		return nil, fmt.Errorf("the console's public URL: %w", err)
	}
	if c.seal, err = newSeal(config.Key); err != nil {
		return nil, err
	}
	if c.pages, err = c.parse(); err != nil {
		return nil, err
	}
	routes(c)
	return c, nil
}

// everywhere registers what all sites have.
func (c *Console) everywhere() {
	c.mux.HandleFunc("GET "+c.path+"/assets/{file}", c.asset)
	c.open("GET /sign-in", c.signInPage)
	c.do("POST /sign-in", c.signIn)
	c.do("POST /sign-out", (*visit).signOut)
	c.do("POST /theme", (*visit).theme)
	c.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		c.visit(w, r).run(true, func(*visit) (page, error) { return page{}, errNoPage })
	})
}

func (c *Console) routes() {
	c.everywhere()
	c.show("GET /{$}", (*visit).front)
	c.show("GET /live", (*visit).frontLive)

	c.show("GET /projections", (*visit).projections)
	c.show("GET /projections/live", (*visit).projectionsLive)
	c.show("GET /projections/{name}", (*visit).projection)
	c.show("GET /projections/{name}/live", (*visit).projectionLive)
	c.show("GET /projections/{name}/rebuild", (*visit).estimate)
	for verb, do := range c.builds() {
		c.act("POST /projections/{name}/"+verb, do)
	}

	c.show("GET /events", (*visit).events)
	c.show("GET /events/{position}", (*visit).event)

	c.show("GET /ledger", (*visit).accounts)
	c.show("GET /ledger/summary/{workspace}", (*visit).summary)
	c.show("GET /ledger/orders/{workspace}", (*visit).orders)
	c.show("GET /ledger/orders/{workspace}/{order}", (*visit).order)
	c.show("GET /ledger/{ledger}/{account}", (*visit).account)
	c.show("GET /ledger/{ledger}/{account}/rows/{row}", (*visit).history)

	c.show("GET /parked", (*visit).parked)
	c.act("POST /parked/{name}/retry", (*visit).retryParked)
	c.act("POST /parked/{name}/skip", (*visit).skipParked)

	c.show("GET /jobs", (*visit).jobs)
	c.act("POST /jobs/{id}/retry", (*visit).retryJob)
	c.act("POST /jobs/{id}/cancel", (*visit).cancelJob)

	c.show("GET /webhooks", (*visit).webhooks)
	c.show("GET /webhooks/{id}", (*visit).webhook)
	c.act("POST /webhooks/{id}/replay", (*visit).replayWebhook)
	c.show("GET /drafts", (*visit).drafts)
	c.show("GET /khatas", (*visit).khatas)
	c.show("GET /khatas/{id}", (*visit).khata)
	c.show("GET /companies", (*visit).companies)
	c.act("POST /companies/{id}/verify", (*visit).verifyCompany)
	c.act("POST /companies/{id}/unverify", (*visit).unverifyCompany)
	c.show("GET /outbox", (*visit).outbox)
}

var errNoPage = fault.New(fault.NotFound, "There is no such page")

// visit is one request of a browser.
type visit struct {
	*Console

	w       http.ResponseWriter
	r       *http.Request
	session session
	who     actor.Actor // the zero Actor: not signed in
}

func (c *Console) visit(w http.ResponseWriter, r *http.Request) *visit {
	return &visit{Console: c, w: w, r: r}
}

// show registers a page for signed-in operators.
func (c *Console) show(pattern string, answer func(*visit) (page, error)) {
	c.doors = append(c.doors, pattern)
	c.mux.HandleFunc(c.at(pattern), func(w http.ResponseWriter, r *http.Request) { c.visit(w, r).run(true, answer) })
}

// open registers a page for everybody.
func (c *Console) open(pattern string, answer func(*visit) (page, error)) {
	c.mux.HandleFunc(c.at(pattern), func(w http.ResponseWriter, r *http.Request) { c.visit(w, r).run(false, answer) })
}

// act registers an action of signed-in operators, which returns the address to redirect to.
func (c *Console) act(pattern string, do func(*visit) (string, error)) {
	c.doors = append(c.doors, pattern)
	c.mux.HandleFunc(c.at(pattern), func(w http.ResponseWriter, r *http.Request) {
		c.visit(w, r).run(true, func(v *visit) (page, error) { return v.done(do) })
	})
}

// do registers an action for everybody.
func (c *Console) do(pattern string, do func(*visit) (string, error)) {
	c.mux.HandleFunc(c.at(pattern), func(w http.ResponseWriter, r *http.Request) {
		c.visit(w, r).run(false, func(v *visit) (page, error) { return v.done(do) })
	})
}

func (c *Console) at(pattern string) string {
	method, path, _ := strings.Cut(pattern, " ")
	return method + " " + c.path + path
}

// policy lets the pages load only from this server, and forbids inline scripts and styles.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// mostForm is in bytes; the longest field is a reason.
const mostForm = 64 << 10

// ServeHTTP serves one request.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	r.Body = http.MaxBytesReader(w, r.Body, mostForm)
	if r.URL.Path == c.path {
		http.Redirect(w, r, c.path+"/", http.StatusSeeOther)
		return
	}
	c.mux.ServeHTTP(w, r)
}

var (
	errForeign  = fault.New(fault.Forbidden, "This form came from another site. Nothing was done.")
	errOldToken = fault.New(fault.Forbidden, "This form has expired, or belongs to another session. Nothing was done; open the page again.")
)

// run responds with a page.
func (v *visit) run(signedIn bool, answer func(*visit) (page, error)) {
	if err := v.recall(); err != nil {
		v.fail(err)
		return
	}
	if v.r.Method != http.MethodGet {
		if err := v.ours(); err != nil {
			v.fail(err)
			return
		}
	}
	if signedIn && v.who.Type == "" {
		v.turnAway()
		return
	}
	p, err := answer(v)
	if err != nil {
		v.fail(err)
		return
	}
	v.render(p)
}

// ours refuses a form that did not come from our page in the same session.
func (v *visit) ours() error {
	if err := v.origin.Check(v.r); err != nil {
		return errForeign
	}
	if err := v.r.ParseForm(); err != nil {
		return fault.New(fault.Malformed, "The form cannot be read")
	}
	if !v.session.holds(v.r.PostFormValue("token")) {
		return errOldToken
	}
	return nil
}

// done redirects after an action, so that a reload does not repeat it.
func (v *visit) done(do func(*visit) (string, error)) (page, error) {
	to, err := do(v)
	return page{redirect: to}, err
}

// fail responds with a page about the error.
func (v *visit) fail(err error) {
	if wrong, isWrong := errors.AsType[wrongKey](err); isWrong {
		v.render(page{template: "sign-in", title: "Sign in", status: http.StatusUnauthorized, body: signingIn{Next: wrong.next, Wrong: true}})
		return
	}
	status, detail, fields := http.StatusInternalServerError, "Something went wrong here. The log of the program says more.", []fault.Field(nil)
	problem, limited := errors.AsType[*api.Problem](err)
	refusal, refused := errors.AsType[*fault.Error](err)
	if !refused && v.Classify != nil {
		refusal = v.Classify(err)
		refused = refusal != nil
	}
	switch {
	case limited:
		status, detail = problem.Status, "Too many tries. Wait a minute, then try again."
	case refused:
		status, detail, fields = api.StatusOf(refusal.Kind), refusal.Detail, refusal.Fields
	}
	if status >= http.StatusInternalServerError {
		api.Failed(v.r.Context(), err)
	}
	v.render(page{template: "error", title: http.StatusText(status), status: status, body: failure{
		Status: status, Detail: detail, Fields: fields, Back: v.back(), RequestID: api.RequestID(v.r.Context()),
	}})
}

// failure is the content of an error page.
type failure struct {
	Status    int
	Detail    string
	Fields    []fault.Field
	Back      string
	RequestID string
}

// back returns the page that an action belongs to, or the front page.
func (v *visit) back() string {
	parts := strings.Split(strings.TrimPrefix(v.r.URL.Path, v.path+"/"), "/")
	switch {
	case v.r.Method == http.MethodGet:
		return v.path + "/"
	case parts[0] == "contacts" && len(parts) > 1:
		return v.path + "/contacts/" + url.PathEscape(parts[1])
	case parts[0] == "projections" && len(parts) > 1:
		return Path + "/projections/" + url.PathEscape(parts[1])
	case parts[0] == "jobs", parts[0] == "parked", parts[0] == "webhooks":
		return Path + "/" + parts[0]
	default:
		return v.path + "/"
	}
}

// freshness returns the position up to which a page's data about the books is complete.
type freshness struct {
	Position event.Position
	Known    bool
	Stale    bool
}

func (v *visit) freshness() freshness {
	f := readmodels.FreshnessOf(v.r.Context())
	position, known := f.Position()
	return freshness{position, known, f.Stale()}
}
