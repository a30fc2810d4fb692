package replay

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"iter"
	"math"
	"slices"
	"strings"

	"bahi/domain/event"
	"bahi/domain/unit"
)

// Row is the state of a row after its events. It has no pointers, and digests in place of entries, because a log may have millions of rows.
type Row struct {
	ID, Account          int64
	In, Out              Amount     // zero if the row is void
	Loss                 unit.Grams // wastage, part of In
	Reverses, ReversedBy int64
	Paired               int64 // the other row of a transfer
	Position             event.Position
	InDigest, OutDigest  [sha256.Size]byte // digests of the entries' text; zero: no entries
	Date                 unit.Date
	Deleted, Void        bool

	inMetal, outMetal uint16 // the metals that the entries name, as indexes of rows.metals; 0: none
}

// Amount is a value in money and metal.
type Amount struct {
	Cash unit.Money
	Fine unit.Grams
}

func (a Amount) plus(o Amount) Amount  { return Amount{a.Cash + o.Cash, a.Fine + o.Fine} }
func (a Amount) minus(o Amount) Amount { return Amount{a.Cash - o.Cash, a.Fine - o.Fine} }

// settled reports whether the row can no longer be changed.
func (r *Row) settled() bool { return r.ReversedBy != 0 || r.Reverses != 0 || r.Void }

// rows has all rows in chunks, so that growing copies no rows.
type rows struct {
	index  map[int64]uint32
	chunks []*[chunk]Row
	count  uint32
	metals []string // the names, by number
}

const chunk = 4096

func (r *rows) at(i uint32) *Row { return &r.chunks[i/chunk][i%chunk] }

// kept returns the rows that are not deleted, with their indexes.
func (r *rows) kept() iter.Seq2[uint32, *Row] {
	return func(yield func(uint32, *Row) bool) {
		for i := range r.count {
			if one := r.at(i); !one.Deleted && !yield(i, one) {
				return
			}
		}
	}
}

func (r *rows) find(id int64) (*Row, bool) {
	i, found := r.index[id]
	if !found {
		return nil, false
	}
	return r.at(i), true
}

func (r *rows) add(id int64) *Row {
	if r.count%chunk == 0 {
		r.chunks = append(r.chunks, new([chunk]Row))
	}
	r.index[id] = r.count
	r.count++
	return r.at(r.count - 1)
}

// metal returns the index of a metal's name.
func (r *rows) metal(name string) uint16 {
	i := slices.Index(r.metals, name)
	if i < 0 && len(r.metals) <= math.MaxUint16 {
		i, r.metals = len(r.metals), append(r.metals, name)
	}
	return uint16(max(i, 0))
}

// rowData has the fields of all row events.
type rowData struct {
	Account  int64           `json:"account"`
	Date     *unit.Date      `json:"date"`
	In       json.RawMessage `json:"in_entries"`
	Out      json.RawMessage `json:"out_entries"`
	Reverses int64           `json:"reverses"`
	By       int64           `json:"by"`
	With     int64           `json:"with"`
}

// row applies an event of a row.
func (b *Books) row(e recorded, ledger string) string {
	suffix, named := strings.CutPrefix(e.Type, strings.TrimSuffix(ledgers[ledger], "Account")+"Row")
	if !named {
		return unknownType
	}
	var data rowData
	if reason := decoded(e, &data); reason != "" {
		return reason
	}
	r, known := b.rows.find(e.id)
	exists := known && !r.Deleted
	if suffix == "Added" {
		b.rule(!known, e, data.Account, e.id, "a row is added twice")
		if exists {
			return ""
		}
		return b.add(e, ledger, r, data)
	}
	if !known {
		b.rule(false, e, 0, e.id, "a row that was never added is changed")
		return ""
	}
	before := *r
	switch suffix {
	case "Edited":
		if !exists {
			break
		}
		if data.Date != nil {
			r.Date = *data.Date
		}
		if reason := r.enter(&b.rows, ledger, data, true); reason != "" {
			return reason
		}
	case "Deleted":
		r.Deleted = true
	case "Voided":
		r.Void = r.Void || exists
	case "Reversed":
		r.ReversedBy = data.By
	case "Paired":
		r.Paired = data.With
	case "Unpaired":
		r.Paired = 0
	default:
		return unknownType
	}
	r.Position = e.Position
	if r.Void {
		r.In, r.Out, r.Loss = Amount{}, Amount{}, 0
	}
	b.judge(e, ledger, suffix, &before, r)
	return ""
}

// add applies the event that adds a row. r is the deleted row with this number, or nil.
func (b *Books) add(e recorded, ledger string, r *Row, data rowData) string {
	added := Row{ID: e.id, Account: data.Account, Reverses: data.Reverses, Position: e.Position}
	if data.Account == 0 || data.Date == nil {
		return "its payload lacks the account or the date"
	}
	added.Date = *data.Date
	if reason := added.enter(&b.rows, ledger, data, false); reason != "" {
		return reason
	}
	if r == nil {
		r = b.rows.add(e.id)
	}
	*r = added
	b.judge(e, ledger, "Added", r, r)
	return ""
}

