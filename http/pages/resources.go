package pages

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// resource is a kind of record with pages to list, read and change it. The pages are drawn from this description and from the OpenAPI
// document. The document has the labels, kinds of inputs, permissions, paging and headers of each operation. A resource has these pages:
//
//	GET  base/word              the list, with its filters, the form that adds a record, and the actions of the list
//	GET  base/word/{id}         a record: its values, the form that changes it, its actions, and links to its parts
//	POST to both                runs the operation that the form names by "do"
//	GET  base/word/{id}/part…   the same for the parts of a record
//
// The path of a list's operation has no variable, and that of a record's operation has the id. The paths of a part also begin with the
// id of the parent record. To add a resource, add an entry to a table that [Pages.resource] registers.
type resource struct {
	word   string // last part of the address: contacts
	base   string // address before it; empty: /app/list
	title  string // of the list
	about  string // purpose of the records; may be empty
	counts string // noun for the number beside the title; empty: the title
	button string // of the form that adds one: Add a contact

	list, get, create, edit, remove string // ids of operations; empty: none. Without get, the page searches the list

	columns []string          // fields of a record that its list shows; the first is its name
	fixed   url.Values        // fixed query of the list
	without []string          // fields that are neither shown nor in forms
	given   []string          // fields that are shown and not in forms
	by      string            // query parameter and field of the parent's id, if the path has no variable for it
	first   string            // filter that is always set, by default to its first choice
	lacks   string            // text of the page if filter first has no choices
	stream  string            // operation whose event stream reports changes of a part's list, or of a record
	events  string            // names of its events
	live    []string          // fields of a record that the stream updates; empty: the list
	flat    bool              // the records have no pages
	oldest  bool              // the API lists the oldest first; the page shows the newest first
	refs    map[string]string // kinds of the accounts that fields reference by text; contact: they reference contacts
	pdf     string            // operation that returns the list as a PDF
	public  bool              // a record is public; there is no list
	mails   bool              // its actions send mails
	single  bool              // one record, without a list
	shows   bool              // the response to create is shown, because it has values that are never shown again
	leads   string            // address prefix of links in the list, instead of the record's page; the id follows
	inline  bool              // the list's lines have the records' actions; records have pages only with get
	search  string            // operation that searches records by the parameter q
	again   int               // seconds until the records are read again

	kinds    map[string][]string                    // fields of the forms by record type, which the user chooses first
	note     func(record map[string]any) string     // hint about a record
	history  func(*desk, map[string]any) []change   // of a record, the newest change first
	more     func(*desk, map[string]any) any        // more data for the template "more-WORD" of record.html
	cells    string                                 // prefix of the templates of computed fields; empty: the page shows all fields
	weights  []string                               // computed fields that are weights
	find     func(*desk) (map[string]any, *problem) // returns a record, in place of get
	watch    func(map[string]any) bool              // reports whether the stream covers a record now
	own      func(*desk, sent) page                 // page of a record, or the only one
	actions  []action                               // of the list
	each     []action                               // of a record
	sections func(*visit) []place                   // links to the other pages of an area
	links    func(*desk, map[string]any) []choice   // to other pages about a record
	parts    []*resource                            // of a record
	parent   *resource                              // of a part
	when     func(map[string]any) bool              // reports whether a record has the part; nil: each has
}

// action is an operation that a form runs. Its inputs are the parameters of the operation's query and the fields of its body.
type action struct {
	operation string
	name      string // name in its form; empty: the operation
	button    string
	about     string                    // description
	did       string                    // word of the confirmation, see done
	reason    *reasonInput              // nil: the form asks for none
	another   bool                      // creates another record, so it ignores this one's revision
	danger    bool                      // cannot be undone
	shows     bool                      // the page shows the response
	edit      bool                      // the form starts with the record, and sends the differences
	when      func(map[string]any) bool // reports whether a record has the action; nil: each has
	body      func(map[string]any) any  // body without a form
	without   []string                  // fields that the form omits
	links     []choice                  // files that help to fill in the form

	fields  []string                                   // paths of the body's fields in the form; nil: all
	starts  func(*desk, map[string]any) map[string]any // initial values; those without an input are hidden
	fills   func(*desk, map[string]any)                // adds to the body what follows from its values
	preview func(*desk, map[string]any) *preview       // describes a dry run's response while the user types
	says    string                                     // template of the shown part of the response
	to      func(*desk, map[string]any) string         // returns the address of the next page from the response
}

// reasonInput is the input of a reason in a form: required, or with a hint to its purpose.
type reasonInput struct{ Hint, Value string }

var required = &reasonInput{}

// word returns the action's name in its form.
func (a action) word() string { return cmp.Or(a.name, a.operation) }

// asks reports whether the form has a field, or one inside it.
func (a action) asks(name string) bool {
	return slices.ContainsFunc(a.fields, func(path string) bool { return path == name || strings.HasPrefix(path, name+".") })
}

// starting returns the initial values of the form.
func (a action) starting(d *desk, record map[string]any) map[string]any {
	if a.starts == nil {
		return nil
	}
	return a.starts(d, record)
}

// resources are the resources of /app/list and /app/campaigns.
var resources = slices.Concat(messagingResources, marketplaceResources)

// resource registers the pages of a resource and of its parts.
func (p *Pages) resource(r *resource) {
	path := r.path()
	for _, method := range []string{"GET ", "POST "} {
		if r.base != Path+"/accounts" && !r.public {
			p.page(method+path, true, func(v *visit) page { return v.desk(r, false).serve() })
		}
		if r.leads == "" && !r.flat && !r.single && (!r.inline || r.get != "") {
			p.page(method+path+"/{record}", !r.public, func(v *visit) page { return v.desk(r, true).serve() })
		}
	}
	for _, part := range r.parts {
		part.parent = r
		p.resource(part)
	}
}

