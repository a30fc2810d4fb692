package pages

import (
	"cmp"
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
	*manual

	Query     string
	Groups    []docsGroup // of the list
	Guides    []*guide    // of the list
	Sections  []section
	Guide     *guide
	Operation *operation
	Curl      string
	Try       *docsTry
}

const (
	maxSections = 30 // of guides that a search shows
	maxWords    = 8  // of a search; further words are ignored
)

func (v *visit) docs() page {
	m := v.manual()
	shown := docsPage{manual: m, Query: strings.TrimSpace(v.r.URL.Query().Get("q")), Groups: m.Tags, Guides: m.guides}
	if words := strings.Fields(strings.ToLower(shown.Query)); len(words) > 0 {
		words = words[:min(len(words), maxWords)]
		shown.Groups, shown.Guides = m.find(words), nil
		for _, g := range m.guides {
			for _, s := range g.Sections {
				if hasAll(s.words, words) && len(shown.Sections) < maxSections {
					shown.Sections = append(shown.Sections, s)
				}
			}
		}
	}
	return page{template: "docs", title: "Documentation", body: shown}
}

// find returns the operations that contain all words, by tag. Operations with the words in their names form the first group.
func (m *manual) find(words []string) (found []docsGroup) {
	found = []docsGroup{{Name: "Best matches", ID: "best"}}
	for _, tag := range m.Tags {
		group := docsGroup{Name: tag.Name, ID: tag.ID}
		for _, o := range tag.Operations {
			switch {
			case hasAll(o.title, words):
				if !slices.Contains(found[0].Operations, o) { // an operation may have several tags
					found[0].Operations = append(found[0].Operations, o)
				}
			case hasAll(o.words, words):
				group.Operations = append(group.Operations, o)
			}
		}
		found = append(found, group)
	}
	return slices.DeleteFunc(found, func(g docsGroup) bool { return len(g.Operations) == 0 })
}

func hasAll(text string, words []string) bool {
	return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
}

