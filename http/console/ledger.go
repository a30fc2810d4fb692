package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/ledger/bank"
	"bahi/domain/unit"
	"bahi/http/api"
	books "bahi/readmodels/ledger"
	views "bahi/readmodels/ops"
)

// ledgers are those that the console shows, and what it says where there is no such account.
var ledgers = map[string]error{bank.Ledger.Name: bank.ErrNoAccount}

// ledgerOfRows names the ledger of a category of rows' streams.
var ledgerOfRows = map[string]string{bank.Rows.Category(): bank.Ledger.Name}

const (
	accountsShown = 50
	rowsOfPage    = 50
)

// accountList is what was found.
type accountList struct {
	Words    string
	Accounts []views.Account
	Most     int
}

func (v *visit) accounts() (page, error) {
	list := accountList{Words: strings.TrimSpace(v.r.FormValue("q")), Most: accountsShown}
	var err error
	list.Accounts, err = v.Accounts.Find(v.r.Context(), list.Words, accountsShown)
	return page{template: "ledger", title: "Ledger", body: list}, err
}

// past is which state of the books is shown, as somebody asked for it.
type past struct {
	AsOf    string
	KnownAt string
	Wrong   map[string]string

	as        books.As
	Recorded  *time.Time // when KnownAt's position was recorded
	Head      event.Position
	IsCurrent bool
}

// oneAccount is a page of an account's rows.
type oneAccount struct {
	views.Account
	past

	Missing          bool   // there is no such account in that state
	Name             string // at that state
	Balance          decimal.Decimal
	Rows             []row
	Opening, Closing decimal.Decimal
	In, Out          decimal.Decimal // of the page
	Total            int64
	Pages            pages
	Chart            *chart
}

// row is a row as it is shown.
type row struct {
	ID      int64
	Date    unit.Date
	In, Out []line
	InSum   decimal.Decimal
	OutSum  decimal.Decimal
	Balance decimal.Decimal
	books.Links
}

// line is an entry of a row: its amount, and everything else in words.
type line struct {
	Text   string
	Amount decimal.Decimal
}

// opened is the account that the address names.
func (v *visit) opened() (views.Account, error) {
	ledger := v.r.PathValue("ledger")
	missing, known := ledgers[ledger]
	if !known {
		return views.Account{}, errNoPage
	}
	id, err := strconv.ParseInt(v.r.PathValue("account"), 10, 64)
	if err != nil {
		return views.Account{}, missing
	}
	return v.Accounts.Account(v.r.Context(), ledger, id, missing)
}

func (v *visit) account() (page, error) {
	p := page{template: "account"}
	found, err := v.opened()
	if err != nil {
		return p, err
	}
	a := oneAccount{Account: found, Name: found.Name}
	p.title = found.Name
	if a.past, err = v.past(); err != nil {
		return p, err
	}
	if len(a.Wrong) > 0 {
		p.status, p.body = api.StatusOf(fault.Invalid), a
		return p, nil
	}
	err = v.fill(v.r.Context(), &a, number(v.r.URL.Query().Get("page")))
	if errors.Is(err, ledgers[a.Ledger]) { // it was opened later, or deleted before
		p.status, a.Missing, err = api.StatusOf(fault.NotFound), true, nil
	}
	p.title, p.body = a.Name, a
	return p, err
}

// past reads which state is asked for.
func (v *visit) past() (p past, err error) {
	p = past{AsOf: strings.TrimSpace(v.r.FormValue("as_of")), KnownAt: strings.TrimSpace(v.r.FormValue("known_at")), Wrong: map[string]string{}}
	p.IsCurrent = p.AsOf == "" && p.KnownAt == ""
	if p.Head, _, err = v.Events.Head(v.r.Context()); err != nil {
		return p, err
	}
	if p.AsOf != "" {
		day, err := unit.ParseDate(p.AsOf)
		if err != nil {
			p.Wrong["as_of"] = "expected a date such as 2025-03-31"
		}
		p.as.Of = &day
	}
	if p.KnownAt == "" {
		return p, nil
	}
	at, why, err := v.known(p.KnownAt)
	switch {
	case err != nil:
		return p, err
	case why == "" && at > p.Head:
		why = fmt.Sprintf("the log ends at %d", p.Head)
	}
	if why != "" {
		p.Wrong["known_at"] = why
		return p, nil
	}
	p.as.KnownAt = &at
	if at > 0 {
		e, _, err := v.Events.Event(v.r.Context(), at)
		if err != nil {
			return p, err
		}
		p.Recorded = &e.At
	}
	return p, nil
}

// known reads a position, or a moment, which stands for the last position recorded until then.
func (v *visit) known(text string) (at event.Position, why string, err error) {
	if n, err := strconv.ParseUint(text, 10, 62); err == nil {
		return event.Position(n), "", nil
	}
	moment, err := clock(text, v.Zone, true)
	if err != nil {
		if moment, err = time.Parse(time.RFC3339Nano, text); err != nil {
			return 0, "expected a position of the log, or a moment such as 2025-03-31T09:15", nil //nolint:nilerr // said so
		}
	}
	at, err = v.Events.PositionAt(v.r.Context(), moment)
	return at, "", err
}