// path returns the address of the list, with a variable for the id of the parent.
func (r *resource) path() string {
	switch {
	case r.parent != nil:
		return r.parent.path() + "/{id}/" + r.word
	case r.base != "":
		return strings.TrimSuffix(r.base, "/") + "/" + r.word
	default:
		return Path + "/list/" + r.word
	}
}

// address returns the address of the list, or of a record.
func (r *resource) address(parent, id string) string {
	address := strings.Replace(r.path(), "{id}", url.PathEscape(parent), 1)
	if id != "" && !r.single {
		address += "/" + url.PathEscape(id)
	}
	return address
}

// forms returns the actions of a list or of a record.
func (r *resource) forms(record bool) (all []action) {
	if !record && r.create != "" {
		all = append(all, action{operation: r.create, button: r.button, did: "added", shows: r.shows})
	}
	if !record {
		return append(all, r.actions...)
	}
	if r.edit != "" {
		all = append(all, action{operation: r.edit, button: "Change", did: "changed", edit: true})
	}
	all = append(all, r.each...)
	if r.remove != "" {
		all = append(all, action{operation: r.remove, button: "Delete", about: "It cannot be brought back.", did: "delete", danger: true})
	}
	return all
}

// resourceOf returns the resource with a word, nil for none.
func resourceOf(word string) *resource {
	i := slices.IndexFunc(resources, func(r *resource) bool { return r.word == word })
	if i < 0 {
		return nil
	}
	return resources[i]
}

// linked are the resources by the field that has their records' ids.
var linked = map[string]string{
	"audience": "lists", "channelId": "channels", "channelIds": "channels", "company_id": "companies",
	"contactId": "contacts", "contact_id": "contacts",
	"listId": "lists", "listIds": "lists", "templateId": "templates",
}

// routes registers all pages.
func (p *Pages) routes() {
	p.mux.HandleFunc("GET "+Path+"/assets/{file}", p.asset)
	p.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		p.serve(w, r, false, func(v *visit) page { return v.deny(errNoPage) })
	})
	p.verifyRoutes(builtVerifier)
	toEnquiries := func(v *visit) page { return page{redirect: Path + v.r.URL.EscapedPath()} } // mails link to them
	for pattern, answer := range map[string]func(*visit) page{
		"GET /app/sign-in":          (*visit).signInPage,
		"POST /app/sign-in":         (*visit).signIn,
		"POST /app/sign-out":        (*visit).signOut,
		"POST /app/look":            (*visit).look,
		"GET /app/sign-in/provider": (*visit).toProvider,
		"GET " + callback:           (*visit).fromProvider,
		"POST " + callback:          (*visit).fromProvider,
		"GET /docs":                 (*visit).docs,
		"GET /docs/guides/{name}":   (*visit).docsGuide,
		"GET /docs/{operation}":     (*visit).docsOperation,
		"POST /docs/{operation}":    (*visit).tryOperation,
		"GET /enquiries":            toEnquiries,
		"GET /enquiries/{id}":       toEnquiries,
	} {
		p.page(pattern, false, answer)
	}
	for _, d := range doors {
		answer := func(v *visit) page { return v.door(d) }
		p.page("GET "+d.Path, false, answer)
		p.page("POST "+d.Path, false, answer)
	}
	for pattern, answer := range map[string]func(*visit) page{
		"GET /app/{$}":                            (*visit).today,
		"POST /app/workspace":                     func(v *visit) page { return v.enterWorkspace(v.r.PostForm.Get("workspace"), false) },
		"GET /app/find":                           (*visit).find,
		"GET /app/accounts":                       func(v *visit) page { return v.accountList(accountsPage{}, 0) },
		"POST /app/accounts":                      (*visit).openAccount,
		"GET /app/accounts/{kind}/{id}/statement": (*visit).statement,
		"GET /app/rows/{row}":                     (*visit).anyRow,
		"GET /app/daybook":                        (*visit).daybook,
		"GET /app/trial-balance":                  (*visit).trialBalance,
		"GET /app/audit":                          (*visit).trail,
		"GET /app/drafts/{record}":                func(v *visit) page { return v.desk(draftResource(), true).serve() },
		"POST /app/drafts/{record}":               (*visit).editDraft,
		"GET /app/khata":                          func(v *visit) page { return v.khataList(0, "") },
		"POST /app/khata":                         (*visit).uploadKhata,
		"GET /app/khata/{id}":                     func(v *visit) page { return v.showKhata(khataPage{Upload: v.upload()}, nil, nil, 0) },
		"POST /app/khata/{id}":                    (*visit).checkKhata,
		"GET /app/inbox":                          func(v *visit) page { return page{template: "inbox", title: "Inbox", body: v.people("")} },
		"GET /app/inbox/{contact}":                func(v *visit) page { return v.showTalk(attempt{message: v.greeting()}) },
		"POST /app/inbox/{contact}":               (*visit).editContact,
		"POST /app/inbox/{contact}/messages":      (*visit).sendMessage,
		"GET /app/list/channels/{id}/try":         (*visit).tryWidget,
		"GET /app/operate":                        (*visit).operate,
		"GET /contacts/{id}":                      (*visit).toContact,
	} {
		p.page(pattern, true, answer)
	}
	others := []*resource{
		orderResource(), draftResource(), transferResource(), partiesResource(), confirmationResource(), enquiryResource(),
	}
	for _, k := range kinds {
		others = append(others, accountResource(k.Value))
	}
	for _, r := range slices.Concat(resources, others, settingsResources(), goodsResources(), operateResources()) {
		p.resource(r)
	}
}
