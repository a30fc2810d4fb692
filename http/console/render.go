package console

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"bahi/domain/event"
)

// page is the response to a request.
type page struct {
	template string // name of the file
	title    string
	status   int    // 0: 200
	live     bool   // the page changes by itself, so a browser without scripts reloads it
	part     string // only this template of the file, for a browser that has the rest
	body     any

	redirect string // redirect instead of a page
	events   func() // sends events instead of a page
}

// frame has the layout's data around a page's body.
type frame struct {
	Title, Section string
	Site           string
	Theme          string // light, dark or empty
	Here           string // the page's own address
	Token          string // for every form
	Who            string // empty: not signed in
	Done           string // the confirmed action
	Live           bool
	Version, Store string
	Freshness      freshness
	Body           any
}

// done has the confirmations by the word in the address. No other text from the address is shown.
var done = map[string]string{
	"rebuild": "The rebuild was requested. It starts in a moment.", "throttle": "The rebuild has a new limit.",
	"pause": "Paused.", "resume": "Resumed.", "cancel": "The rebuild was cancelled. The live tables did not change.",
	"accept": "The differences are accepted: the new tables become live.", "rollback": "The earlier generation is live again.",
	"retry": "It will be retried.", "skip": "The event is skipped, which the log records.",
	"job-retry": "The job runs again now.", "job-cancel": "The job was cancelled.",
	"replay":  "The call is handled again.",
	"company": "The company's mark was changed.",
}

// section is a page of the navigation.
type section struct{ Path, Name string }

// sections are those of the console, in order.
var sections = []section{
	{"/", "Overview"}, {"/projections", "Projections"}, {"/events", "Events"}, {"/ledger", "Ledger"},
	{"/parked", "Parked"}, {"/jobs", "Jobs"}, {"/webhooks", "Webhooks"}, {"/drafts", "Drafts"}, {"/khatas", "Khatas"}, {"/companies", "Companies"}, {"/outbox", "Outbox"},
}

// parse parses the templates: each file with the layout and the shared parts.
func (c *Console) parse() (map[string]*template.Template, error) {
	shared := template.New("layout.html").Funcs(c.words())
	shared, err := shared.ParseFS(templates, "templates/layout.html", "templates/parts.html")
	if err != nil {
		return nil, fmt.Errorf("the console's layout: %w", err)
	}
	files, err := fs.Glob(templates, c.folder+"/*.html")
	if err != nil {
		return nil, err
	}
	files = append(files, "templates/error.html")
	pages := map[string]*template.Template{}
	for _, file := range files {
		name := strings.TrimSuffix(path.Base(file), ".html")
		if shared.Lookup(path.Base(file)) != nil { // a shared part, included in the others
			continue
		}
		own, err := shared.Clone()
		if err == nil {
			own, err = own.ParseFS(templates, file)
		}
		if err != nil {
			return nil, fmt.Errorf("the console's page %s: %w", name, err)
		}
		pages[name] = own
	}
	return pages, nil
}

// render writes the whole page or none of it.
func (v *visit) render(p page) {
	if p.redirect != "" {
		http.Redirect(v.w, v.r, p.redirect, http.StatusSeeOther)
		return
	}
	if p.events != nil {
		p.events()
		return
	}
	f := frame{
		Title: p.title, Section: v.section(), Here: v.r.URL.RequestURI(), Token: v.session.Token, Live: p.live,
		Version: v.Version, Store: v.Store, Freshness: v.freshness(), Body: p.body,
		Done: v.confirmed[v.r.URL.Query().Get("done")], Site: v.name,
	}
	if v.r.Method != http.MethodGet { // a refused form; the address may not be a page
		f.Here = v.back()
	}
	if v.who.Type != "" {
		f.Who = v.who.String()
	}
	if cookie, err := v.r.Cookie(themeCookie); err == nil && (cookie.Value == "light" || cookie.Value == "dark") {
		f.Theme = cookie.Value
	}
	name := p.part
	if name == "" {
		name = "layout.html"
	}
	var text bytes.Buffer
	if err := v.pages[p.template].ExecuteTemplate(&text, name, f); err != nil {
		v.Log.Error("rendering a page of the console failed", "page", p.template, "error", err)
		http.Error(v.w, "The page cannot be shown.", http.StatusInternalServerError)
		return
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if p.status != 0 {
		v.w.WriteHeader(p.status)
	}
	_, _ = text.WriteTo(v.w)
}

// section returns the page's section in the navigation.
func (v *visit) section() string {
	rest := strings.TrimPrefix(v.r.URL.Path, v.path)
	for _, s := range v.sections[1:] {
		if rest == s.Path || strings.HasPrefix(rest, s.Path+"/") {
			return s.Path
		}
	}
	if rest == "/" {
		return rest
	}
	return ""
}

// link returns an address of the console: a path, and alternating names and values of its query, without empty values.
func (c *Console) link(to string, query ...any) (string, error) {
	if len(query)%2 != 0 {
		return "", errors.New("a name without a value")
	}
	values := url.Values{}
	for i := 0; i < len(query); i += 2 {
		if text := fmt.Sprint(query[i+1]); text != "" {
			values.Set(fmt.Sprint(query[i]), text)
		}
	}
	if len(values) > 0 {
		to += "?" + values.Encode()
	}
	return c.path + to, nil
}

// words are the functions of the templates.
func (c *Console) words() template.FuncMap {
	return template.FuncMap{
		"asset":    func(name string) string { return c.path + "/assets/" + name + "?v=" + c.served[name].version },
		"sections": func() any { return c.sections },
		"link":     c.link,
		"segment":  url.PathEscape,
		"moment":   c.moment, "iso": iso, "ago": c.ago,
		"clock": func() string { return c.Now().In(c.Zone).Format(time.TimeOnly) },
		"count": count, "whole": whole, "amount": amount, "size": size, "duration": duration, "seconds": seconds, "behind": behind, "percent": percent,
		"position": func(p event.Position) string { return strconv.FormatUint(uint64(p), 10) },
		"cut":      cut, "brief": brief, "day": day, "statusWord": statusWord,
		"fields": func(pairs ...any) map[string]any {
			m := make(map[string]any, len(pairs)/2)
			for i := 0; i+1 < len(pairs); i += 2 {
				m[fmt.Sprint(pairs[i])] = pairs[i+1]
			}
			return m
		},
	}
}

//go:embed assets
var assetFiles embed.FS

// asset is a file that browsers may cache: its address has its version.
type asset struct {
	content []byte
	kind    string
	version string
}

func assets() map[string]asset {
	all := map[string]asset{}
	for name, kind := range map[string]string{
		"console.css": "text/css; charset=utf-8", "htmx.min.js": "text/javascript; charset=utf-8", "inbox.js": "text/javascript; charset=utf-8",
		"htmx.LICENSE.txt": "text/plain; charset=utf-8", "icon.svg": "image/svg+xml",
	} {
		content, err := assetFiles.ReadFile("assets/" + name)
		if err != nil {
			panic(err) // embedded in the program
		}
		sum := sha256.Sum256(content)
		all[name] = asset{content, kind, hex.EncodeToString(sum[:6])}
	}
	return all
}

func (c *Console) asset(w http.ResponseWriter, r *http.Request) {
	a, known := c.served[r.PathValue("file")]
	if !known {
		c.visit(w, r).fail(errNoPage)
		return
	}
	w.Header().Set("Content-Type", a.kind)
	if r.URL.Query().Get("v") == a.version {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	_, _ = w.Write(a.content)
}