// Day is up to which day rows are shown; nil: all.
func (p past) Day() *unit.Date { return p.as.Of }

// Position is what was known; nil: everything.
func (p past) Position() *event.Position { return p.as.KnownAt }

// fill reads a page of the account in the state that is asked for.
func (v *visit) fill(ctx context.Context, a *oneAccount, n int) error {
	missing := ledgers[a.Ledger]
	now, err := v.Books.Account(ctx, a.Workspace, a.Ledger, a.ID, a.as, missing)
	if err != nil {
		return err
	}
	a.Name, a.Balance = now.Name, now.Cash.Decimal
	sel := books.Selection{As: a.as, Page: n, PageSize: rowsOfPage}
	rows, total, err := v.Books.Rows(ctx, a.Workspace, a.Ledger, a.ID, sel, missing)
	if err != nil {
		return err
	}
	a.Total, a.Pages = total, v.pagesOf(n, rowsOfPage, total)
	for _, r := range rows {
		shown, err := rowOf(r)
		if err != nil {
			return err
		}
		if !shown.Void {
			a.In, a.Out = a.In.Add(shown.InSum), a.Out.Add(shown.OutSum)
		}
		a.Rows = append(a.Rows, shown)
	}
	a.Closing = a.Balance
	if len(a.Rows) > 0 {
		last := a.Rows[len(a.Rows)-1]
		a.Closing = last.Balance
		a.Opening = last.Balance.Sub(a.In).Add(a.Out)
	}
	a.Chart, err = v.draw(ctx, a)
	return err
}

func rowOf(r books.Row) (out row, err error) {
	out = row{ID: r.ID, Date: r.Date, Balance: r.Cash.Decimal, Links: r.Links}
	if out.In, out.InSum, err = linesOf(r.In); err != nil {
		return out, err
	}
	out.Out, out.OutSum, err = linesOf(r.Out)
	return out, err
}

// linesOf reads entries of whatever ledger: the amount by its name, the rest as it comes.
func linesOf(entries json.RawMessage) (lines []line, sum decimal.Decimal, err error) {
	n, err := parseJSON(entries)
	if err != nil {
		return nil, sum, fmt.Errorf("read entries: %w", err)
	}
	for _, entry := range n.inside {
		var l line
		var rest []string
		for _, field := range entry.inside {
			switch field.key {
			case "amount":
				if l.Amount, err = decimal.NewFromString(field.text); err != nil {
					return nil, sum, fmt.Errorf("read an amount: %w", err)
				}
			case "description", "item_name":
				rest = append([]string{field.text}, rest...)
			default:
				rest = append(rest, strings.ReplaceAll(field.key, "_", " ")+" "+field.text)
			}
		}
		l.Text = strings.Join(rest, ", ")
		sum = sum.Add(l.Amount)
		lines = append(lines, l)
	}
	return lines, sum, nil
}

// rowHistory is every version of a row.
type rowHistory struct {
	views.Account

	Row      int64
	Versions []version
}

// version is what somebody made of a row.
type version struct {
	books.Version

	What    string // was done
	Changes []change
}

func (v *visit) history() (page, error) {
	a, err := v.opened()
	if err != nil {
		return page{}, err
	}
	id, err := strconv.ParseInt(v.r.PathValue("row"), 10, 64)
	if err != nil {
		return page{}, bank.ErrNoRow
	}
	all, err := v.Books.History(v.r.Context(), a.Workspace, a.Ledger, a.ID, id, bank.ErrNoRow)
	if err != nil {
		return page{}, err
	}
	h := rowHistory{Account: a, Row: id}
	var (
		before []byte
		last   *books.Version
	)
	for i, one := range all {
		var after []byte
		if !one.Deleted {
			after = rowDocument(one)
		}
		shown := version{Version: one, What: one.Change(last), Changes: changes(before, after)}
		before, last = after, &all[i]
		h.Versions = append(h.Versions, shown)
	}
	return page{template: "history", title: fmt.Sprintf("Row %d of %s", id, a.Name), body: h}, nil
}

func rowDocument(v books.Version) []byte {
	text, err := json.Marshal(struct {
		Date       unit.Date       `json:"date"`
		In         json.RawMessage `json:"in_entries"`
		Out        json.RawMessage `json:"out_entries"`
		Void       bool            `json:"void,omitempty"`
		Reverses   *int64          `json:"reverses,omitempty"`
		ReversedBy *int64          `json:"reversed_by,omitempty"`
	}{v.Date, v.In, v.Out, v.Void, v.Reverses, v.ReversedBy})
	if err != nil {
		panic(err) // it was JSON a moment ago
	}
	return text
}
