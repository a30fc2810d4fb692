// Package pages serves the pages for browsers. Each read and write of a page is an operation of the API, which runs in the same process
// for the signed-in user. So the API's permissions, limits, dry runs and revisions apply to pages, and a page cannot do more than a client.
//
// A page is HTML from a template, and works without scripts. An application in the browser over the API was turned down: it needs its own
// routing, focus, loading and numbers, and a browser in each test.
//
// The forms of ledgers come from the OpenAPI document, so a further field needs no page. Texts are English in the code, and the tables of
// words translate them to Hindi and Gujarati; tests name each missing word.
package pages

import (
	"bytes"
	"cmp"
	"crypto/cipher"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"bahi/domain/actor"
	"bahi/domain/fault"
	"bahi/http/api"
)

// Path is the path of the pages.
const Path = "/app"

// Config has the dependencies of Pages.
type Config struct {
	API       *api.API
	Sessions  Sessions
	Key       []byte         // seals cookies; 32 bytes, the same on all nodes
	PublicURL string         // the system's address for browsers
	Zone      *time.Location // time zone of the workshop
	Version   string         // of the program
	Now       func() time.Time
	Log       *slog.Logger
	MailsKept bool // mails are stored in the data folder, without a mail server
	Provider  bool // sign-in through an identity provider is configured
}

// Pages serves the pages. It is an [http.Handler] for [api.API.Mount], and the API's [api.Browsers].
type Pages struct {
	Config

	mux      *http.ServeMux
	document func() document
	manual   func() *manual
	views    map[language]map[string]func() *template.Template
	assets   map[string]asset
	seal     cipher.AEAD
	origin   *http.CrossOriginProtection
	site     string // the origin of the public URL
	secure   bool
}

//go:embed templates
var templates embed.FS

//go:embed assets
var assetFiles embed.FS

// Mount adds the pages to the API. It returns an error if the key or the public URL is invalid.
func Mount(config Config) (*Pages, error) {
	p := &Pages{Config: config, mux: http.NewServeMux(), origin: http.NewCrossOriginProtection(), assets: map[string]asset{}}
	p.document = sync.OnceValue(func() document { // all operations are registered by then
		d, err := readDocument(p.API.OpenAPI())
		if err != nil {
			panic(err) // the document is of this program
		}
		return d
	})
	p.manual = sync.OnceValue(func() *manual { return readManual(p.document()) })
	public, err := url.Parse(config.PublicURL)
	if err == nil {
		p.secure = public.Scheme == "https"
		p.site = public.Scheme + "://" + public.Host
		err = p.origin.AddTrustedOrigin(p.site)
	}
	if err != nil {
		return nil, fmt.Errorf("the public URL of the pages: %w", err)
	}
	if p.seal, err = newSeal(config.Key); err != nil {
		return nil, err
	}
	p.readFiles()
	p.routes()
	config.API.ServeBrowsers(p, Path+"/sign-in")
	config.API.Mount("pages", Path, p)
	for _, d := range doors {
		if !strings.HasPrefix(d.Path, Path) {
			config.API.Mount("pages", d.Path, p)
		}
	}
	for _, path := range append([]string{docsPath, verifyPath}, publicPaths...) {
		config.API.Mount("pages", path, p)
	}
	config.API.Page("/", http.RedirectHandler(Path+"/", http.StatusSeeOther))
	return p, nil
}

var (
	errNoPage    = &problem{Status: http.StatusNotFound, Detail: "There is no such page"}
	errNoLink    = &problem{Detail: "This link is wrong or has ended: ask its sender for a new one."}
	errForeign   = fault.New(fault.Forbidden, "This form came from another site. Nothing was done.")
	errOldForm   = fault.New(fault.Forbidden, "This form is of an earlier session. Nothing was done. Open the page again.")
	errLarge     = fault.New(fault.TooLarge, "This file is too large. Nothing was done.")
	errElsewhere = fault.New(fault.Conflict, "You have gone to another workspace in the meantime. Nothing was done. Open the page again.")
)

// page registers a page, for everybody or for signed-in users.
func (p *Pages) page(pattern string, signedIn bool, answer func(*visit) page) {
	p.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { p.serve(w, r, signedIn, answer) })
}

// policy restricts pages to this server's resources, and forbids inline scripts and styles.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

const (
	maxForm = 1 << 20  // bytes
	maxFile = 34 << 20 // bytes of a form with a file; the operation has its own limit
)

