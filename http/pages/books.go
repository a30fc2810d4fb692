package pages

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"bahi/domain/fault"
)

// kinds are the kinds of accounts, as operations name them, with the words for people.
var kinds = []choice{
	{"bank", "Bank", false}, {"bullion", "Bullion dealer", false}, {"client", "Client", false},
	{"karigar", "Karigar", false}, {"polisher", "Polisher", false},
}

func kindName(kind string) string {
	for _, k := range kinds {
		if k.Value == kind {
			return k.Text
		}
	}
	return ""
}

// kind returns the kind of account that the path names.
func (v *visit) kind() (string, error) {
	kind := v.r.PathValue("kind")
	if kindName(kind) == "" {
		return "", errNoPage
	}
	return kind, nil
}

// day returns today's date in the workshop.
func (v *visit) day() string { return v.Now().In(v.Zone).Format(time.DateOnly) }

// past returns the moment that the visitor asks for: as_of a day, known_at a position or time.
func (v *visit) past() url.Values {
	query := url.Values{}
	for _, name := range []string{"as_of", "known_at"} {
		if value := v.r.URL.Query().Get(name); value != "" {
			query.Set(name, value)
		}
	}
	return query
}

// owedOf is what the accounts of a kind owe, and are owed.
type owedOf struct {
	Kind, Name, Accounts  string
	WeOwe, TheyOwe, InAll []string
}

// todayPage is the content of the first page.
type todayPage struct {
	Day    string
	Owed   []owedOf
	Rows   []rowLine
	Closes string
}

// today shows who owes what, and the rows of today.
func (v *visit) today() (page, error) {
	shown := todayPage{Day: v.day()}
	if !v.permissions()["ledger:read"] {
		return page{template: "today", title: "Today", body: shown}, nil
	}
	var summary struct {
		Kinds []struct {
			Kind     string         `json:"kind"`
			Accounts any            `json:"accounts"`
			Cash     map[string]any `json:"cash"`
			Crystal  map[string]any `json:"crystal"`
		} `json:"kinds"`
	}
	if _, err := v.call("get-books-summary", request{}, &summary); err != nil {
		return page{}, err
	}
	for _, k := range summary.Kinds {
		o := owedOf{Kind: k.Kind, Name: kindName(k.Kind), Accounts: plain(k.Accounts)}
		if k.Kind == "bank" {
			for _, b := range v.lang.balancesOf("bank", map[string]any{"balance": k.Cash["net"]}) {
				o.InAll = append(o.InAll, strings.TrimSpace(b.Figure+" "+b.Words))
			}
		} else {
			o.WeOwe = owings(k.Cash["we_owe"], k.Crystal["we_owe"])
			o.TheyOwe = owings(k.Cash["they_owe"], k.Crystal["they_owe"])
			if len(o.WeOwe)+len(o.TheyOwe) == 0 {
				o.InAll = []string{v.lang.t("settled")}
			}
		}
		shown.Owed = append(shown.Owed, o)
	}
	var book struct {
		Days []struct {
			Rows []struct {
				Kind    string         `json:"kind"`
				Account any            `json:"account_id"`
				Name    string         `json:"account_name"`
				Row     map[string]any `json:"row"`
			} `json:"rows"`
		} `json:"days"`
	}
	if _, err := v.call("get-daybook", request{query: url.Values{"from": {shown.Day}, "to": {shown.Day}}}, &book); err != nil {
		return page{}, err
	}
	for _, day := range book.Days {
		for _, r := range slices.Backward(day.Rows) {
			line := v.lineOf(r.Kind, r.Row)
			line.Account, line.Link = r.Name, accountPath(r.Kind, plain(r.Account))+"/rows/"+line.ID
			if shown.Rows = append(shown.Rows, line); len(shown.Rows) == rowsShown {
				break
			}
		}
	}
	return page{template: "today", title: "Today", body: shown}, nil
}

// owings returns the amounts that are not zero.
func owings(cash, metal any) (texts []string) {
	if amount, known := toDecimal(cash); known && !amount.IsZero() {
		texts = append(texts, rupees(cash))
	}
	if weight, known := toDecimal(metal); known && !weight.IsZero() {
		texts = append(texts, grams(metal))
	}
	return texts
}