func (v *visit) docsGuide() page {
	m := v.manual()
	for _, g := range m.guides {
		if g.Name == v.r.PathValue("name") {
			return page{template: "docs", title: g.Title, body: docsPage{manual: m, Guide: g}}
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

func (v *visit) docsOperation() page {
	o := v.documented()
	return v.showOperation(o, docsTry{}, o.samples(v.who.Workspace.String()), o.Example, nil)
}

// documented returns the operation of the page.
func (v *visit) documented() *operation {
	o, known := v.document()[v.r.PathValue("operation")]
	if !known {
		v.deny(errNoPage)
		return &operation{}
	}
	return o
}

// showOperation shows an operation and the form of a call, with its values and errors.
func (v *visit) showOperation(o *operation, try docsTry, address map[string]any, body any, faults map[string]string) page {
	shown := docsPage{
		manual: v.manual(), Operation: o, Curl: o.curl(v.who.Workspace.String()),
	}
	if v.who.Type != "" && !o.Raw {
		try.Address = o.address().fields(ofAddress, address, faults, 0)
		if o.Body != nil {
			try.Fields = o.Body.fields("", body, faults, 1)
		}
		try.Wrong = v.lang.misplaced(slices.Concat(try.Address, try.Fields), faults)
		shown.Try = &try
	}
	return page{template: "docs", title: o.Summary, body: shown}
}

// ofAddress is the prefix of the names of inputs outside the body. No field of a body has a hyphen.
const ofAddress = "of-address"

// address returns the schema of a call's path variables, query parameters and headers.
func (o *operation) address() *schema {
	s := &schema{Kind: "group"}
	for _, p := range o.Params {
		s.Properties = append(s.Properties, p.property)
	}
	if o.Match {
		s.Properties = append(s.Properties, property{"revision", &schema{Kind: "text"}})
	}
	if o.Method != http.MethodGet && (o.Body == nil || o.Body.of("reason") == nil) {
		s.Properties = append(s.Properties, property{"reason", &schema{Kind: "text"}})
	}
	return s
}

// samples returns the values of the path's variables and of required parameters for a first call.
func (o *operation) samples(workspace string) map[string]any {
	values := map[string]any{}
	for _, p := range o.Params {
		if p.In == "path" || p.Required {
			values[p.Name] = p.sample(workspace)
		}
	}
	return values
}

var variable = regexp.MustCompile(`\{[^}]+\}`)

const maxAnswer = 64 << 10 // maximum bytes of a response that the page shows

// tryOperation calls the operation of the page for the visitor, as a dry run or in earnest.
func (v *visit) tryOperation() page {
	if v.who.Type == "" {
		return page{redirect: v.signInPath()}
	}
	o := v.documented()
	if o.Raw {
		return v.deny(errNoPage)
	}
	in, values := v.called(o)
	if o.Method == http.MethodGet && !o.inJSON() { // the browser opens the address with its session cookie
		return page{redirect: v.address(o.ID, in).RequestURI()}
	}
	out, refused := v.ask(o.ID, in, nil)
	try := docsTry{
		Status: out.Status, Meaning: http.StatusText(out.Status), Answer: indent(out.Body), Dry: in.dry && refused == nil,
	}
	if refused != nil {
		try.Key = in.key // the call after a success needs a new key
	}
	if !utf8.Valid(out.Body) {
		try.Answer = ""
	}
	if len(try.Answer) > maxAnswer {
		try.Answer = strings.ToValidUTF8(try.Answer[:maxAnswer], "") + "…"
	}
	return v.showOperation(o, try, values, in.body, refused.faults())
}

// called returns the request of a posted form, and its values outside the body.
func (v *visit) called(o *operation) (in request, values map[string]any) {
	form := v.r.PostForm
	values, _ = (&schema{Properties: []property{{ofAddress, o.address()}}}).read(form, false)[ofAddress].(map[string]any)
	in = request{
		query: url.Values{}, key: form.Get("key"), match: textOf(values["revision"]), reason: textOf(values["reason"]),
		dry: form.Get("dry") != "",
	}
	for _, p := range o.Params {
		value, given := values[p.Name]
		if _, several := value.([]any); several {
			value = strings.Join(textsOf(value), ",")
		}
		if p.In == "query" && given {
			in.query.Set(p.Name, textOf(value))
		}
	}
	for _, name := range variable.FindAllString(o.Path, -1) {
		in.vars = append(in.vars, textOf(values[strings.Trim(name, "{}")]))
	}
	if o.Body == nil {
		return in, values
	}
	in.body = o.Body.read(form, false)
	for _, p := range o.Body.Properties {
		if p.Kind == "file" {
			in.files = append(in.files, v.files(p.Name)...)
		}
	}
	return in, values
}

// inJSON reports whether the operation returns JSON or no body.
func (o *operation) inJSON() bool {
	return !slices.ContainsFunc(o.Answers, func(a answer) bool {
		return len(a.Kinds) > 0 && !slices.Equal(a.Kinds, []string{"application/json"}) || a.Status >= "300"
	})
}

// sampleID is the id in recorded examples.
const sampleID = "0199c2f4-8a10-7c3e-9b52-5d1f0c6a7e21"

// sample returns a value for a parameter of a first call.
func (p parameter) sample(workspace string) any {
	byName := map[string]any{"name": "books", "format": "csv", "q": "silver"}
	switch {
	case p.Example != nil:
		return p.Example
	case len(p.Options) > 0:
		return p.Options[0]
	case p.Kind == "whole":
		return json.Number("1")
	case p.Name == "workspace_id" && strings.Trim(workspace, "0-") != "":
		return workspace
	case byName[p.Name] != nil:
		return byName[p.Name]
	default:
		return sampleID
	}
}

// withFirstIDs replaces each numeric id of an example by 1, which is more likely to exist.
func withFirstIDs(example any) any {
	switch e := example.(type) {
	case map[string]any:
		for name, value := range e {
			if _, is := value.(json.Number); is && (name == "id" || strings.HasSuffix(name, "_id") || strings.HasSuffix(name, "Id")) {
				e[name] = json.Number("1")
			} else {
				e[name] = withFirstIDs(value)
			}
		}
	case []any:
		for i, value := range e {
			e[i] = withFirstIDs(value)
		}
	}
	return example
}

// sampleFiles are names of files to upload, by operation.
var sampleFiles = map[string]string{
	"import-products": "catalog.csv", "import-messaging-contacts": "contacts.csv", "add-bot-file": "faq.txt",
}

// curl returns a command that calls the operation with the example's path and body. The command reads the server's address from the
// shell variable BAHI, and an API key from KEY.
func (o *operation) curl(workspace string) string {
	values, query := o.samples(workspace), url.Values{}
	path := variable.ReplaceAllStringFunc(o.Path, func(name string) string { return url.PathEscape(textOf(values[strings.Trim(name, "{}")])) })
	for _, p := range o.Params {
		if p.In == "query" && p.Required {
			query.Set(p.Name, textOf(values[p.Name]))
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	words := []string{"curl -sS"}
	if o.Method != http.MethodGet {
		words[0] += " -X " + o.Method
	}
	words[0] += o.output() + ` "$BAHI` + path + `"`
	if !o.Public {
		words = append(words, `-H "Authorization: Bearer $KEY"`)
	}
	switch {
	case o.Raw:
		words = append(words, `-H "Content-Type: application/octet-stream"`, "--data-binary '{}'")
	case o.Files:
		example, _ := o.Example.(map[string]any)
		for _, p := range o.Body.Properties {
			switch value := textOf(example[p.Name]); {
			case p.Kind == "file":
				words = append(words, "-F "+quoted(p.Name+"=@"+cmp.Or(sampleFiles[o.ID], "page.png")))
			case value == "" && p.Required && p.Kind == "whole": // an id
				words = append(words, "-F "+quoted(p.Name+"=1"))
			case value != "":
				words = append(words, "-F "+quoted(p.Name+"="+value))
			}
		}
	case o.Body != nil:
		body := cmp.Or(compact(o.Example), "{}")
		if len(body) > 72 {
			body = indent([]byte(body))
		}
		words = append(words, `-H "Content-Type: application/json"`, "-d "+quoted(body))
	}
	return strings.Join(words, " \\\n  ")
}

// output returns curl's options for the response: no buffering for a stream, and a file on disk for a binary.
func (o *operation) output() string {
	endings := map[string]string{
		"application/pdf": "pdf", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx", "image/png": "png",
	}
	for _, a := range o.Answers {
		if slices.Contains(a.Kinds, "text/event-stream") {
			return " -N"
		}
		for _, kind := range a.Kinds {
			if ending := endings[kind]; ending != "" {
				return " -o answer." + ending
			}
		}
	}
	return ""
}

// quoted returns a text as one word of a shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
