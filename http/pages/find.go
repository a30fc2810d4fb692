package pages

import (
	"cmp"
	"net/url"
	"strings"
)

// findPage is the content of the page of search results.
type findPage struct {
	Query    string
	Accounts []accountLine
	More     int // accounts that match and are not shown
	Others   []foundIn
}

// foundIn are the hits of an area.
type foundIn struct {
	Name, All string // All: address of all hits; empty if all are shown
	Hits      []hit
}

// hit is a search result.
type hit struct{ Name, About, Link string }

const (
	accountsFound = 20
	othersFound   = 10
)

// searches are the operations that search, by area.
var searches = []struct {
	name, needs, operation string
	by, size               string   // parameters for the text and for the number of records
	all, link              string   // all: empty for none
	title, about           []string // fields; the first with a value counts
}{
	{"Orders with this slip number", "ledger:read", "list-client-orders", "slip_number", "page_size", "", Path + "/orders/",
		[]string{"client_name"}, []string{"date"}},
	{"Drafts with this slip number", "ledger:read", "list-order-drafts", "slip_number", "page_size", "", Path + "/drafts/",
		[]string{"phone_number", "id"}, []string{"raw_message"}},
	{"Conversations", "messaging:read", "list-messaging-contacts", "search", "limit", Path + "/inbox?q=", Path + "/inbox/",
		[]string{"name", "phone", "email"}, []string{"phone", "email"}},
	{"Products", "marketplace:read", "list-products", "search", "limit", Path + "/list/products?search=", Path + "/list/products/",
		[]string{"name"}, []string{"sku", "category"}},
}

// find searches accounts, people, products and pages. It redirects to the account if only one matches.
func (v *visit) find() page {
	shown, may := findPage{Query: strings.TrimSpace(v.r.URL.Query().Get("q"))}, v.permissions()
	if shown.Query == "" {
		return page{template: "find", title: "Find", body: shown}
	}
	total := 0
	if may["ledger:read"] {
		shown.Accounts, total, _ = v.accountsNamed(shown.Query, "", 1, accountsFound)
	}
	for _, s := range searches {
		if !may[s.needs] {
			continue
		}
		var found any
		v.ask(s.operation, request{query: url.Values{s.by: {shown.Query}, s.size: {"11"}}}, &found) // the text may be too long to search
		all, _ := listOf(found)
		in := foundIn{Name: s.name}
		for _, f := range entriesOf(all) {
			if len(in.Hits) == othersFound {
				if s.all != "" {
					in.All = s.all + url.QueryEscape(shown.Query)
				}
				break
			}
			for _, key := range []string{"phone", "phone_number"} {
				if number := textOf(f[key]); number != "" {
					f[key] = phone(number)
				}
			}
			h := hit{firstOf(f, s.title), firstOf(f, s.about), s.link + url.PathEscape(textOf(f["id"]))}
			if h.About == h.Name {
				h.About = ""
			}
			if s.about[0] == "date" {
				h.About = v.lang.day(h.About)
			}
			in.Hits = append(in.Hits, h)
		}
		shown.add(in)
	}
	in, wanted := foundIn{Name: "Pages"}, strings.ToLower(shown.Query)
	for _, p := range v.places(may) {
		if name := v.lang.t(p.Name); strings.Contains(strings.ToLower(name+" "+p.Name), wanted) {
			in.Hits = append(in.Hits, hit{Name: name, Link: p.Link})
		}
	}
	shown.add(in)
	if len(shown.Accounts) == 1 && len(shown.Others) == 0 {
		return page{redirect: shown.Accounts[0].Link}
	}
	shown.More = total - len(shown.Accounts)
	return page{template: "find", title: "Find", body: shown}
}

// add adds the hits of an area, if any.
func (f *findPage) add(in foundIn) {
	if len(in.Hits) > 0 {
		f.Others = append(f.Others, in)
	}
}

// firstOf returns the first of the fields that has a value.
func firstOf(record map[string]any, fields []string) string {
	var values []string
	for _, name := range fields {
		values = append(values, textOf(record[name]))
	}
	return cmp.Or(values...)
}