// accountLine is an account in a list.
type accountLine struct {
	Kind, KindName, ID, Name, Link string
	Balances                       []balance
}

// accountsPage is the content of the list of accounts.
type accountsPage struct {
	Query, Kind string
	Kinds       []choice
	Accounts    []accountLine
	More        int // accounts that match and are not shown
	Name, Type  string
	Wrong       string
}

const (
	accountsShown = 200
	rowsShown     = 30
)

func accountPath(kind, id string) string {
	return Path + "/accounts/" + url.PathEscape(kind) + "/" + url.PathEscape(id)
}

// accounts lists the accounts of all kinds. The find field of other pages goes on to the account that alone has the name.
func (v *visit) accounts() (page, error) { return v.accountList(accountsPage{}, 0) }

func (v *visit) accountList(shown accountsPage, status int) (page, error) {
	q := v.r.URL.Query()
	shown.Query, shown.Kind = strings.TrimSpace(q.Get("q")), q.Get("kind")
	wanted := strings.ToLower(shown.Query)
	for _, k := range kinds {
		k.Chosen = k.Value == shown.Kind
		shown.Kinds = append(shown.Kinds, k)
		if shown.Kind != "" && !k.Chosen {
			continue
		}
		var all []map[string]any
		if _, err := v.call("list-"+k.Value+"s", request{query: v.past()}, &all); err != nil {
			return page{}, err
		}
		for _, a := range all {
			name, id := textOf(a["name"]), plain(a["id"])
			if strings.Contains(strings.ToLower(name), wanted) {
				shown.Accounts = append(shown.Accounts, accountLine{k.Value, k.Text, id, name, accountPath(k.Value, id), v.lang.balancesOf(k.Value, a)})
			}
		}
	}
	slices.SortFunc(shown.Accounts, func(a, b accountLine) int {
		return cmp.Or(strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)), strings.Compare(a.Kind, b.Kind))
	})
	if q.Get("go") != "" && len(shown.Accounts) == 1 {
		return page{redirect: shown.Accounts[0].Link}, nil
	}
	if len(shown.Accounts) > accountsShown {
		shown.Accounts, shown.More = shown.Accounts[:accountsShown], len(shown.Accounts)-accountsShown
	}
	return page{template: "accounts", title: "Accounts", status: status, body: shown}, nil
}

// openAccount opens an account.
func (v *visit) openAccount() (page, error) {
	form := v.r.PostForm
	kind, name := form.Get("kind"), form.Get("name")
	if kindName(kind) == "" {
		return page{}, errNoPage
	}
	body := map[string]any{"name": name}
	if kind == "polisher" {
		work, err := strconv.Atoi(form.Get("type"))
		if err != nil {
			return page{}, fault.New(fault.Invalid, "Choose the polisher's work")
		}
		body["type"] = work
	}
	var opened map[string]any
	out, err := v.call("open-"+kind, request{body: body, key: form.Get("key")}, &opened)
	if refused := refusal(err); refused != nil {
		return v.accountList(accountsPage{Name: name, Type: form.Get("type"), Wrong: detail(refused)}, refused.Status)
	}
	if err != nil {
		return page{}, err
	}
	return page{redirect: after(out, accountPath(kind, plain(opened["id"])), "opened")}, nil
}

// detail returns what is wrong, with the fields' messages.
func detail(p *problem) string {
	text := p.Detail
	for _, f := range p.Errors {
		text += "; " + labelOf(f.Field) + ": " + f.Message
	}
	return text
}

// rowLine is a row in a list.
type rowLine struct {
	ID, Date, Link, Account string
	Received, Given         []string // an entry each, in words
	Balances                []balance
	Void                    bool
	Reverses, ReversedBy    string
}

// lineOf returns a row as a list shows it.
func (v *visit) lineOf(kind string, row map[string]any) rowLine {
	line := rowLine{
		ID: plain(row["id"]), Date: textOf(row["date"]), Balances: v.lang.balancesOf(kind, row), Void: row["void"] == true,
		Reverses: plain(row["reverses"]), ReversedBy: plain(row["reversed_by"]),
	}
	for _, e := range entriesOf(row["in_entries"]) {
		line.Received = append(line.Received, v.lang.line(e))
	}
	for _, e := range entriesOf(row["out_entries"]) {
		line.Given = append(line.Given, v.lang.line(e))
	}
	return line
}

