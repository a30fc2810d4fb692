package pages

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"bahi/http/api"
)

// place is a page linked in the head of each page.
type place struct {
	Name, Link string
	needs      string // permission; empty: everybody
	More       bool   // shown in the menu
	Here       bool   // the current page is below it
}

var places = []place{
	{Name: "Today", Link: Path + "/"},
	{Name: "Accounts", Link: Path + "/accounts", needs: "ledger:read"},
	{Name: "Orders", Link: Path + "/orders", needs: "ledger:read"},
	{Name: "Inbox", Link: Path + "/inbox", needs: "messaging:read"},
	{Name: "Operate", Link: Path + "/operate", needs: "operator"},
	{Name: "Daybook", Link: Path + "/daybook", needs: "ledger:read", More: true},
	{Name: "Transfers", Link: Path + "/transfers", needs: "ledger:read", More: true},
	{Name: "Trial balance", Link: Path + "/trial-balance", needs: "ledger:read", More: true},
	{Name: "Drafts", Link: Path + "/drafts", needs: "ledger:read", More: true},
	{Name: "Khata pages", Link: Path + "/khata", needs: "ledger:read", More: true},
	{Name: "Parties", Link: Path + "/list/parties", needs: "ledger:read", More: true},
	{Name: "Confirmations", Link: Path + "/confirmations", needs: "ledger:read", More: true},
	{Name: "Trail", Link: Path + "/audit", needs: "audit:read", More: true},
	{Name: "Enquiries", Link: Path + "/enquiries", needs: "marketplace:read", More: true},
	{Name: "Companies", Link: Path + "/list/companies", needs: "marketplace:read", More: true},
	{Name: "Products", Link: Path + "/list/products", needs: "marketplace:read", More: true},
	{Name: "Contacts", Link: Path + "/list/contacts", needs: "messaging:read", More: true},
	{Name: "Contact lists", Link: Path + "/list/lists", needs: "messaging:read", More: true},
	{Name: "Campaigns", Link: Path + "/campaigns", needs: "messaging:read", More: true},
	{Name: "Message templates", Link: Path + "/list/templates", needs: "messaging:read", More: true},
	{Name: "Channels", Link: Path + "/list/channels", needs: "messaging:read", More: true},
	{Name: "Bots", Link: Path + "/list/bots", needs: "messaging:read", More: true},
	{Name: "Settings", Link: Path + "/settings", More: true},
}

// Places returns the pages that the visitor may see.
func (v *visit) Places() []place {
	seen := allowed(places, v.permissions())
	for i, p := range seen {
		seen[i].Here = p.Link == v.r.URL.Path || p.Link != Path+"/" && strings.HasPrefix(v.r.URL.Path, p.Link+"/")
	}
	return seen
}

// allowed returns the places that permissions open.
func allowed(all []place, may map[string]bool) []place {
	return slices.DeleteFunc(slices.Clone(all), func(p place) bool { return p.needs != "" && !may[p.needs] })
}

// todo is a kind of open tasks.
type todo struct {
	Count      int
	Text, Link string
}

// todos are the kinds of open tasks, with the operations that list and count them.
var todos = []struct {
	needs, operation string
	query            url.Values
	todo
}{
	{"ledger:read", "list-order-drafts", url.Values{}, todo{0, "Drafts to check", Path + "/drafts"}},
	{"ledger:read", "list-khata-uploads", url.Values{"waiting": {"true"}}, todo{0, "Khata pages to post", Path + "/khata"}},
	{"messaging:read", "list-messaging-contacts", url.Values{"sort": {"recent"}, "unread": {"true"}},
		todo{0, "Unread conversations", Path + "/inbox"}},
	{"marketplace:read", "list-enquiries", url.Values{"status": {"pending"}}, todo{0, "New enquiries", Path + "/enquiries?status=pending"}},
}