// ServeHTTP serves one request.
func (p *Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	if r.URL.Path == Path {
		http.Redirect(w, r, Path+"/", http.StatusSeeOther)
		return
	}
	most := int64(maxForm)
	if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/form-data") {
		most = maxFile
	}
	r.Body = http.MaxBytesReader(w, r.Body, most)
	p.mux.ServeHTTP(w, r)
}

func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
}

// sharedPath is the prefix of the links to statements that parties get.
const sharedPath = "/s/"

// Refuse shows the problem of an operation that a browser opened. It does not read who the visitor is, because the log may be away.
func (p *Pages) Refuse(w http.ResponseWriter, r *http.Request, status int, detail string) {
	setHeaders(w.Header())
	v := p.visit(w, r)
	if v.session = p.unseal(r); v.session.Token == "" {
		v.begin()
	}
	shared := strings.HasPrefix(r.URL.Path, sharedPath)
	if shared && (status == http.StatusNotFound || status == http.StatusUnprocessableEntity) {
		detail = errNoLink.Detail
	}
	v.showFailure(status, map[string]any{"Detail": detail, "Shared": shared})
}

// visit is one request of a browser.
type visit struct {
	*Pages

	w       http.ResponseWriter
	r       *http.Request
	lang    language
	session session
	who     actor.Actor         // the zero Actor: not signed in
	names   map[string][]choice // of actors, by their kind
	listed  http.Header         // of the newest list

	failed error // why there is no page, see deny
}

func (p *Pages) visit(w http.ResponseWriter, r *http.Request) *visit {
	lang := languageOf(cookieOf(r, languageCookie), r.Header.Get("Accept-Language"))
	return &visit{Pages: p, w: w, r: r, lang: lang, names: map[string][]choice{}}
}

// serve responds with a page.
func (p *Pages) serve(w http.ResponseWriter, r *http.Request, signedIn bool, answer func(*visit) page) {
	v := p.visit(w, r)
	defer func() {
		if r.MultipartForm != nil {
			_ = r.MultipartForm.RemoveAll() // files on the disk
		}
	}()
	v.recall()
	if r.Method != http.MethodGet && v.failed == nil {
		v.deny(v.ours())
	}
	var shown page
	switch {
	case v.failed != nil:
	case signedIn && v.who.Type == "":
		http.Redirect(w, r, v.signInPath(), http.StatusSeeOther) //nolint:gosec // G710: its host and path are fixed
		return
	default:
		shown = answer(v)
	}
	if err := v.failed; err != nil {
		v.failed = nil
		v.fail(err)
		return
	}
	v.render(shown)
}

// ours refuses a form from another site, session or workspace.
func (v *visit) ours() error {
	if v.origin.Check(v.r) != nil {
		return errForeign
	}
	err := v.r.ParseForm()
	if err == nil && strings.HasPrefix(v.r.Header.Get("Content-Type"), "multipart/form-data") {
		err = v.r.ParseMultipartForm(maxForm) //nolint:gosec // G120: ServeHTTP limits the body; larger files go to the disk
	}
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return errLarge
	}
	if err != nil {
		return fault.New(fault.Malformed, "This form cannot be read. Nothing was done.")
	}
	if !v.session.holds(v.r.PostForm.Get("token")) {
		return errOldForm
	}
	if in := v.r.PostForm.Get("workspace"); in != "" && in != v.who.Workspace.String() && v.r.URL.Path != Path+"/workspace" {
		return errElsewhere
	}
	return nil
}

// page is the response to a request.
type page struct {
	template string // name of the file
	title    string
	status   int    // 0: 200
	part     string // only this template of the file
	body     any
	redirect string // instead of a page
}

// frame has the layout's data around a page's body.
type frame struct {
	*visit

	Title, Theme, Here, Workspace string
	Key                           string // Idempotency-Key: a form that is sent twice has one effect
	Lang                          language
	Who                           string // empty: not signed in
	Done                          string // confirmation of the last action
	Posted                        bool
	May                           map[string]bool // permissions, such as ledger:write
	Body                          any
	Main                          template.HTML // the drawn body
}

// Stale reports whether a read of the visit was stale, those of the templates that were drawn so far included.
func (f frame) Stale() bool { return f.w.Header().Get("Bahi-Stale") != "" }

