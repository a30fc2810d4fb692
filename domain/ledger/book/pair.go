package book

import (
	"cmp"
	"fmt"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/unit"
)

// A transfer between two accounts is a pair of rows, each with the id of the other. Pairing changes no balance, so it is allowed on locked
// dates.

// RowPaired records the row of another account that has the opposite value.
type RowPaired struct {
	With    int64 `json:"with"`
	Account int64 `json:"account"` // account of the other row
}

// RowUnpaired records that the pair was dissolved.
type RowUnpaired struct{}

// Evolve sets the other row.
func (e RowPaired) Evolve(r Row) Row { r.PairedWith = e.With; return r }

// Evolve removes the other row.
func (RowUnpaired) Evolve(r Row) Row { r.PairedWith = 0; return r }

// moved returns the net effect of the row without wastage. A paired row must have the opposite value.
func (r Row) moved() Effect {
	in, out := r.Counts()
	return in.Minus(out).Minus(Effect{Fine: r.Lost()})
}

// Lost returns the wastage.
func (r Row) Lost() unit.Grams {
	if r.Void {
		return 0
	}
	return r.In.Loss - r.Out.Loss
}

// Metal returns the metal that the row names, or "" for the metal of its account.
func (r Row) Metal() string { return cmp.Or(r.In.Metal, r.Out.Metal) }

// Debit returns the change of the workshop's assets by the row.
func (l *Ledger) Debit(r Row) Effect {
	if l.Held {
		return r.moved()
	}
	return Effect{}.Minus(r.moved())
}

// Movement is a transfer of money or fine metal between two accounts.
type Movement struct {
	Amount      *unit.Money `json:"amount,omitempty" doc:"In rupees; this or fine_weight"`
	FineWeight  *unit.Grams `json:"fine_weight,omitempty" doc:"In grams of fine metal; in grams of weight for polishers"`
	Metal       Metal       `json:"metal,omitempty" maxLength:"40" doc:"Metal of the fine weight; absent: that of each account"`
	Description Text        `json:"description,omitempty" maxLength:"200" doc:"Description of both entries"`
}

// Check returns the faults by field. A ledger is nil if its account is unknown.
func (v Movement) Check(from, to *Ledger) []fault.Field {
	var c Checker
	switch {
	case v.Amount == nil && v.FineWeight == nil:
		c.Wrong("amount", "amount or fine_weight is required")
	case v.Amount != nil && v.FineWeight != nil:
		c.Wrong("fine_weight", "is not possible with amount: post two transfers")
	case v.Amount != nil && *v.Amount <= 0:
		c.Wrong("amount", "must be more than 0")
	case v.FineWeight != nil && *v.FineWeight <= 0:
		c.Wrong("fine_weight", "must be more than 0")
	case v.FineWeight != nil && (from != nil && !from.Metal || to != nil && !to.Metal):
		c.Wrong("fine_weight", "a bank account has no metal")
	}
	c.Metallic(v.Metal, v.FineWeight != nil)
	c.Text("description", v.Description, MaxItemName)
	return c.Faults()
}

// Transfer returns the row for one account of a transfer. gives: the account gives the value.
func (l *Ledger) Transfer(date unit.Date, v Movement, gives bool) RowInput {
	if out := gives == l.Held; out {
		return RowInput{Date: &date, In: l.in.none, Out: l.transferOut(v)}
	}
	return RowInput{Date: &date, In: l.transferIn(v), Out: l.out.none}
}

// CheckPair returns the error of two rows that cannot be paired, or nil. The metals are those of the rows, their accounts or the workspace.
func CheckPair(a, b LedgerRow, metals [2]string) error {
	for _, one := range [...]LedgerRow{a, b} {
		if err := one.Editable(); err != nil {
			return conflictWith("rows", one.ID, "Row %d is void, reversed, or reverses another row")
		}
		if one.PairedWith != 0 {
			return conflictWith("rows", one.ID, "Row %d is paired with another row already")
		}
	}
	var wrong string
	switch sum := a.Ledger.Debit(a.Row).Plus(b.Ledger.Debit(b.Row)); {
	case a.Account == b.Account:
		wrong = "both rows are of the same account"
	case sum.Cash != 0:
		wrong = fmt.Sprintf("the rows differ by %s rupees: their values must be opposite", abs(sum.Cash))
	case sum.Fine != 0:
		wrong = fmt.Sprintf("the rows differ by %s grams: their values must be opposite", abs(sum.Fine))
	case a.moved() == Effect{}:
		wrong = "the rows have no value"
	case a.moved().Fine != 0 && metals[0] != metals[1]:
		wrong = fmt.Sprintf("one row is of %s, the other of %s", metals[0], metals[1])
	default:
		return nil
	}
	return fault.Wrong("rows", wrong)
}

func abs[Q unit.Money | unit.Grams](q Q) Q { return max(q, -q) }

// PairRow records the other row of the pair.
type PairRow struct{ RowPaired }

// Decide returns the pairing. The caller calls [CheckPair] first.
func (c PairRow) Decide(Row) ([]event.Event[Row], error) { return []event.Event[Row]{c.RowPaired}, nil }

// ErrNoRow reports an unknown row.
var ErrNoRow = fault.New(fault.NotFound, "Row not found")

// KeepRow changes nothing. It makes the append check the row's revision.
type KeepRow struct{}

// Decide returns no event.
func (KeepRow) Decide(Row) ([]event.Event[Row], error) { return nil, nil }

// UnpairRow dissolves the pair of a row.
type UnpairRow struct{}

// Decide returns a conflict if the row is not paired.
func (UnpairRow) Decide(r Row) ([]event.Event[Row], error) {
	if r.PairedWith == 0 {
		return nil, fault.New(fault.Conflict, "The row is not paired")
	}
	return []event.Event[Row]{RowUnpaired{}}, nil
}

// Follow returns the command for the other row of a pair after a change of one row, or nil if none is required. It returns a conflict if
// the values of the two rows would no longer be opposite.
func Follow(before, after Row, other LedgerRow, today unit.Date) (event.Command[Row], error) {
	switch {
	case after.Deleted:
		return DeleteRow{Ledger: other.Ledger, Account: other.Account}, nil
	case after.Void && !before.Void:
		return VoidRow{Ledger: other.Ledger, Account: other.Account}, nil
	case after.moved() != before.moved() || after.Metal() != before.Metal():
		return nil, conflictWith("paired_with", before.PairedWith, "The row is paired with row %d, which has the same value: unpair them first")
	case after.Date != before.Date && before.Date == other.Date:
		return EditRow{Ledger: other.Ledger, Account: other.Account, Today: today, RowInput: RowInput{Date: &after.Date}}, nil
	default:
		return nil, nil
	}
}
