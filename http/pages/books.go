package pages

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"bahi/domain/ledger"
)

// kinds are the kinds of accounts by the API's names.
var kinds = func() (all []choice) {
	for _, l := range ledger.All {
		all = append(all, choice{Value: l.Name, Text: wordOf(l.Name)})
	}
	return all
}()

func kindName(kind any) string {
	if ledger.Named(textOf(kind)) == nil {
		return ""
	}
	return wordOf(kind)
}

// Today returns today's date in the workshop.
func (v *visit) Today() string { return v.Now().In(v.Zone).Format(time.DateOnly) }

// past returns the requested time in the past: as_of is a date, known_at a position or a time.
func (v *visit) past() url.Values { return v.chosen("as_of", "known_at") }

// chosen returns those of some parameters of the address that have values.
func (v *visit) chosen(names ...string) url.Values {
	query := url.Values{}
	for _, name := range names {
		value := v.r.URL.Query().Get(name)
		if name == "known_at" {
			value = v.clock(value, true)
		}
		if value != "" {
			query.Set(name, value)
		}
	}
	return query
}

// accountsPage is the content of the list of accounts.
type accountsPage struct {
	Query, Kind  string
	Past         url.Values // of an earlier state
	None         bool       // the workspace has no accounts
	Kinds        []choice
	Accounts     []map[string]any
	Before, Next string  // addresses of the neighbouring pages; empty: none
	Fields       []field // of a new account
	Wrong        string
	Faults       []string // of the requested time in the past
	New          bool     // the form of a new account is open

	OpenKind, OpenType string // chosen in the refused form
	Same               string // name of an existing account, which the form names again
	Seen               string // position of the log at which the form was drawn
	Key                string // Idempotency-Key of the refused form

	typed map[string]any // into the refused form
}

const (
	accountsShown = 100
	rowsShown     = 30
)

// pagePath returns the address of a page below Path.
func pagePath(parts ...any) string {
	address := Path
	for _, part := range parts {
		address += "/" + url.PathEscape(textOf(part))
	}
	return address
}

// accountList lists the accounts of all kinds. A search from another page redirects to the account if only one matches.
func (v *visit) accountList(shown accountsPage, status int) page {
	q := v.r.URL.Query()
	if shown.Query = strings.TrimSpace(q.Get("q")); kindName(q.Get("kind")) != "" {
		shown.Kind = q.Get("kind")
	}
	if shown.New = shown.Wrong+shown.Same != ""; !shown.New && q.Get("new") != "" {
		shown.New, shown.OpenKind, shown.typed = true, shown.Kind, map[string]any{"name": q.Get("name")}
	}
	shown.Kinds = kinds
	number := v.number()
	query := v.past()
	query.Set("search", shown.Query)
	query.Set("kind", shown.Kind)
	accounts, total, refused := v.paged("list-accounts", request{query: query}, number, accountsShown)
	shown.Seen = cmp.Or(shown.Seen, v.listed.Get("Bahi-Position"))
	if refused != nil && (refused.Status != http.StatusUnprocessableEntity || len(v.past()) == 0) {
		return v.deny(refused)
	} else if refused != nil {
		status, shown.Faults = refused.Status, []string{detail(refused)}
	}
	shown.Accounts = accounts
	shown.None = len(shown.Accounts) == 0 && shown.Query+shown.Kind == "" && len(v.past()) == 0
	shown.New = shown.New || shown.None
	shown.Fields = v.schemaOf("open-client").fields("", shown.typed, nil, 0)
	shown.Fields[0].Focus = shown.New
	if q.Get("go") != "" && total == 1 {
		return page{redirect: pathOf(shown.Accounts[0], v.past())}
	}
	shown.Past = v.past()
	query.Set("q", shown.Query)
	query.Del("search")
	shown.Before, shown.Next = turned(Path+"/accounts", query, number, number*accountsShown < total)
	return page{template: "accounts", title: "Accounts", status: status, body: shown}
}