// accountPage is the content of the page of an account.
type accountPage struct {
	Kind, KindName, ID, Name, Revision, Link string
	Balances                                 []balance
	Rows                                     []rowLine
	Newer, Older                             int // numbers of pages, 0: none
	AsOf, KnownAt                            string
	Fields                                   []field
	Side                                     string
	Undo                                     string // the row that was added last
	Wrong                                    []string
	Preview                                  *preview
	Key                                      string // of the form that was refused
}

// preview is what a change would do.
type preview struct {
	Balances []balance
	Computed []choice // the inputs' names and their values
	Says     []string // what it comes to, in words
	Warnings []string
	Wrong    []string
}

func (v *visit) account() (page, error) {
	return v.showAccount(accountPage{}, map[string]any{}, nil, 0)
}

// showAccount shows an account and the form for a new row, with the body and faults of a refused one.
func (v *visit) showAccount(shown accountPage, body map[string]any, faults map[string]string, status int) (page, error) {
	kind, err := v.kind()
	if err != nil {
		return page{}, err
	}
	id, past := v.r.PathValue("id"), v.past()
	var of map[string]any
	if _, err := v.call("get-"+kind, request{vars: []string{id}, query: past}, &of); err != nil {
		return page{}, err
	}
	shown.Kind, shown.KindName, shown.ID, shown.Name, shown.Link = kind, kindName(kind), id, textOf(of["name"]), accountPath(kind, id)
	shown.Revision, shown.Balances = plain(of["revision"]), v.lang.balancesOf(kind, of)
	shown.AsOf, shown.KnownAt = past.Get("as_of"), past.Get("known_at")
	if shown.Rows, err = v.newestRows(kind, id, &shown); err != nil {
		return page{}, err
	}
	if body["date"] == nil {
		body["date"] = cmp.Or(v.r.URL.Query().Get("date"), v.day())
	}
	rows, err := v.schemaOf("add-" + kind + "-row")
	if err != nil {
		return page{}, err
	}
	shown.Fields = rows.fields("", body, faults, 1)
	shown.Wrong = append(shown.Wrong, misplaced(shown.Fields, faults)...)
	shown.Undo, shown.Side = v.r.URL.Query().Get("row"), cmp.Or(v.r.FormValue("side"), "in")
	return page{template: "account", title: shown.Name, status: status, body: shown}, nil
}

// newestRows returns a page of an account's rows, the newest first. The interface counts pages from the oldest row.
func (v *visit) newestRows(kind, id string, shown *accountPage) ([]rowLine, error) {
	query := v.past()
	query.Set("page_size", "1")
	out, err := v.call("read-"+kind+"-ledger", request{vars: []string{id}, query: query}, nil)
	if err != nil {
		return nil, err
	}
	total, err := strconv.Atoi(out.Header.Get("X-Total-Count"))
	if err != nil {
		return nil, fmt.Errorf("the number of rows: %w", err)
	}
	last := max(1, (total+rowsShown-1)/rowsShown)
	number, _ := strconv.Atoi(v.r.URL.Query().Get("page")) // 0 without one
	number = min(max(number, 1), last)
	if number > 1 {
		shown.Newer = number - 1
	}
	if number < last {
		shown.Older = number + 1
	}
	query.Set("page_size", strconv.Itoa(rowsShown))
	query.Set("page", strconv.Itoa(last-number+1))
	var rows []map[string]any
	if _, err := v.call("read-"+kind+"-ledger", request{vars: []string{id}, query: query}, &rows); err != nil {
		return nil, err
	}
	lines := make([]rowLine, 0, len(rows))
	for _, r := range slices.Backward(rows) {
		line := v.lineOf(kind, r)
		line.Link = accountPath(kind, id) + "/rows/" + line.ID
		lines = append(lines, line)
	}
	return lines, nil
}

// schemaOf returns the schema of an operation's body, without the ids that the path has.
func (v *visit) schemaOf(id string) (*schema, error) {
	d, err := v.document()
	if err != nil {
		return nil, err
	}
	o, known := d.operation(id)
	if !known || o.Body == nil {
		return nil, fmt.Errorf("operation %q has no body", id)
	}
	return o.Body.without("id", "row_id"), nil
}

