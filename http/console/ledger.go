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
	ledgers "bahi/domain/ledger"
	"bahi/domain/ledger/book"
	"bahi/domain/unit"
	"bahi/http/api"
	books "bahi/readmodels/ledger"
	views "bahi/readmodels/ops"
)

const (
	accountsShown = 50
	rowsOfPage    = 50
)

// accountList is the result of a search for accounts.
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

// past selects a state of the books.
type past struct {
	AsOf    string
	KnownAt string
	Wrong   map[string]string

	as        books.As
	Recorded  *time.Time // time of KnownAt's position
	Head      event.Position
	IsCurrent bool
}

// oneAccount is a page of an account's rows.
type oneAccount struct {
	views.Account
	past

	ledger *book.Ledger

	Missing bool   // the account does not exist in that state
	Name    string // in that state
	Units   []inUnit
	Rows    []row
	Total   int64
	Pages   pages
}

// inUnit has a page's figures in one of the ledger's units.
type inUnit struct {
	Name, Suffix     string // "" for the only unit, otherwise cash and crystal
	Places           int32
	Balance          decimal.Decimal
	Opening, Closing decimal.Decimal
	In, Out          decimal.Decimal // of the page
	Chart            *chart
}

// row is a row for display.
type row struct {
	books.Row

	Entries []string
	In, Out []*decimal.Decimal // by unit; nil: no entry on that side
	After   []decimal.Decimal
}

// inUnits divides figures of the books by the ledger's units.
func inUnits(l *book.Ledger, b books.Balance) []decimal.Decimal {
	if l.Metal {
		return []decimal.Decimal{b.Cash.Decimal, b.Fine.Decimal}
	}
	return []decimal.Decimal{b.Cash.Decimal}
}

// opened returns the account of the address.
func (v *visit) opened() (views.Account, *book.Ledger, error) {
	l := ledgers.Named(v.r.PathValue("ledger"))
	if l == nil {
		return views.Account{}, nil, errNoPage
	}
	id, err := strconv.ParseInt(v.r.PathValue("account"), 10, 64)
	if err != nil {
		return views.Account{}, nil, l.NoAccount
	}
	a, err := v.Accounts.Account(v.r.Context(), l.Name, id, l.NoAccount)
	return a, l, err
}

func (v *visit) account() (page, error) {
	p := page{template: "account"}
	found, l, err := v.opened()
	if err != nil {
		return p, err
	}
	a := oneAccount{Account: found, ledger: l, Name: found.Name}
	p.title = found.Name
	if a.past, err = v.past(); err != nil {
		return p, err
	}
	if len(a.Wrong) > 0 {
		p.status, p.body = api.StatusOf(fault.Invalid), a
		return p, nil
	}
	err = v.fill(v.r.Context(), &a, number(v.r.URL.Query().Get("page")))
	if errors.Is(err, l.NoAccount) { // opened later, or deleted before
		p.status, a.Missing, err = api.StatusOf(fault.NotFound), true, nil
	}
	p.title, p.body = a.Name, a
	return p, err
}

// past parses the selected state.
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

// known parses a position, or a time, which means the last position recorded until then.
func (v *visit) known(text string) (at event.Position, why string, err error) {
	if n, err := strconv.ParseUint(text, 10, 62); err == nil {
		at, err = v.Whole(v.r.Context(), event.Position(n))
		return at, "", err
	}
	moment, err := clock(text, v.Zone, true)
	if err != nil {
		if moment, err = time.Parse(time.RFC3339Nano, text); err != nil {
			return 0, "expected a position of the log, or a moment such as 2025-03-31T09:15", nil //nolint:nilerr // the message says so
		}
	}
	at, err = v.Events.PositionAt(v.r.Context(), moment)
	return at, "", err
}

// Day returns the last day to show; nil: all.
func (p past) Day() *unit.Date { return p.as.Of }

// Position returns the position of the selected knowledge; nil: current.
func (p past) Position() *event.Position { return p.as.KnownAt }

