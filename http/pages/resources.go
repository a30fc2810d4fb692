package pages

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
)

// resource is a kind of records that people list, read and change. The pages of a resource are drawn from this description and from
// the OpenAPI document, which has the labels, the kinds of inputs, the permissions, the paging and the headers of each operation. A
// resource has these pages:
//
//	GET  base/word              the list, with its filters, the form that adds a record, and the actions of the list
//	GET  base/word/{id}         a record: its values, the form that changes it, its actions, and links to its parts
//	POST to both                runs the operation that the form names by "do"
//	GET  base/word/{id}/part…   the same for the parts of a record
//
// The operations of a list have no variable in their path, those of a record one: its id. The operations of a part have the id of
// the record before these. To add a resource, add an entry to a table that [Pages.resource] registers.
type resource struct {
	word   string // last part of the address: contacts
	base   string // address before it; empty: /app/list
	title  string // of the list
	about  string // what the records are for; may be empty
	button string // of the form that adds one: Add a contact

	list, get, create, edit, remove string // ids of operations; empty: there is none. Without get, a record is found in its list

	columns []string          // fields of a record that its list shows; the first is its name
	fixed   url.Values        // query of the list in any case
	without []string          // fields that are neither shown nor asked for
	given   []string          // fields that are shown and not asked for
	by      string            // query parameter and field for the id of the parent, where the operations have no variable for it
	first   string            // filter that is always set, if need be to the first record or word that it can have
	lacks   string            // what is said if there is no such record
	stream  string            // operation whose event stream says that the list of a part, or a record, has changed
	events  string            // names of its events
	live    []string          // fields of a record that the stream is about; empty: of the list
	flat    bool              // its records have no page
	oldest  bool              // the list begins with the oldest record; people see the newest first
	refs    map[string]string // kinds of the accounts that fields name by a text
	pdf     string            // operation that gives the list as a PDF
	public  bool              // everybody sees a record; it has no list
	single  bool              // it is one record, without a list
	one     url.Values        // query of get in any case
	shows   bool              // the answer to create is shown, since it has what is never shown again
	leads   string            // address to which names in the list lead instead of the record's page; the id follows
	inline  bool              // the lines of its list have the actions of the records, which have a page only if there is get
	search  string            // operation that finds records by words; it has the parameter q
	again   int               // seconds after which the records are read again

	kinds    map[string][]string                                        // fields of the forms by the record's type, which is chosen first
	note     func(record map[string]any) string                         // what a visitor should know of a record
	history  func(*desk, map[string]any) []change                       // of a record, the newest change first
	more     func(*desk, map[string]any) any                            // data for the template "more-WORD" of record.html
	cells    map[string]cell                                            // fields that are computed; a page shows only these
	find     func(*desk) (map[string]any, error)                        // returns a record, in place of get
	apart    func(l language, theirs, mine map[string]any) []difference // what differs in two versions
	watch    func(map[string]any) bool                                  // reports whether stream is about a record now
	own      func(*desk, sent) page                            // page in place of the list
	actions  []action                                                   // of the list
	each     []action                                                   // of a record
	sections func(*visit) []choice                                      // links to the other pages of an area
	links    func(*desk, map[string]any) []choice                       // to other pages about a record
	parts    []*resource                                                // of a record
	parent   *resource                                                  // of a part
	when     func(map[string]any) bool                                  // reports whether a record has the part; nil: each has
}

// cell returns a value that is computed from a record.
type cell func(*desk, map[string]any) display

// action is an operation that a form runs. Its inputs are the parameters of the operation's query and the fields of its body.
type action struct {
	operation string
	name      string // by which its form names it; empty: the operation
	button    string
	about     string                    // what it does
	did       string                    // word of the confirmation, see done
	reason    bool                      // the form asks for one
	another   bool                      // it makes another record, so it does not depend on the revision of this one
	because   string                    // what a reason is for that may be left out
	danger    bool                      // it cannot be taken back
	shows     bool                      // its answer is shown on the page
	edit      bool                      // the form starts with the record, and sends what differs
	when      func(map[string]any) bool // reports whether a record has the action; nil: each has
	body      func(map[string]any) any  // body without a form
	without   []string                  // fields that are not asked for
	links     []choice                  // addresses of files that help to fill the form

	fields  []string                                   // paths of the fields of the body that are asked for; nil: all
	starts  func(*desk, map[string]any) map[string]any // values with which the form starts; those that are not asked for are hidden
	preview func(*desk, map[string]any) *preview       // says what the answer of a dry run comes to, while somebody types
	says    func(*desk, map[string]any) display        // what is shown of the answer
	to      func(*desk, map[string]any) string         // returns the address of the next page by the response
}

// word returns what a form names the action by.
func (a action) word() string { return cmp.Or(a.name, a.operation) }

// asks reports whether the form asks for a field, or for one in it.
func (a action) asks(name string) bool {
	return slices.ContainsFunc(a.fields, func(path string) bool { return path == name || strings.HasPrefix(path, name+".") })
}

// starting returns the values with which the form starts.
func (a action) starting(d *desk, record map[string]any) map[string]any {
	if a.starts == nil {
		return nil
	}
	return a.starts(d, record)
}

// resources are the resources of /app/list and /app/campaigns.
var resources = slices.Concat(messagingResources, marketplaceResources)

// resourceRoutes registers the pages of all resources.
func (p *Pages) resourceRoutes() {
	p.member("GET /app/list/channels/{id}/try", (*visit).tryWidget)
	for _, r := range append(settingsResources(), enquiryResource(), partiesResource(), confirmationResource()) {
		p.resource(r)
	}
	for _, r := range resources {
		p.resource(r)
	}
}

// resource registers the pages of a resource and of its parts.
func (p *Pages) resource(r *resource) {
	path := r.path()
	for _, method := range []string{"GET ", "POST "} {
		if r.public {
			p.open(method+path+"/{id}", func(v *visit) page { return v.desk(r, true).serve() })
			continue
		}
		p.member(method+path, func(v *visit) page { return v.desk(r, false).serve() })
		if r.leads == "" && !r.flat && !r.single && (!r.inline || r.get != "") {
			p.member(method+path+"/{"+r.variable()+"}", func(v *visit) page { return v.desk(r, true).serve() })
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

// variable returns the name of the path's variable for the id of a record.
func (r *resource) variable() string {
	if r.parent != nil {
		return "part"
	}
	return "id"
}

// address returns the address of the list, or of a record.
func (r *resource) address(parent, id string) string {
	address := strings.Replace(r.path(), "{id}", url.PathEscape(parent), 1)
	if id != "" && !r.single {
		address += "/" + url.PathEscape(id)
	}
	return address
}

// listActions returns what the forms of the list do, and recordActions those of a record.
func (r *resource) listActions() (all []action) {
	if r.create != "" {
		all = append(all, action{operation: r.create, button: r.button, did: "added", shows: r.shows})
	}
	return append(all, r.actions...)
}

func (r *resource) recordActions() (all []action) {
	if r.edit != "" {
		all = append(all, action{operation: r.edit, button: "Change", did: "changed", edit: true})
	}
	all = append(all, r.each...)
	if r.remove != "" {
		all = append(all, action{operation: r.remove, button: "Delete", about: "It cannot be brought back.", did: "delete", danger: true})
	}
	return all
}

// linked are the resources whose records a field names by their ids.
var linked = map[string]string{
	"audience": "lists", "channelId": "channels", "channelIds": "channels", "company_id": "companies",
	"contactId": "contacts", "contact_id": "contacts",
	"listId": "lists", "listIds": "lists", "templateId": "templates",
}
