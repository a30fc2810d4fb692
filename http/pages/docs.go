package pages

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// docsPath is the path of the documentation, which is public.
const docsPath = "/docs"

// docsPage is the content of a page of the documentation: the list, an operation or a guide.
type docsPage struct {
	Shell     string // commands that set the variables of the others
	Query     string
	Tags      []docsGroup // all, for the menu
	Groups    []docsGroup // of the list
	Guides    []*guide    // of the list
	Sections  []docsSection
	Guide     *guide
	Operation *described
	Curl      string
	Try       *docsTry
}

// docsSection is a section of a guide that a search found.
type docsSection struct {
	Guide *guide
	section
}

const (
	maxSections = 30 // of guides that a search shows
	maxWords    = 8  // of a search; further words are ignored
)

func (v *visit) docs() page {
	m := v.guideBook()
	shown := docsPage{Query: strings.TrimSpace(v.r.URL.Query().Get("q")), Tags: m.tags, Groups: m.tags, Guides: m.guides}
	if words := strings.Fields(strings.ToLower(shown.Query)); len(words) > 0 {
		words = words[:min(len(words), maxWords)]
		shown.Groups, shown.Guides, shown.Sections = m.find(words), nil, m.findSections(words)
	}
	return page{template: "docs", title: "Documentation", body: shown}
}

// guideBook returns the content of the documentation.
func (v *visit) guideBook() *manual {
	m, err := v.manual()
	if err != nil {
		v.deny(err)
		return &manual{}
	}
	return m
}

// shell returns the commands that set the variables of the other commands.
func (v *visit) shell() string {
	return "BAHI=" + strings.TrimSuffix(v.PublicURL, "/") + "\nKEY=bahi_…"
}

// find returns the operations that contain all words, by tag. Operations with the words in their names form the first group.
func (m *manual) find(words []string) (found []docsGroup) {
	named := docsGroup{Name: "Best matches", ID: "best"}
	for _, tag := range m.tags {
		group := docsGroup{Name: tag.Name, ID: tag.ID}
		for _, o := range tag.Operations {
			switch {
			case hasAll(o.title, words):
				if !slices.Contains(named.Operations, o) {
					named.Operations = append(named.Operations, o)
				}
			case hasAll(o.words, words):
				group.Operations = append(group.Operations, o)
			}
		}
		if len(group.Operations) > 0 {
			found = append(found, group)
		}
	}
	if len(named.Operations) > 0 {
		found = append([]docsGroup{named}, found...)
	}
	return found
}

// findSections returns the sections of guides that contain all words.
func (m *manual) findSections(words []string) (found []docsSection) {
	for _, g := range m.guides {
		for _, s := range g.Sections {
			if hasAll(s.words, words) && len(found) < maxSections {
				found = append(found, docsSection{g, s})
			}
		}
	}
	return found
}

func hasAll(text string, words []string) bool {
	return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
}

func (v *visit) docsGuide() page {
	m := v.guideBook()
	for _, g := range m.guides {
		if g.Name == v.r.PathValue("name") {
			return page{template: "docs", title: g.Title, body: docsPage{Tags: m.tags, Guide: g}}
		}
	}
	return v.deny(errNoPage)
}

// docsTry is the form that calls an operation, and the last response.
type docsTry struct {
	Address, Fields []field // Address: of the path, the query and the headers
	Wrong           []string
	Key             string
	Status          int // 0: not called yet
	Meaning, Answer string
	Dry             bool
}

func (v *visit) docsOperation() page { return v.showOperation(nil, nil, docsTry{}) }

// showOperation shows an operation, with the values and errors of a call.
func (v *visit) showOperation(in *request, faults map[string]string, try docsTry) page {
	m := v.guideBook()
	o, known := m.operations[v.r.PathValue("operation")]
	if !known {
		return v.deny(errNoPage)
	}
	shown := docsPage{Shell: v.shell(), Tags: m.tags, Operation: o, Curl: o.curl(v.who.Workspace.String())}
	if v.who.Type != "" && !o.Raw {
		address, body := o.samples(v.who.Workspace.String()), o.Example
		if in != nil {
			address, body = o.given(*in), in.body
		}
		try.Address = o.address().fields(ofAddress, address, faults, 0)
		if o.Body != nil {
			try.Fields = o.Body.fields("", body, faults, 1)
		}
		try.Wrong = misplaced(slices.Concat(try.Address, try.Fields), faults)
		shown.Try = &try
	}
	return page{template: "docs", title: o.Summary, body: shown}
}