// enter sets the entries of both sides. An edit leaves absent sides unchanged.
func (r *Row) enter(of *rows, ledger string, data rowData, edit bool) string {
	for _, side := range []struct {
		text   json.RawMessage
		out    bool
		amount *Amount
		digest *[sha256.Size]byte
		metal  *uint16
	}{{data.In, false, &r.In, &r.InDigest, &r.inMetal}, {data.Out, true, &r.Out, &r.OutDigest, &r.outMetal}} {
		if side.text == nil || string(side.text) == "null" {
			if edit {
				continue
			}
			side.text = []byte("[]")
		}
		if *side.digest = ([sha256.Size]byte{}); !bytes.Equal(side.text, []byte("[]")) {
			*side.digest = sha256.Sum256(side.text)
		}
		sum, loss, metal, reason := sumOf(ledger, side.out, side.text)
		if reason != "" {
			return reason
		}
		if !side.out {
			r.Loss = loss
		}
		*side.amount, *side.metal = sum, of.metal(metal)
	}
	return ""
}

// judge checks a row's change by the invariants between the row and other records.
func (b *Books) judge(e recorded, ledger, change string, before, after *Row) {
	a := b.accounts[after.Account]
	if a != nil {
		a.last = e.Position
	}
	if change == "Paired" || change == "Unpaired" {
		return
	}
	of := after.Account
	b.rule(a.open(ledger, e.workspace), e, of, e.id, "a row is written on an account that is not open")
	if change == "Reversed" {
		b.rule(before.ReversedBy == 0 && !before.Void, e, of, e.id, "a row that is reversed or void is reversed")
		by, found := b.rows.find(after.ReversedBy)
		b.rule(found && by.Reverses == e.id && by.Account == of, e, of, e.id, "a row is reversed by a row that does not name it")
		return
	}
	b.rule(!e.workspace.locks(&before.Date) && !e.workspace.locks(&after.Date), e, of, e.id, "a row on a locked date is written")
	if change == "Added" {
		other, found := b.rows.find(after.Reverses)
		b.rule(after.Reverses == 0 || found && other.Account == of, e, of, e.id, "a row reverses one that is not of its account")
		b.rule(after.Reverses == 0 || !found || other.ReversedBy == 0 || other.ReversedBy == e.id, e, of, e.id,
			"a row reverses one that is reversed already")
		return
	}
	b.rule(!before.settled(), e, of, e.id, "a settled row is changed")
}

// entry has the fields that determine an entry's value, of the entries of all ledgers.
type entry struct {
	Kind          string      `json:"kind"`
	Amount        unit.Money  `json:"amount"`
	MakingCharge  unit.Money  `json:"making_charge"`
	Other         unit.Money  `json:"other"`
	Rate          *unit.Money `json:"rate"`
	FineWeight    unit.Grams  `json:"fine_weight"`
	WastageWeight unit.Grams  `json:"wastage_weight"`
	Weight        unit.Grams  `json:"weight"`
	LossWeight    unit.Grams  `json:"loss_weight"`
	Metal         string      `json:"metal"`
}

// sumOf returns the value of a side's entries and the first metal that they name.
func sumOf(ledger string, out bool, text []byte) (sum Amount, loss unit.Grams, metal, reason string) {
	var entries []entry
	if err := json.Unmarshal(text, &entries); err != nil {
		return sum, 0, "", "its entries cannot be read"
	}
	for _, e := range entries {
		value := e.value(ledger, out)
		if sum = sum.plus(value); value.Fine != 0 {
			metal = cmp.Or(metal, e.Metal)
		}
		switch ledger {
		case "karigar":
			loss += e.WastageWeight
		case "polisher":
			loss += e.LossWeight
		}
	}
	return sum, loss, metal, ""
}

// value returns the value of an entry (docs/books.md, "What an entry counts").
func (e entry) value(ledger string, out bool) Amount {
	switch {
	case ledger == "bank":
		return Amount{Cash: e.Amount}
	case ledger == "bullion" && e.Kind == "rate_cut" && e.Weight+e.FineWeight > 0:
		return Amount{Fine: e.FineWeight}
	case ledger == "client" && e.Rate != nil:
		return Amount{Cash: e.Amount + e.MakingCharge}
	case ledger == "client":
		return Amount{e.Amount + e.MakingCharge, e.FineWeight}
	case ledger == "karigar" && !out:
		return Amount{e.Other, e.FineWeight + e.WastageWeight}
	case ledger == "polisher" && !out:
		return Amount{e.Amount, e.Weight + e.LossWeight}
	case ledger == "polisher":
		return Amount{e.Amount, e.Weight}
	default: // bullion entries, and OUT entries of a karigar
		return Amount{e.Amount, e.FineWeight}
	}
}