// pathOf returns the address of an account of a list, at a time in the past or now.
func pathOf(account map[string]any, past url.Values) string {
	return withQuery(pagePath("accounts", account["kind"], account["id"]), past)
}

// openAccount opens an account.
func (v *visit) openAccount() page {
	form := v.r.PostForm
	kind := form.Get("kind")
	if kindName(kind) == "" {
		return v.deny(errNoPage)
	}
	body := v.schemaOf("open-"+kind).read(form, false)
	shown := accountsPage{typed: body, OpenKind: kind, OpenType: form.Get("type"), Key: form.Get("key"), Seen: form.Get("seen")}
	if shown.Same = v.sameName(kind, textOf(body["name"]), shown.Seen); shown.Same != "" && form.Get("again") == "" {
		return v.accountList(shown, http.StatusConflict)
	}
	var opened map[string]any
	out, refused := v.ask("open-"+kind, request{body: body, key: form.Get("key")}, &opened)
	if refused != nil {
		shown.Wrong = detail(refused)
		return v.accountList(shown, refused.Status)
	}
	return page{redirect: after(out, pagePath("accounts", kind, opened["id"]), "opened")}
}

// sameName returns the name of an account of a kind that equals a name, "" for none. It ignores the accounts that were opened after the
// form was drawn: the form itself may have opened one, and is sent twice.
func (v *visit) sameName(kind, name, seen string) string {
	if seen == "" || name == "" {
		return ""
	}
	query := url.Values{"known_at": {seen}, "search": {folded(name)}, "kind": {kind}}
	found, _, _ := v.paged("list-accounts", request{query: query}, 1, accountsShown) // the name may be invalid
	for _, a := range found {
		if folded(textOf(a["name"])) == folded(name) {
			return textOf(a["name"])
		}
	}
	return ""
}

// detail returns the problem's detail with the fields' messages, without a detail that only reports their existence.
func detail(p *problem) string {
	text := p.Detail
	for _, f := range p.Errors {
		text += "; " + labelOf(f.Field) + ": " + cmp.Or(english["messages"][f.Message], f.Message)
	}
	return strings.TrimPrefix(text, "Validation error; ")
}

// rowLine is a row in a list.
type rowLine struct {
	Row, Of           map[string]any // Of: the record of the daybook that has the row
	Link, AccountLink string
	Received, Given   []entryLine
	Balances          []balance
	New               bool // just added
}

// lineOf returns a row as a list shows it.
func (l language) lineOf(kind string, row map[string]any) rowLine {
	return rowLine{
		Row: row, Received: l.entryLines(kind, "in", row), Given: l.entryLines(kind, "out", row), Balances: l.balancesOf(kind, row),
	}
}

// accountPage is the content of the page of an account.
type accountPage struct {
	Account      map[string]any
	Link         string
	Rows         []rowLine
	Newer, Older string // addresses of pages, "": none
	Past         url.Values
	Fields       []field
	Forms        []actForm // of the account
	Side         string
	Settle       bool   // a balance is not zero
	Since        string // first day of the statement since the last settlement
	Open         bool   // the form has values, so narrow screens show it too
	Undo         string // the row added last
	Wrong        []string
	Preview      *preview
	Key          string // Idempotency-Key of the refused form

	newest map[string]any // row that counts
}