// editAccount renames or deletes an account.
func (v *visit) editAccount() (page, error) {
	kind, err := v.kind()
	if err != nil {
		return page{}, err
	}
	form, in := v.r.PostForm, request{vars: []string{v.r.PathValue("id")}, key: v.r.PostForm.Get("key"), match: v.r.PostForm.Get("revision")}
	if form.Get("do") == "delete" {
		in.reason = form.Get("reason")
		out, err := v.call("delete-"+kind, in, nil)
		if err != nil {
			return v.refusedAccount(err)
		}
		return page{redirect: after(out, Path+"/accounts", "delete")}, nil
	}
	in.body = map[string]any{"name": form.Get("name")}
	out, err := v.call("rename-"+kind, in, nil)
	if err != nil {
		return v.refusedAccount(err)
	}
	return page{redirect: after(out, accountPath(kind, in.vars[0]), "renamed")}, nil
}

func (v *visit) refusedAccount(err error) (page, error) {
	refused := refusal(err)
	if refused == nil || refused.Status == http.StatusNotFound {
		return page{}, err
	}
	return v.showAccount(accountPage{Wrong: []string{detail(refused)}}, map[string]any{}, nil, refused.Status)
}

// addRow adds a row, or shows what it would do.
func (v *visit) addRow() (page, error) {
	kind, err := v.kind()
	if err != nil {
		return page{}, err
	}
	rows, err := v.schemaOf("add-" + kind + "-row")
	if err != nil {
		return page{}, err
	}
	form, id := v.r.PostForm, v.r.PathValue("id")
	body := rows.read(form, false)
	in := request{vars: []string{id}, body: body, key: form.Get("key"), dry: form.Get("preview") != ""}
	var row map[string]any
	out, err := v.call("add-"+kind+"-row", in, &row)
	switch refused := refusal(err); {
	case in.dry:
		return v.previewed(kind, form.Get("preview"), row, err, func(p *preview) (page, error) {
			return v.showAccount(accountPage{Preview: p, Key: in.key}, body, refused.faults(), 0)
		})
	case refused != nil:
		shown := accountPage{Key: in.key}
		if len(refused.Errors) == 0 {
			shown.Wrong = []string{refused.Detail}
		}
		return v.showAccount(shown, body, refused.faults(), refused.Status)
	case err != nil:
		return page{}, err
	}
	to := after(out, accountPath(kind, id), "added") + "&" + url.Values{
		"date": {textOf(body["date"])}, "row": {plain(row["id"])}, "side": {form.Get("side")},
	}.Encode()
	return page{redirect: to}, nil
}

// previewed shows what a change would do: only that part for a script, otherwise with the whole page.
func (v *visit) previewed(kind, wanted string, row map[string]any, err error, whole func(*preview) (page, error)) (page, error) {
	p := &preview{Balances: v.lang.balancesOf(kind, row)}
	switch refused := refusal(err); {
	case refused != nil && refused.Status == http.StatusUnprocessableEntity:
		p.Wrong = []string{v.lang.t("Not complete yet.")}
		for _, f := range refused.Errors {
			p.Wrong = append(p.Wrong, labelOf(f.Field)+": "+f.Message)
		}
	case refused != nil:
		p.Wrong = []string{detail(refused)}
	case err != nil:
		return page{}, err
	}
	for _, side := range []string{"in_entries", "out_entries"} {
		for i, e := range entriesOf(row[side]) {
			for _, f := range entryFields {
				if slices.Contains(computedOf(e), f.key) {
					p.Computed = append(p.Computed, choice{Value: fmt.Sprintf("%s[%d].%s", side, i, f.key), Text: textOf(e[f.key])})
				}
			}
		}
	}
	warnings, _ := row["warnings"].([]any)
	for _, w := range warnings {
		one, _ := w.(map[string]any)
		p.Warnings = append(p.Warnings, textOf(one["message"]))
	}
	if wanted == "part" {
		return page{template: "account", part: "preview", body: p}, nil
	}
	return whole(p)
}