// render writes the whole page or none of it.
func (v *visit) render(p page) {
	switch {
	case p.redirect == "":
	case v.r.Header.Get("X-Requested-With") == "fetch": // the script follows it
		v.w.Header().Set("Location", p.redirect)
		v.w.WriteHeader(http.StatusNoContent)
		return
	default:
		http.Redirect(v.w, v.r, p.redirect, http.StatusSeeOther)
		return
	}
	f := frame{
		visit: v, Title: v.lang.t(p.title), Theme: cookieOf(v.r, themeCookie), Here: v.r.URL.RequestURI(), Key: uuid.NewString(), Lang: v.lang,
		Done: english["done"][v.r.URL.Query().Get("done")], May: v.permissions(), Body: p.body,
	}
	if v.r.Method != http.MethodGet { // a refused form; its own address may have no page
		f.Here, f.Posted = v.r.PostForm.Get("here"), true
	}
	if v.who.Type != "" {
		f.Who, f.Workspace = v.who.String(), v.who.Workspace.String()
	}
	// The body is drawn before the layout, which tells whether the body's reads were stale.
	view, text := v.views[v.lang][p.template](), bytes.Buffer{}
	err := view.ExecuteTemplate(&text, cmp.Or(p.part, "main"), f)
	if err == nil && p.part == "" {
		f.Main = template.HTML(text.String()) //nolint:gosec // G203: a template has escaped it
		text.Reset()
		err = view.ExecuteTemplate(&text, "layout.html", f)
	}
	if failed := v.failed; failed != nil && err == nil && p.template != "error" { // of a template's read
		v.failed = nil
		v.fail(failed)
		return
	}
	if err != nil {
		v.Log.Error("render a page", "page", p.template, "error", err)
		http.Error(v.w, "The page cannot be shown.", http.StatusInternalServerError)
		return
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if p.status != 0 {
		v.w.WriteHeader(p.status)
	}
	_, _ = text.WriteTo(v.w)
}

// fail shows the page of an error.
func (v *visit) fail(err error) {
	shown, is := errors.AsType[*problem](err)
	if refused, known := errors.AsType[*fault.Error](err); known {
		shown = &problem{Status: api.StatusOf(refused.Kind), Detail: refused.Detail}
	} else if !is {
		shown = &problem{Status: http.StatusInternalServerError, Detail: "Something went wrong here. Nothing was done; try again in a moment."}
		api.Failed(v.r.Context(), err)
		v.Log.Error("serve a page", "path", v.r.URL.Path, "error", err)
	}
	body := map[string]any{"Detail": shown.Detail}
	if errors.Is(err, errOldForm) {
		body["SignIn"] = v.signInPath()
		if in, err := uuid.Parse(v.r.PostForm.Get("workspace")); err == nil && v.who.Type == "" {
			s := v.session
			s.In = in // the next sign-in enters the workspace of the form
			v.keep(s)
		}
	}
	v.showFailure(shown.Status, body)
}

func (v *visit) showFailure(status int, body map[string]any) {
	v.render(page{template: "error", title: "Not possible", status: status, body: body})
}

// permissions returns the visitor's permissions, such as ledger:write.
func (v *visit) permissions() map[string]bool {
	may := map[string]bool{"operator": v.who.Permissions.Operator}
	for _, area := range []actor.Area{actor.Ledger, actor.Messaging, actor.Marketplace, actor.Audit} {
		for _, level := range []actor.Level{actor.Read, actor.Write} {
			may[string(area)+":"+string(level)] = v.who.Type != "" && v.who.May(area, level)
		}
	}
	return may
}

// readFiles finds the templates, and reads the assets. A template is parsed for a language at its first use: all of them take 20 MB.
func (p *Pages) readFiles() {
	files, _ := fs.Glob(templates, "templates/*.html") // the pattern is valid
	shared := []string{"templates/layout.html", "templates/form.html", "templates/parts.html", "templates/keys.html", "templates/unsent.html"}
	p.views = map[language]map[string]func() *template.Template{}
	for _, lang := range languages {
		p.views[lang] = map[string]func() *template.Template{}
		for _, file := range files {
			p.views[lang][strings.TrimSuffix(path.Base(file), ".html")] = sync.OnceValue(func() *template.Template {
				all := append(slices.Clone(shared), file)
				return template.Must(template.New("layout.html").Funcs(p.functions(lang)).ParseFS(templates, all...))
			})
		}
	}
	for name, kind := range map[string]string{
		"app.css": "text/css; charset=utf-8", "app.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml",
	} {
		content := joined(name)
		sum := sha256.Sum256(content)
		p.assets[name] = asset{content, kind, hex.EncodeToString(sum[:6])}
	}
}

// joined returns the files of a kind as one: inbox.css is part of app.css.
func joined(name string) (content []byte) {
	files, _ := fs.Glob(assetFiles, "assets/*"+path.Ext(name)) // the pattern is valid
	for _, file := range files {
		more, _ := assetFiles.ReadFile(file) // embedded, so it exists
		content = append(content, more...)
	}
	return content
}

// functions are the functions of the templates.
func (p *Pages) functions(lang language) template.FuncMap {
	return template.FuncMap{
		"t": lang.t, "tf": lang.tf, "said": lang.said, "day": lang.day, "openedParts": openedParts,
		"moment":  func(text string) string { return lang.moment(text, p.Zone) },
		"asset":   func(name string) string { return Path + "/assets/" + name + "?v=" + p.assets[name].version },
		"months":  func() [12]string { return monthNames },
		"word":    func(option any, all ...[]string) string { return wordOf(option, slices.Concat(all...)...) },
		"fieldID": fieldID, "languages": func() []language { return languages },
		"nth": func(index int) int { return index + 1 },
		// figures and parts of API records
		"nonzero": nonzero, "charge": charge, "grams": grams, "price": priceOf, "owings": owings,
		"rupees": rupees, "signed": lang.signed,
		"entered": lang.entered, "accountAt": pathOf, "sure": sure, "unsure": unsure, "localTime": lang.localTime,
		"own": func(address string) string { // of a file of this server: without the server, so at the visitor's address of it
			if path, own := strings.CutPrefix(address, p.PublicURL+"/"); own {
				return "/" + path
			}
			return address
		},
		"phone":      func(n any) string { return phone(textOf(n)) },
		"balances":   func(of map[string]any) []balance { return lang.balancesOf(textOf(of["kind"]), of) },
		"balancesIn": func(kind string, of map[string]any) []balance { return lang.balancesOf(kind, of) },
		// cells of records
		"english": func(use string, word any) string { return english[use][textOf(word)] }, "fullName": fullName, "weightOf": weightOf,
		"negative": func(n any) bool { d, _ := toDecimal(n); return d.IsNegative() },
		"oneLine": func(text any) string { // its beginning
			words := []rune(strings.Join(strings.Fields(textOf(text)), " "))
			return string(words[:min(len(words), 200)])
		},
		"unsureOf": unsureOf, "count": func(items any) string { return lang.count(len(entriesOf(items))) },
		"chipOf": func(state any) string { return cmp.Or(stateChips[textOf(state)], "plain") }, "buildState": buildState,
		"rounded": func(format string, n any) string { return fmt.Sprintf(format, float(n)) },
		"whole":   func(n any) string { return unsigned(n, 0) }, "lasting": lang.lasting, "perSecond": lang.perSecond,
		"upper": strings.ToUpper, "withQuery": withQuery, "pagePath": pagePath, "kindName": kindName, "reason": reasonOf,
		"needPath": func(what string) string { return operatePath + needPaths[what] }, "list": func(all ...string) []string { return all },
		"spaced":  func(name any) string { return strings.ReplaceAll(textOf(name), "_", " ") },
		"compact": compact, "rowsOf": rowsOf, "indented": func(text string) string { return indent([]byte(text)) },
		"fields": func(pairs ...any) map[string]any {
			m := make(map[string]any, len(pairs)/2)
			for i := 0; i+1 < len(pairs); i += 2 {
				m[fmt.Sprint(pairs[i])] = pairs[i+1]
			}
			return m
		},
	}
}

// asset is a file that browsers may cache, because its address has its version.
type asset struct {
	content []byte
	kind    string
	version string
}

func (p *Pages) asset(w http.ResponseWriter, r *http.Request) {
	a, known := p.assets[r.PathValue("file")]
	if !known {
		p.serve(w, r, false, func(v *visit) page { return v.deny(errNoPage) })
		return
	}
	w.Header().Set("Content-Type", a.kind)
	if r.URL.Query().Get("v") == a.version {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	_, _ = w.Write(a.content)
}

// decode reads JSON, and keeps numbers as written.
func decode(body []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	return d.Decode(into)
}