// account shows an account and the form for a new row, with the values and faults of a refused one.
func (d *desk) account(in sent) page {
	kind, row := d.of.word, sent{}
	if strings.HasPrefix(in.do, "add-") {
		row = in
	}
	of, wrong := d.accountOf(kind, d.id, d.past())
	body := maps.Clone(row.body)
	if body == nil {
		body = map[string]any{}
	}
	shown := accountPage{
		Account: of, Link: pagePath("accounts", kind, d.id), Past: d.past(), Key: row.key, Preview: row.preview, Undo: d.r.URL.Query().Get("row"),
		Open: len(body) > 0 || in.status != 0, Side: cmp.Or(d.r.FormValue("side"), "in"),
	}
	if message := row.faults["in_entries"]; message != "" && shown.Side == "out" {
		row.faults = map[string]string{"out_entries": message} // the form hides the other side
	}
	if wrong != nil {
		in.status = http.StatusUnprocessableEntity
		shown.Account = map[string]any{"name": of["name"], "kind": kind} // without the current balances
	} else {
		shown.Rows = d.newestRows(kind, d.id, &shown)
	}
	shown.Settle = kind != "bank" && slices.ContainsFunc(d.lang.balancesOf(kind, of), func(b balance) bool { return b.Class != "settled" })
	fill, side := d.filled(kind, of, shown.newest)
	if d.r.Method == http.MethodGet && fill != nil {
		body, shown.Side, shown.Open = fill, side, true
	}
	if body["date"] == nil {
		body["date"] = cmp.Or(d.r.URL.Query().Get("date"), d.Today())
	}
	if shown.Open && shown.Preview == nil && in.status == 0 {
		shown.Preview = d.tried(kind, d.id, body)
	}
	shown.Fields = d.schemaOf("add-"+kind+"-row").fields("", body, row.faults, 1)
	shown.Forms = d.forms(in, of)
	shown.Wrong = slices.Concat(wrong, in.wrong, d.lang.misplaced(shown.Fields, row.faults))
	for _, f := range shown.Forms {
		if f.Do == in.do {
			shown.Wrong = append(shown.Wrong, d.lang.misplaced(f.Fields, in.faults)...)
		}
	}
	return page{template: "account", title: textOf(of["name"]), status: in.status, body: shown}
}

// accountOf returns an account at a time in the past or now, with its kind. If that time is invalid, it returns why, and the account of
// now.
func (v *visit) accountOf(kind, id string, past url.Values) (of map[string]any, wrong []string) {
	of = map[string]any{}
	if _, wrong = v.asked("get-"+kind, request{vars: []string{id}, query: past}, &of); wrong != nil {
		v.read("get-"+kind, request{vars: []string{id}}, &of)
	}
	of["kind"] = kind
	return of, wrong
}

// newestRows returns a page of an account's rows, the newest first.
func (v *visit) newestRows(kind, id string, shown *accountPage) []rowLine {
	rows, total, refused := v.newestFirst("read-"+kind+"-ledger", request{vars: []string{id}, query: v.past()})
	v.require(refused)
	shown.Newer, shown.Older = turned(shown.Link, v.past(), min(v.number(), max(total/rowsShown, 1)), v.older(total))
	lines := make([]rowLine, 0, len(rows))
	for _, r := range rows {
		line := v.lang.lineOf(kind, r)
		line.Link, line.New = pagePath("accounts", kind, id, "rows", r["id"]), textOf(r["id"]) == shown.Undo
		if lines = append(lines, line); shown.newest == nil && r["void"] != true {
			shown.newest = r
		}
	}
	if shown.Newer == "" && len(v.past()) == 0 {
		shown.Since = since(lines)
	}
	return lines
}

// schemaOf returns the schema of an operation's body, without the ids that the path has.
func (v *visit) schemaOf(id string) *schema { return v.operation(id).Body.without("id", "row_id") }

// filled returns the body of the row that the address requests, and the side of the form. settle makes the balances zero; again
// repeats the newest row. For other addresses filled returns no body.
func (v *visit) filled(kind string, account, newest map[string]any) (body map[string]any, side string) {
	q := v.r.URL.Query()
	switch {
	case q.Get("settle") != "" && kind != "bank":
		body = settling(kind, account)
	case q.Get("again") != "":
		body = map[string]any{"in_entries": given(newest["in_entries"]), "out_entries": given(newest["out_entries"])}
	}
	switch in, out := len(entriesOf(body["in_entries"])), len(entriesOf(body["out_entries"])); {
	case in+out == 0:
		return nil, ""
	case in == 0:
		return body, "out"
	case out == 0:
		return body, "in"
	default:
		return body, "both"
	}
}

