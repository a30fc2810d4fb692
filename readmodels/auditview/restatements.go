package auditview

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"bahi/domain/event"
	"bahi/domain/unit"
	"bahi/readmodels"
	"bahi/readmodels/ledgerview"
)

// Restatement is a closing balance that later changes have altered.
type Restatement struct {
	Workspace  uuid.UUID      `json:"workspace" doc:"ID of the workspace"`
	Ledger     string         `json:"ledger" doc:"Ledger of the account"`
	Account    Named          `json:"account" doc:"The account"`
	Closing    unit.Date      `json:"closing"               doc:"Last day of the month"`
	FiscalYear string         `json:"fiscal_year,omitempty" doc:"Fiscal year that ends on this day, such as FY 2026-27"`
	Unit       string         `json:"unit"                  enum:"cash,fine" doc:"Unit: cash in rupees, or fine in grams of fine metal"`
	From       *unit.Sum      `json:"from"                  nullable:"true" doc:"Balance before the first change, in rupees or grams as in unit; null: the account did not exist"`
	To         *unit.Sum      `json:"to"                    nullable:"true" doc:"Balance after the last change, in rupees or grams as in unit; null: the account is deleted"`
	Changes    int            `json:"changes"               doc:"Number of changes in the trail that altered the balance. Changes outside the trail are part of from and to"`
	First      event.Position `json:"first_position"        doc:"Position of the first of these changes"`
	Last       event.Position `json:"last_position" doc:"Position of the last of these changes"`
}

// Restated finds the closing balances that changes have altered. A month closes at the end of its last day. An account's closing balance is
// its balance at that time, if the account existed. A later change alters the closing balance if the date of the change is in that month or
// earlier.
type Restated struct {
	Zone *time.Location // time zone of the workshop, in which a day ends

	moved map[closing]*closingMove
}

type closing struct {
	account int64
	day     unit.Date
}

type closingMove struct {
	workspace   uuid.UUID
	ledger      string
	name        string
	changes     int
	first, last event.Position
}

// Add takes the next change of a trail.
func (r *Restated) Add(c Change) {
	if c.Account == nil || len(c.moves) == 0 && c.ends == nil {
		return
	}
	earliest := c.ends
	for _, m := range c.moves {
		if earliest == nil || m.day < *earliest {
			earliest = &m.day
		}
	}
	recorded, opened := unit.DateOf(c.At.In(r.Zone)), unit.DateOf(c.opened.In(r.Zone))
	for day := monthEnd(max(*earliest, opened)); day < recorded; day = monthEnd(day + 1) {
		if c.ends == nil && !c.movesClosing(day) {
			continue
		}
		if r.moved == nil {
			r.moved = map[closing]*closingMove{}
		}
		key := closing{c.Account.ID, day}
		m := r.moved[key]
		if m == nil {
			m = &closingMove{workspace: c.Workspace, first: c.Position}
			r.moved[key] = m
		}
		m.ledger, m.name, m.last = c.Ledger, c.Account.Name, c.Position
		m.changes++
	}
}

// movesClosing reports whether the change alters the balance at the end of a day.
func (c Change) movesClosing(day unit.Date) bool {
	var cash, fine unit.Sum
	for _, m := range c.moves {
		if m.day <= day {
			cash.Decimal, fine.Decimal = cash.Add(m.cash.Decimal), fine.Add(m.fine.Decimal)
		}
	}
	return !cash.IsZero() || !fine.IsZero()
}

func monthEnd(day unit.Date) unit.Date {
	y, m, _ := day.Time().Date()
	return unit.DateOf(time.Date(y, m+1, 0, 0, 0, 0, 0, time.UTC))
}

// fiscalYear returns the fiscal year that a day closes, or "". Fiscal years in India end with March.
func fiscalYear(day unit.Date) string {
	y, m, d := day.Time().Date()
	if m != time.March || d != 31 {
		return ""
	}
	return fmt.Sprintf("FY %d-%02d", y-1, y%100)
}

// closingsBatch is the number of closings in one query.
const closingsBatch = 500

// Each calls take for each restatement, by account and day. It omits closing balances that have returned to their first value.
func (r *Restated) Each(ctx context.Context, at *readmodels.At, views *ledgerview.Views, take func(Restatement) error) error {
	keys := slices.SortedFunc(maps.Keys(r.moved), func(a, b closing) int {
		return cmp.Or(slices.Compare(r.moved[a].workspace[:], r.moved[b].workspace[:]), cmp.Compare(a.account, b.account),
			cmp.Compare(a.day, b.day))
	})
	for len(keys) > 0 {
		workspace := r.moved[keys[0]].workspace
		n := 1
		for n < len(keys) && n < closingsBatch && r.moved[keys[n]].workspace == workspace {
			n++
		}
		asked := make([]ledgerview.Closing, 0, 2*n)
		for _, k := range keys[:n] {
			asked = append(asked, ledgerview.Closing{Account: k.account, Day: k.day, KnownAt: r.moved[k].first - 1},
				ledgerview.Closing{Account: k.account, Day: k.day, KnownAt: r.moved[k].last})
		}
		found, err := views.Closings(ctx, at, workspace, asked)
		if err != nil {
			return err
		}
		for i, k := range keys[:n] {
			if err := r.moved[k].each(k, found[2*i], found[2*i+1], take); err != nil {
				return err
			}
		}
		keys = keys[n:]
	}
	return nil
}

func (m *closingMove) each(k closing, was, is ledgerview.Closed, take func(Restatement) error) error {
	for _, u := range []struct {
		name     string
		from, to *unit.Sum
	}{{"cash", was.Cash, is.Cash}, {"fine", was.Fine, is.Fine}} {
		if same(u.from, u.to) || u.to == nil && u.from.IsZero() {
			continue
		}
		if err := take(Restatement{
			Workspace: m.workspace, Ledger: m.ledger, Account: Named{ID: k.account, Name: m.name}, Closing: k.day, FiscalYear: fiscalYear(k.day),
			Unit: u.name, From: u.from, To: u.to, Changes: m.changes, First: m.first, Last: m.last,
		}); err != nil {
			return err
		}
	}
	return nil
}

func same(a, b *unit.Sum) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Equal(b.Decimal)
}
