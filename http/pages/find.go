package pages

import (
	"net/url"
	"strings"
)

// findPage is the content of the page of search results.
type findPage struct {
	Query    string
	Accounts []map[string]any
	More     int        // accounts that match and are not shown
	Past     url.Values // none: the books of now
	Others   []*listPage
	Pages    []place
}

const (
	accountsFound = 20
	othersFound   = 10
)

// talks are the contacts by their conversations.
var talks = &resource{
	word: "conversations", list: "list-messaging-contacts", leads: inboxPath + "/",
	columns: []string{"name", "phone", "email", "lastMessageAt"},
}

// searches are the resources that are searched by a parameter of their lists.
var searches = []struct {
	name, needs, by, all string // all: address of all hits, empty for none; the text follows
	of                   *resource
	columns              []string
}{
	{"Orders with this slip number", "ledger:read", "slip_number", "", orderResource(), []string{"order", "client", "date"}},
	{"Drafts with this slip number", "ledger:read", "slip_number", "", draftResource(), []string{"draft", "from", "message"}},
	{"Conversations", "messaging:read", "search", inboxPath + "?q=", talks, talks.columns},
	{"Products", "marketplace:read", "search", Path + "/list/products?search=", products, []string{"name", "sku", "category"}},
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
		of := *s.of
		of.columns = s.columns
		d, in := v.desk(&of, false), &listPage{deskPage: deskPage{Title: s.name}}
		rows, _, _ := d.rows(url.Values{s.by: {shown.Query}}, 1, othersFound+1) // the text may be too long to search
		if len(rows) > othersFound {
			rows = rows[:othersFound]
			if s.all != "" {
				in.Older = s.all + url.QueryEscape(shown.Query)
			}
		}
		if d.draw(in, rows); len(rows) > 0 {
			shown.Others = append(shown.Others, in)
		}
	}
	wanted := strings.ToLower(shown.Query)
	for _, p := range v.places(may) {
		if strings.Contains(strings.ToLower(v.lang.t(p.Name)+" "+p.Name), wanted) {
			shown.Pages = append(shown.Pages, p)
		}
	}
	if len(shown.Accounts) == 1 && len(shown.Others)+len(shown.Pages) == 0 {
		return page{redirect: pathOf(shown.Accounts[0], nil)}
	}
	shown.More = total - len(shown.Accounts)
	return page{template: "find", title: "Find", body: shown}
}