// settling returns a row with an entry for each balance that is not zero: it gives a sum owed to the account, and
// takes a sum that the account owes.
func settling(kind string, account map[string]any) map[string]any {
	body, metal := map[string]any{}, "fine_weight"
	if kind == "polisher" {
		metal = "weight"
	}
	for _, one := range []struct{ balance, field string }{{"cash_balance", "amount"}, {"crystal_balance", metal}} {
		balance, known := toDecimal(account[one.balance])
		if !known || balance.IsZero() {
			continue
		}
		side, name := "out_entries", one.field
		if balance.IsNegative() {
			if side = "in_entries"; kind == "karigar" && name == "amount" {
				name = "other"
			}
		}
		entries, _ := body[side].([]any)
		body[side] = append(entries, map[string]any{name: json.Number(balance.Abs().String())})
	}
	return body
}

// given returns the entries as a person entered them, without computed values and counter entries.
func given(side any) []any {
	entries := []any{}
	for _, e := range entriesOf(side) {
		if e["counter"] == true {
			continue
		}
		e = maps.Clone(e)
		for _, key := range append(computedOf(e), "computed") {
			delete(e, key)
		}
		entries = append(entries, e)
	}
	return entries
}

// since returns the first day of the statement since the last settlement, "" if these rows, newest first, have none. The newest row
// may be the settlement itself.
func since(rows []rowLine) string {
	for i := 1; i < len(rows); i++ {
		open := func(b balance) bool { return b.Class != "settled" }
		if len(rows[i].Balances) > 0 && !slices.ContainsFunc(rows[i].Balances, open) {
			return textOf(rows[i-1].Row["date"])
		}
	}
	return ""
}

// preview is the effect of a change before it is made.
type preview struct {
	Balances []balance
	Computed []choice // the inputs' names and their values
	Says     []string // description of the effect
	Warnings []string
	Wrong    []string
}

// tried returns the effect of a row.
func (v *visit) tried(kind, account string, body map[string]any) *preview {
	var row map[string]any
	_, refused := v.ask("add-"+kind+"-row", request{vars: []string{account}, body: body, dry: true}, &row)
	if refused != nil {
		return v.refusedPreview(refused)
	}
	return v.previewOf(kind, row)
}

// previewed shows the effect of a change: only that part for a script, otherwise in the whole page.
func (v *visit) previewed(template string, p any, whole func() page) page {
	if v.r.PostForm.Get("preview") == "part" {
		return page{template: template, part: "preview", body: p}
	}
	return whole()
}

// previewOf returns the effect in a dry run's response.
func (v *visit) previewOf(kind string, row map[string]any) *preview {
	p := &preview{Balances: v.lang.balancesOf(kind, row)}
	for _, side := range []string{"in_entries", "out_entries"} {
		for i, e := range entriesOf(row[side]) {
			for _, key := range computedOf(e) {
				p.Computed = append(p.Computed, choice{Value: fmt.Sprintf("%s[%d].%s", side, i, key), Text: textOf(e[key])})
			}
		}
	}
	p.Warnings = v.lang.warnings(row["warnings"])
	return p
}

// warnings returns the warnings about figures of a row that differ from their formulas, or about an order.
func (l language) warnings(list any) (texts []string) {
	for _, w := range entriesOf(list) {
		text, field := l.said(textOf(w["message"])), textOf(w["field"])
		if _, _, key := lineAt(field); key != "" {
			text = l.tf("%s: %s is written, the other values give %s",
				l.pathWords(field), l.entryText(key, w["given"]), l.entryText(key, w["computed"]))
		}
		texts = append(texts, text)
	}
	return texts
}

// refusedPreview returns the reason of a refused dry run.
func (v *visit) refusedPreview(refused *problem) *preview {
	if refused.Status != http.StatusUnprocessableEntity {
		return &preview{Wrong: []string{detail(refused)}}
	}
	p := &preview{Wrong: []string{v.lang.t("Not complete yet.")}}
	for _, f := range refused.Errors {
		if f.Field == "in_entries" {
			continue // nothing is entered yet
		}
		p.Wrong = append(p.Wrong, v.lang.pathWords(f.Field)+": "+v.lang.said(f.Message))
	}
	return p
}
