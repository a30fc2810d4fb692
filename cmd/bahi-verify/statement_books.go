package main

import (
	"fmt"
	"slices"

	"bahi/domain/event"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/replay"
	"bahi/domain/unit"
	"bahi/eventstore/tlog"
)

// fold replays the account's events and the common events, up to a position.
func (x *examination) fold(upTo event.Position, from, to string) (s replay.Statement, found *finding) {
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
			return s, tampered("%q is not a date.", one.text)
		}
	}
	events := slices.Concat(x.account, x.common)
	slices.SortStableFunc(events, func(a, b event.Stored) int { return int(a.Position) - int(b.Position) })
	b := replay.New(0)
	for _, e := range events {
		if e.Position <= upTo {
			b.Add(e)
		}
	}
	if len(b.Doubts) > 0 {
		d := b.Doubts[0]
		return s, undecided("This program does not know the event at position %d (%s %s), and cannot compute its amounts: %s.",
			d.Position, printable(d.Type), printable(d.Stream), d.Reason)
	}
	s, known := b.Statement(x.Account, first, last)
	if !known {
		return s, undecided("The account has no event up to position %d.", upTo)
	}
	for _, broken := range b.Breaches {
		if broken.Account == x.Account { // the digests of closed periods are of all accounts
			return s, undecided("An event at position %d breaks a rule of the books: %s.", broken.Position, broken.Text)
		}
	}
	return s, nil
}

func figures(a replay.Amount) tlog.Figures {
	return tlog.Figures{Cash: a.Cash.Decimal().StringFixed(unit.MoneyPlaces), Fine: a.Fine.Decimal().StringFixed(unit.GramsPlaces)}
}

// words returns balances in words for people.
func words(l *book.Ledger, f tlog.Figures) string {
	if l.Metal {
		return fmt.Sprintf("₹ %s and %s g", f.Cash, f.Fine)
	}
	return "₹ " + f.Cash
}
