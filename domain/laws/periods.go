package laws

import (
	"bahi/domain/event"
	"bahi/domain/ledger/bookslock"
	"bahi/domain/ledger/closing"
	"bahi/domain/ledger/period"
	"bahi/domain/unit"
)

func (c *Checker) lock(e event.Recorded[any], data bookslock.Moved) {
	closed := c.periods[e.Meta.Workspace].Through()
	c.law(closed == nil || data.To != nil && *data.To >= *closed, "the lock is not moved back behind a closed period")
	c.locks[e.Meta.Workspace] = data.To
}

// isClosed reports whether a day is in a closed period.
func (c *Checker) isClosed(e event.Recorded[any], date unit.Date) bool {
	through := c.periods[e.Meta.Workspace].Through()
	return through != nil && date <= *through
}

func (c *Checker) period(e event.Recorded[any], data event.Event[period.State]) {
	before := c.periods[e.Meta.Workspace]
	newest := before.Through()
	switch data := data.(type) {
	case period.Closed:
		c.law(newest == nil && data.From == nil || newest != nil && data.From != nil && *data.From == *newest+1 && data.Through > *newest,
			"closed periods follow one another")
		c.law(c.isLocked(e, data.Through), "a period is closed when it is locked")
		balances := c.balances(e, data)
		c.law(data.Position < e.Position && data.Digest == closing.Digest(balances),
			"a closed period has the digest of its closing balances")
	case period.Reopened:
		c.law(newest != nil && data.Through == *newest, "only the newest closed period is reopened")
	}
	c.periods[e.Meta.Workspace] = data.Evolve(before)
}

// balances returns the closing balances of a period, of the accounts that were open at its position. The rows of the period have not
// changed since that position.
func (c *Checker) balances(e event.Recorded[any], data period.Closed) []closing.Balance {
	of := map[int64]*closing.Balance{}
	for id, a := range c.accounts {
		if a.workspace == e.Meta.Workspace && a.opened <= data.Position && (a.open || a.deleted > data.Position) {
			of[id] = &closing.Balance{Ledger: a.ledger.Name, Account: id}
		}
	}
	for _, r := range c.rows {
		if b := of[r.account]; b != nil && r.date <= data.Through {
			b.Rows++
			if !r.void {
				b.Cash, b.Fine = b.Cash+r.in.Cash-r.out.Cash, b.Fine+r.in.Fine-r.out.Fine
			}
		}
	}
	balances := make([]closing.Balance, 0, len(of))
	for _, b := range of {
		balances = append(balances, *b)
	}
	return balances
}
