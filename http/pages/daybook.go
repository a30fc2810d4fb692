package pages

import (
	"cmp"
	"net/url"
	"strings"
	"time"
)

// daybookPage is the content of the daybook: the rows of all ledgers by date.
type daybookPage struct {
	Company, From, To string
	Files             string // address of the files, without the format parameter
	Days              []map[string]any
	More              bool // the page omits rows of the period; the files have all
	Wrong             []string
	Locked            string // last day of the lock; empty: the books are not locked
}

const (
	daybookDays = 92
	daybookRows = 500
)

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

func (v *visit) daybook() page {
	asked, shown := v.r.URL.Query(), daybookPage{Company: v.company()}
	shown.From, shown.To, shown.More = v.period(daybookDays)
	files := url.Values{"from": {cmp.Or(asked.Get("from"), shown.From)}, "to": {shown.To}}
	shown.Files = v.address("get-daybook", request{query: files}).String()
	var lock map[string]any
	v.read("get-books-lock", request{}, &lock)
	shown.Locked = textOf(lock["locked_through"])
	var book struct{ Days []map[string]any }
	var status int
	shown.Wrong, status = v.asked("get-daybook", request{query: url.Values{"from": {shown.From}, "to": {shown.To}}}, &book)
	shown.Days = book.Days
	left := daybookRows
	for i, day := range book.Days {
		if left -= len(entriesOf(day["rows"])); left < 0 {
			shown.Days, shown.More = book.Days[:i], true
			break // a shortened day would not match its totals
		}
	}
	return page{template: "daybook", title: "Daybook", status: status, body: shown}
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