// ofAddress is the prefix of the names of inputs outside the body. No field of a body has a hyphen.
const ofAddress = "of-address"

// address returns the schema of a call's path variables, query parameters and headers.
func (d *described) address() *schema {
	s := &schema{Kind: "group"}
	for _, p := range d.Params {
		s.Properties = append(s.Properties, p.property)
	}
	if d.Match {
		s.Properties = append(s.Properties, property{"revision", &schema{Kind: "text"}})
	}
	inBody := d.Body != nil && slices.ContainsFunc(d.Body.Properties, func(p property) bool { return p.Name == "reason" })
	if d.Method != http.MethodGet && !inBody {
		s.Properties = append(s.Properties, property{"reason", &schema{Kind: "text"}})
	}
	return s
}

// samples returns the values of the path's variables and of required parameters for a first call.
func (d *described) samples(workspace string) map[string]any {
	values := map[string]any{}
	for _, p := range d.Params {
		if p.In == "path" || p.Required {
			values[p.Name] = p.sample(workspace)
		}
	}
	return values
}

// given returns the values of the path's variables and the parameters of a request.
func (d *described) given(in request) map[string]any {
	values := map[string]any{"revision": in.match, "reason": in.reason}
	for i, name := range d.variables() {
		values[name] = in.vars[i]
	}
	for name := range in.query {
		values[name] = in.query.Get(name)
	}
	return values
}

var variable = regexp.MustCompile(`\{([^}]+)\}`)

// variables returns the names of the path's variables, in order.
func (d *described) variables() (names []string) {
	for _, m := range variable.FindAllStringSubmatch(d.Path, -1) {
		names = append(names, m[1])
	}
	return names
}

const maxAnswer = 64 << 10 // maximum bytes of a response that the page shows

// tryOperation calls the operation of the page for the visitor, as a dry run or in earnest.
func (v *visit) tryOperation() page {
	if v.who.Type == "" {
		return page{redirect: v.signInPath()}
	}
	m := v.guideBook()
	o, known := m.operations[v.r.PathValue("operation")]
	if !known || o.Raw {
		return v.deny(errNoPage)
	}
	in := o.fill(v)
	if o.Method == http.MethodGet && !o.inJSON() { // the browser opens the address with its session cookie
		return page{redirect: v.address(o.ID, in).RequestURI()}
	}
	out, refused := v.ask(o.ID, in, nil)
	try := docsTry{
		Key: in.key, Status: out.Status, Meaning: http.StatusText(out.Status), Answer: string(out.Body),
		Dry: in.dry && refused == nil,
	}
	if try.Dry || refused == nil {
		try.Key = "" // the next call needs a new key
	}
	var value any
	switch {
	case json.Valid(out.Body) && decode(out.Body, &value) == nil:
		try.Answer = indentedJSON(value)
	case !utf8.Valid(out.Body):
		try.Answer = ""
	}
	if len(try.Answer) > maxAnswer {
		try.Answer = strings.ToValidUTF8(try.Answer[:maxAnswer], "") + "…"
	}
	return v.showOperation(&in, refused.faults(), try)
}

// fill returns the request of a posted form.
func (d *described) fill(v *visit) request {
	form := v.r.PostForm
	outer := (&schema{Properties: []property{{ofAddress, d.address()}}}).read(form, false)
	values, _ := outer[ofAddress].(map[string]any)
	in := request{
		query: url.Values{}, key: form.Get("key"), match: textOf(values["revision"]), reason: textOf(values["reason"]),
		dry: form.Get("dry") != "",
	}
	for _, p := range d.Params {
		value, given := values[p.Name]
		_, several := value.([]any)
		switch {
		case p.In == "path" || !given:
		case several:
			in.query.Set(p.Name, strings.Join(textsOf(value), ","))
		default:
			in.query.Set(p.Name, textOf(value))
		}
	}
	for _, name := range d.variables() {
		in.vars = append(in.vars, textOf(values[name]))
	}
	if d.Body == nil {
		return in
	}
	in.body = d.Body.read(form, false)
	for _, p := range d.Body.Properties {
		if p.Kind == "file" {
			in.files = append(in.files, v.files(p.Name)...)
		}
	}
	return in
}

// inJSON reports whether the operation returns JSON or no body.
func (d *described) inJSON() bool {
	return !slices.ContainsFunc(d.Answers, func(a answer) bool {
		return len(a.Kinds) > 0 && !slices.Equal(a.Kinds, []string{"application/json"}) || a.Status >= "300"
	})
}