// toDo returns the open tasks that the visitor may read.
func (v *visit) toDo() (waiting []todo) {
	may := v.permissions()
	for _, t := range todos {
		if may[t.needs] {
			_, t.Count, _ = v.paged(t.operation, request{query: t.query}, 1, 1)
		}
		if t.Count > 0 {
			waiting = append(waiting, t.todo)
		}
	}
	return waiting
}

// today shows who owes what, and the rows of today or the state of an earlier time.
func (v *visit) today() page {
	past, query := v.past(), v.past()
	body := map[string]any{"Past": past, "Day": cmp.Or(past.Get("as_of"), v.Today())}
	if len(past) == 0 {
		body["ToDo"] = v.toDo()
		query.Set("newest", strconv.Itoa(rowsShown/2)) // half the time to draw; the daybook has all
	}
	var out api.Response
	if v.permissions()["ledger:read"] {
		var summary map[string]any
		out, body["Wrong"] = v.asked("get-books-summary", request{query: query}, &summary)
		body["Summary"] = summary
	}
	return page{template: "today", title: "Today", status: out.Status, body: body}
}

// owings returns the amounts that are not zero.
func owings(cash, metal any) []string {
	texts := []string{charge(cash), grams(nonzero(metal))}
	return slices.DeleteFunc(texts, func(text string) bool { return text == "" })
}

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
		query := v.past()
		query.Set("search", shown.Query)
		shown.Accounts, total, _ = v.paged("list-accounts", request{query: query}, 1, accountsFound)
	}
	for _, s := range searches {
		if !may[s.needs] {
			continue
		}
		of := *s.of
		of.columns, of.oldest = s.columns, false
		d, in := v.desk(&of, false), &listPage{deskPage: deskPage{Title: s.name}}
		rows, _, _ := d.rows(url.Values{s.by: {shown.Query}}, 1, othersFound+1) // the text may be too long to search
		if len(rows) > othersFound {
			rows = rows[:othersFound]
			if s.all != "" {
				in.Older = s.all + url.QueryEscape(shown.Query)
			}
		}
		if d.draw(in, rows, sent{}); len(rows) > 0 {
			shown.Others = append(shown.Others, in)
		}
	}
	wanted := strings.ToLower(shown.Query)
	for _, p := range v.Places() {
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

// report is the content of a page that prints an operation's response.
type report struct {
	Asked  url.Values // parameters of the operation
	Answer map[string]any
	More   bool // the page omits records; the files have all
	Wrong  []string

	file   *url.URL // without its format
	status int
}

// File returns the address of the report as a file.
func (r *report) File(format string) string {
	return withQuery(withQuery(r.file.Path, r.file.Query()), url.Values{"format": {format}})
}

// report runs the operation of a report.
func (v *visit) report(operation string, asked url.Values) *report {
	r := &report{Asked: asked, file: v.address(operation, request{query: asked})}
	out, wrong := v.asked(operation, request{query: asked}, &r.Answer)
	r.Wrong, r.status = wrong, out.Status
	return r
}

// reportOf runs the operation of a report of a period. A page shows at most a number of days; the files have all.
func (v *visit) reportOf(operation string, days int, asked url.Values) *report {
	from, to, cut := v.period(days)
	asked.Set("to", to)
	asked.Set("from", cmp.Or(v.r.URL.Query().Get("from"), from))
	file := v.address(operation, request{query: asked})
	asked.Set("from", from)
	r := v.report(operation, asked)
	r.file, r.More = file, cut
	return r
}

// period returns the requested period, by default the last week. It reports whether it shortened a period that is too long for a page.
func (v *visit) period(most int) (from, to string, cut bool) {
	q := v.r.URL.Query()
	to = cmp.Or(q.Get("to"), max(q.Get("from"), v.Today()))
	last, err := time.Parse(time.DateOnly, to)
	if err != nil {
		return q.Get("from"), to, false // the operation returns the error
	}
	from = cmp.Or(q.Get("from"), last.AddDate(0, 0, -6).Format(time.DateOnly))
	if first := last.AddDate(0, 0, 1-most).Format(time.DateOnly); len(from) == len(first) && from < first {
		return first, to, true
	}
	return from, to, false
}

const (
	daybookDays   = 92
	daybookRows   = 500
	statementRows = 500
)

// daybook shows the rows of all ledgers by date.
func (v *visit) daybook() page {
	r := v.reportOf("get-daybook", daybookDays, url.Values{})
	days := entriesOf(r.Answer["days"])
	left := daybookRows
	for i, day := range days {
		if left -= len(entriesOf(day["rows"])); left < 0 {
			days, r.More = days[:i], true
			break // a shortened day would not match its totals
		}
	}
	body := map[string]any{"Report": r, "Days": days, "Lock": v.one("get-books-lock")}
	return page{template: "daybook", title: "Daybook", status: r.status, body: body}
}

func (v *visit) trialBalance() page {
	r := v.report("get-trial-balance", v.past())
	return page{template: "trial-balance", title: "Trial balance", status: r.status, body: r}
}

// statement shows an account for print, the oldest row first.
func (v *visit) statement() page {
	kind, id := v.r.PathValue("kind"), v.r.PathValue("id")
	if kindName(kind) == "" {
		return v.deny(errNoPage)
	}
	asked := v.chosen("as_of", "known_at", "from", "to")
	r := &report{Asked: maps.Clone(asked)}
	asked.Set("page_size", strconv.Itoa(statementRows))
	var rows []map[string]any
	out, wrong := v.asked("read-"+kind+"-ledger", request{vars: []string{id}, query: asked}, &rows)
	r.Wrong, r.More = wrong, totalOf(out) > len(rows)
	var lines []rowLine
	for _, row := range rows {
		lines = append(lines, v.lang.lineOf(kind, row))
	}
	past := v.past()
	if to := asked.Get("to"); to != "" && (!past.Has("as_of") || to < past.Get("as_of")) {
		past.Set("as_of", to)
	}
	account, _ := v.accountOf(kind, id, past)
	var totals map[string]any
	delete(asked, "page_size")
	if wrong == nil {
		v.read("total-"+kind+"-statement", request{vars: []string{id}, query: asked}, &totals)
	}
	body := map[string]any{
		"Totals": totals, "Report": r, "Account": account, "Past": past, "Link": pagePath("accounts", kind, id), "Rows": lines,
		"Files": strings.TrimSuffix(v.address("get-"+kind+"-statement", request{vars: []string{id}}).Path, "pdf"),
	}
	return page{template: "statement", title: "Statement", status: out.Status, body: body}
}

const (
	trailDays    = 31
	trailChanges = 300
)

// trail shows the changes of a period, the newest first.
func (v *visit) trail() page {
	asked := v.chosen("user")
	if v.who.Permissions.Operator {
		asked.Set("workspace", v.who.Workspace.String())
	}
	r := v.reportOf("read-trail", trailDays, asked)
	lines := []trailLine{}
	changes := entriesOf(r.Answer["changes"])
	if r.More = r.More || len(changes) > trailChanges; r.More {
		changes = changes[max(0, len(changes)-trailChanges):]
	}
	for _, c := range slices.Backward(changes) {
		lines = append(lines, v.trailLine(c))
	}
	body := map[string]any{"Report": r, "Changes": lines, "Members": v.actors("user")}
	return page{template: "audit", title: "Trail", status: r.status, body: body}
}

// entered returns a row of the daybook with its account.
func (l language) entered(r map[string]any) rowLine {
	line := l.lineOf(textOf(r["kind"]), inner(r, "row"))
	line.Of, line.AccountLink = r, pagePath("accounts", r["kind"], r["account_id"])
	line.Link = pagePath("accounts", r["kind"], r["account_id"], "rows", line.Row["id"])
	return line
}