// fill reads a page of the account in the selected state.
func (v *visit) fill(ctx context.Context, a *oneAccount, n int) error {
	now, err := v.Books.Account(ctx, a.Workspace, a.ledger, a.ID, a.as)
	if err != nil {
		return err
	}
	a.Name = now.Name
	rows, total, err := v.Books.Rows(ctx, a.Workspace, a.ledger, a.ID, books.Selection{As: a.as, Page: n, PageSize: rowsOfPage})
	if err != nil {
		return err
	}
	a.Total, a.Pages = total, v.pagesOf(n, rowsOfPage, total)
	var in, out books.Balance // of the page
	for _, r := range rows {
		if r.Row, err = a.ledger.Measured(r.Row); err != nil {
			return fmt.Errorf("read row %d: %w", r.ID, err)
		}
		ins, outs := r.Counts()
		in, out = in.Plus(ins), out.Plus(outs)
		shown, err := a.rowOf(r)
		if err != nil {
			return err
		}
		a.Rows = append(a.Rows, shown)
	}
	a.Units = []inUnit{{Places: unit.MoneyPlaces}}
	if a.ledger.Metal {
		a.Units = []inUnit{{Name: "Cash ", Places: unit.MoneyPlaces}, {Name: "Crystal ", Suffix: "-crystal", Places: unit.GramsPlaces}}
	}
	charts, err := v.draw(ctx, a)
	if err != nil {
		return err
	}
	ins, outs, balance := inUnits(a.ledger, in), inUnits(a.ledger, out), inUnits(a.ledger, books.Balance{Cash: now.Cash, Fine: now.Fine})
	for i := range a.Units {
		u := &a.Units[i]
		u.Balance, u.Closing, u.In, u.Out, u.Chart = balance[i], balance[i], ins[i], outs[i], charts[i]
		if n := len(a.Rows); n > 0 {
			u.Closing = a.Rows[n-1].After[i]
			u.Opening = u.Closing.Sub(u.In).Add(u.Out)
		}
	}
	return nil
}

// rowOf returns a row for display. A void row shows what it once counted.
func (a *oneAccount) rowOf(r books.Row) (row, error) {
	shown := row{Row: r, After: inUnits(a.ledger, books.Balance{Cash: r.Cash, Fine: r.Fine})}
	in, out, err := a.ledger.Lines(r.Row)
	for _, lines := range [][]book.Line{in, out} {
		for _, line := range lines {
			shown.Entries = append(shown.Entries, books.Words(line.JSON))
		}
	}
	shown.In, shown.Out = a.side(in, r.In.Effect), a.side(out, r.Out.Effect)
	return shown, err
}

func (a *oneAccount) side(entries []book.Line, counts book.Effect) []*decimal.Decimal {
	units := inUnits(a.ledger, books.Balance{}.Plus(counts))
	shown := make([]*decimal.Decimal, len(units))
	for i := range units {
		if len(entries) > 0 {
			shown[i] = &units[i]
		}
	}
	return shown
}

// rowHistory is every version of a row.
type rowHistory struct {
	views.Account

	Row      int64
	Versions []version
}

// version is a version of a row.
type version struct {
	books.Version

	What    string // what was done
	Changes []change
}

func (v *visit) history() (page, error) {
	a, l, err := v.opened()
	if err != nil {
		return page{}, err
	}
	id, err := strconv.ParseInt(v.r.PathValue("row"), 10, 64)
	if err != nil {
		return page{}, l.NoRow
	}
	all, err := v.Books.History(v.r.Context(), a.Workspace, l, a.ID, id)
	if err != nil {
		return page{}, err
	}
	h := rowHistory{Account: a, Row: id}
	var (
		before []byte
		last   *books.Version
	)
	for i, one := range all {
		after := rowDocument(one.Row)
		shown := version{Version: one, What: one.Change(last), Changes: changes(before, after)}
		before, last = after, &all[i]
		h.Versions = append(h.Versions, shown)
	}
	return page{template: "history", title: fmt.Sprintf("Row %d of %s", id, a.Name), body: h}, nil
}

// rowDocument returns a row as JSON, nil for none.
func rowDocument(r book.Row) []byte {
	if !r.Exists() {
		return nil
	}
	text, err := json.Marshal(struct {
		Date       unit.Date     `json:"date"`
		In         book.Side     `json:"in_entries"`
		Out        book.Side     `json:"out_entries"`
		Warnings   book.Warnings `json:"warnings,omitempty"`
		Void       bool          `json:"void,omitempty"`
		Reverses   int64         `json:"reverses,omitempty"`
		ReversedBy int64         `json:"reversed_by,omitempty"`
	}{r.Date, r.In, r.Out, r.Warnings, r.Void, r.Reverses, r.ReversedBy})
	if err != nil {
		panic(err) // it was JSON before
	}
	return text
}
