package main

import (
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"bahi/domain/event"
	"bahi/domain/ledger"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/bookslock"
	"bahi/domain/unit"
	"bahi/eventstore/tlog"
)

// books are what an account's events come to.
type books struct {
	ledger    *book.Ledger
	workspace string
	account   book.Account
	rows      map[string]book.Row
	locked    *unit.Date
}

// fold applies an account's events, and those that concern all accounts, up to a position.
func fold(account, common []event.Stored, upTo event.Position) (*books, *finding) {
	b := &books{rows: map[string]book.Row{}}
	for _, e := range account {
		if e.Position > upTo {
			break
		}
		category, _ := event.SplitStream(e.Stream)
		l := ledger.Of(category)
		if b.ledger == nil {
			var meta struct{ Workspace uuid.UUID }
			_ = json.Unmarshal(e.Meta, &meta) // without one it is of no workspace
			b.ledger, b.workspace = l, meta.Workspace.String()
		}
		if l != b.ledger {
			return nil, undecided("The account has events of two ledgers: %s.", shown(&e))
		}
		var err error
		if category == l.Accounts.Category() {
			b.account, err = applied(l.Accounts, b.account, e)
		} else {
			b.rows[e.Stream], err = applied(l.Rows, b.rows[e.Stream], e)
		}
		if err != nil {
			return nil, unreadable(&e, err)
		}
	}
	if b.ledger == nil {
		return nil, undecided("The account has no event up to position %d.", upTo)
	}
	var lock bookslock.State
	for _, e := range common {
		if category, _ := event.SplitStream(e.Stream); category != bookslock.Kind.Category() || e.Position > upTo {
			continue
		}
		var err error
		if lock, err = applied(bookslock.Kind, lock, e); err != nil {
			return nil, unreadable(&e, err)
		}
	}
	b.locked = lock.Through
	return b, nil
}

func applied[S any](kind *event.Kind[S], s S, e event.Stored) (S, error) {
	r, err := kind.Decode(e)
	if err != nil {
		return s, err
	}
	return kind.Evolve(s, r), nil
}

func unreadable(e *event.Stored, err error) *finding {
	return undecided("This program does not know %s, so that it cannot tell what it counts: %s.", shown(e), printable(err.Error()))
}

// figures returns the balances before the first day, 0 without one, and at the end of the last day.
func (b *books) figures(from, to string) (opening, closing tlog.Figures, found *finding) {
	first, last := unit.Date(-1<<31), unit.Date(1<<31-1)
	for _, one := range []struct {
		text string
		into *unit.Date
	}{{from, &first}, {to, &last}} {
		var err error
		if one.text == "" {
			continue
		}
		if *one.into, err = unit.ParseDate(one.text); err != nil {
			return opening, closing, tampered("%q is no day.", one.text)
		}
	}
	var cash, fine [2]decimal.Decimal
	for _, r := range b.rows {
		in, out := r.Counts()
		net := in.Minus(out)
		for i, counts := range []bool{r.Date < first, r.Date <= last} {
			if counts && r.Exists() && b.account.Open() {
				cash[i], fine[i] = cash[i].Add(net.Cash.Decimal()), fine[i].Add(net.Fine.Decimal())
			}
		}
	}
	of := func(i int) tlog.Figures {
		return tlog.Figures{Cash: cash[i].StringFixed(unit.MoneyPlaces), Fine: fine[i].StringFixed(unit.GramsPlaces)}
	}
	return of(0), of(1), nil
}

// words returns balances for people.
func (b *books) words(f tlog.Figures) string {
	if b.ledger.Metal {
		return fmt.Sprintf("₹ %s and %s g", f.Cash, f.Fine)
	}
	return "₹ " + f.Cash
}
