package pages

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// report is the content of a page that prints an operation's response.
type report struct {
	Company string
	Asked   url.Values // parameters of the operation
	Answer  map[string]any
	More    bool // the page omits records; the files have all
	Wrong   []string

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
	r.Wrong, r.status = v.asked(operation, request{query: asked}, &r.Answer)
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
	r.Company = v.company()
	days := entriesOf(r.Answer["days"])
	left := daybookRows
	for i, day := range days {
		if left -= len(entriesOf(day["rows"])); left < 0 {
			days, r.More = days[:i], true
			break // a shortened day would not match its totals
		}
	}
	var lock map[string]any
	v.read("get-books-lock", request{}, &lock)
	body := map[string]any{"Report": r, "Days": days, "Lock": lock}
	return page{template: "daybook", title: "Daybook", status: r.status, body: body}
}

func (v *visit) trialBalance() page {
	r := v.report("get-trial-balance", v.past())
	r.Company = v.company()
	return page{template: "trial-balance", title: "Trial balance", status: r.status, body: r}
}

// statement shows an account for print, the oldest row first.
func (v *visit) statement() page {
	kind, id := v.kind(), v.r.PathValue("id")
	asked := v.chosen("as_of", "known_at", "from", "to")
	r := &report{Company: v.company(), Asked: maps.Clone(asked)}
	asked.Set("page_size", strconv.Itoa(statementRows))
	var rows []map[string]any
	out := v.read("read-"+kind+"-ledger", request{vars: []string{id}, query: asked}, &rows)
	r.More = totalOf(out) > len(rows)
	var lines []rowLine
	for _, row := range rows {
		lines = append(lines, v.lang.lineOf(kind, row))
	}
	body := map[string]any{
		"Report": r, "Account": v.accountOf(kind, id), "Link": accountPath(kind, id), "Rows": lines,
		"Files": strings.TrimSuffix(v.address("get-"+kind+"-statement", request{vars: []string{id}}).Path, "pdf"),
	}
	return page{template: "statement", title: "Statement", body: body}
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
	name, lines := v.actor(), []trailLine{}
	changes := entriesOf(r.Answer["changes"])
	if r.More = r.More || len(changes) > trailChanges; r.More {
		changes = changes[max(0, len(changes)-trailChanges):]
	}
	for _, c := range slices.Backward(changes) {
		lines = append(lines, v.trailLine(c, name))
	}
	body := map[string]any{"Report": r, "Changes": lines, "Members": v.memberChoices(asked.Get("user"))}
	return page{template: "audit", title: "Trail", status: r.status, body: body}
}

// entered returns a row of the daybook with its account.
func (l language) entered(r map[string]any) rowLine {
	kind, row := textOf(r["kind"]), inner(r, "row")
	line, account := l.lineOf(kind, row), accountPath(kind, plain(r["account_id"]))
	line.Account, line.AccountKind, line.AccountLink = textOf(r["account_name"]), kindName(kind), account
	line.Link = account + "/rows/" + line.ID
	return line
}

// held returns the balance of the bank accounts as display text.
func (l language) held(cash any) (text string) {
	for _, b := range l.balancesOf("bank", map[string]any{"balance": cash}) {
		text = strings.TrimSpace(b.Figure + " " + b.Words)
	}
	return text
}
