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
	Opening, Closing  string // cash in the bank accounts
	Days              []dayOfBook
	More              bool // the page omits rows of the period; the files have all
	Wrong             []string
	Locked            string // last day of the lock; empty: the books are not locked
}

type dayOfBook struct {
	Date, Opening, Closing string
	Rows                   []rowLine
	Totals                 []dayTotal
}

// dayTotal is the total of a ledger's rows of one date.
type dayTotal struct {
	Name            string
	Received, Given []string
}

const (
	daybookDays = 92
	daybookRows = 500
)

// period returns the requested period, by default the last week. It reports whether it shortened a period that is too long for a page.
func (v *visit) period(most int) (from, to string, cut bool) {
	q := v.r.URL.Query()
	to = cmp.Or(q.Get("to"), max(q.Get("from"), v.day()))
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
	var book struct {
		Opening any `json:"opening_cash"`
		Closing any `json:"closing_cash"`
		Days    []struct {
			Date    string           `json:"date"`
			Opening any              `json:"opening_cash"`
			Closing any              `json:"closing_cash"`
			Rows    []enteredRow     `json:"rows"`
			Totals  []map[string]any `json:"totals"`
		} `json:"days"`
	}
	var status int
	shown.Wrong, status = v.asked("get-daybook", request{query: url.Values{"from": {shown.From}, "to": {shown.To}}}, &book)
	shown.Opening, shown.Closing = v.held(book.Opening), v.held(book.Closing)
	left := daybookRows
	for _, day := range book.Days {
		one := dayOfBook{Date: day.Date, Opening: v.held(day.Opening), Closing: v.held(day.Closing)}
		if len(day.Rows) > left {
			shown.More = true
			break // a shortened day would not match its totals
		}
		left -= len(day.Rows)
		for _, r := range day.Rows {
			one.Rows = append(one.Rows, v.entered(r))
		}
		for _, t := range day.Totals {
			one.Totals = append(one.Totals, dayTotal{
				kindName(textOf(t["kind"])), owings(t["cash_in"], t["crystal_in"]), owings(t["cash_out"], t["crystal_out"]),
			})
		}
		shown.Days = append(shown.Days, one)
	}
	return page{template: "daybook", title: "Daybook", status: status, body: shown}
}

// enteredRow is a row of the daybook with its account.
type enteredRow struct {
	Kind    string         `json:"kind"`
	Account any            `json:"account_id"`
	Name    string         `json:"account_name"`
	Row     map[string]any `json:"row"`
}

func (v *visit) entered(r enteredRow) rowLine {
	line, account := v.lineOf(r.Kind, r.Row), accountPath(r.Kind, plain(r.Account))
	line.Account, line.AccountKind, line.AccountLink, line.Link = r.Name, kindName(r.Kind), account, account+"/rows/"+line.ID
	return line
}

// held returns the balance of the bank accounts as display text.
func (v *visit) held(cash any) string {
	var text string
	for _, b := range v.lang.balancesOf("bank", map[string]any{"balance": cash}) {
		text = strings.TrimSpace(b.Figure + " " + b.Words)
	}
	return text
}
