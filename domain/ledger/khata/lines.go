package khata

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"bahi/domain/fault"
	"bahi/domain/ledger"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/bullion"
	"bahi/domain/ledger/karigar"
	"bahi/domain/ledger/khatapage"
	"bahi/domain/ledger/polisher"
	"bahi/domain/unit"
)

// Line is an entry of a khata as a user checked it.
type Line struct {
	Ledger  string        `json:"ledger" enum:"bank,bullion,client,karigar,polisher" doc:"Ledger, such as bank"`
	Account int64         `json:"account_id" minimum:"1" doc:"ID of the account"`
	Side    string        `json:"side" enum:"in,out" doc:"Side: in or out"`
	Date    unit.Date     `json:"date" doc:"Date of the row"`
	Item    book.Text     `json:"item_name,omitempty" maxLength:"200" doc:"Name of the item"`
	Weight  *unit.Grams   `json:"weight,omitempty" doc:"Weight in grams"`
	Touch   *unit.Percent `json:"touch,omitempty" doc:"Purity in percent"`
	Fine    *unit.Grams   `json:"fine_weight,omitempty" doc:"Fine weight in grams"`
	Amount  *unit.Money   `json:"amount,omitempty" doc:"Amount in rupees"`
}

// renamed has the differing names of a line's fields in a ledger's entries (CONTRACT.md I18).
var renamed = map[string]map[string]string{
	"bank in": {"description": "item_name"}, "bank out": {"description": "item_name"},
	"karigar in": {"pure_weight": "weight", "fine_percent": "touch", "other": "amount"},
}

// unused are the fields of a line that a ledger's entries do not have.
var unused = map[string][]string{"bank": {"weight", "touch", "fine_weight"}, "polisher": {"touch", "fine_weight"}}

// entry is an entry of any ledger. It has the fields of all ledgers.
type entry struct {
	ItemName       book.Text     `json:"item_name,omitempty" maxLength:"200" doc:"Name of the item"`
	Description    book.Text     `json:"description,omitempty" maxLength:"500" doc:"Description of the entry"`
	SlipNumber     book.Text     `json:"slip_number,omitempty" maxLength:"40" doc:"Number of the slip"`
	Kind           string        `json:"kind,omitempty" enum:"metal,cash,rate_cut" doc:"Kind of the entry"`
	Pieces         *int64        `json:"pieces,omitempty" minimum:"0" maximum:"999999999" doc:"Number of pieces"`
	Weight         *unit.Grams   `json:"weight,omitempty" doc:"Weight in grams"`
	PureWeight     *unit.Grams   `json:"pure_weight,omitempty" doc:"Weight of the items in grams"`
	LossWeight     *unit.Grams   `json:"loss_weight,omitempty" doc:"Weight lost in work, in grams"`
	Touch          *unit.Percent `json:"touch,omitempty" doc:"Purity in percent"`
	FinePercent    *unit.Percent `json:"fine_percent,omitempty" doc:"Fineness in percent"`
	FineWeight     *unit.Grams   `json:"fine_weight,omitempty" doc:"Fine weight in grams"`
	WastagePercent *unit.Percent `json:"wastage_percent,omitempty" doc:"Wastage in percent"`
	WastageWeight  *unit.Grams   `json:"wastage_weight,omitempty" doc:"Wastage in grams"`
	Rate           *unit.Money   `json:"rate,omitempty" doc:"Rate in rupees for each rate_unit"`
	RateUnit       string        `json:"rate_unit,omitempty" enum:"per_gram,per_10g,per_kg" doc:"Unit of the rate"`
	MakingCharge   *unit.Money   `json:"making_charge,omitempty" doc:"Making charge in rupees"`
	Amount         *unit.Money   `json:"amount,omitempty" doc:"Amount in rupees"`
	Other          *unit.Money   `json:"other,omitempty" doc:"Labour charge in rupees"`
	Computed       []string      `json:"computed,omitempty" readOnly:"true" doc:"Names of the computed fields"`
	Counter        bool          `json:"counter,omitempty" readOnly:"true" doc:"true: Bahi wrote this counter entry of a rate cut"`
}

// SchemaName implements http/api's Named.
func (entry) SchemaName() string { return "LedgerAnyEntry" }

// entries returns the line in the form of its ledger's entries. Metal and money are separate entries of bullion accounts.
func (l Line) entries() []entry {
	switch {
	case l.Ledger == bank.Ledger.Name:
		return []entry{{Description: l.Item, Amount: new(book.Value(l.Amount))}}
	case l.Ledger == polisher.Ledger.Name:
		return []entry{{ItemName: l.Item, Weight: l.Weight, Amount: l.Amount}}
	case l.Ledger == karigar.Ledger.Name && l.Side == khatapage.In:
		return []entry{{ItemName: l.Item, PureWeight: l.Weight, FinePercent: l.Touch, FineWeight: l.Fine, Other: l.Amount}}
	case l.Ledger == bullion.Ledger.Name && l.Amount != nil:
		metal := entry{ItemName: l.Item, Weight: l.Weight, Touch: l.Touch, FineWeight: l.Fine}
		money := entry{ItemName: l.Item, Amount: l.Amount}
		if l.Weight == nil && l.Touch == nil && l.Fine == nil {
			return []entry{money}
		}
		return []entry{metal, money}
	}
	return []entry{{ItemName: l.Item, Weight: l.Weight, Touch: l.Touch, FineWeight: l.Fine, Amount: l.Amount}}
}

// side has the entries of one side of a row, and the line of each.
type side struct {
	entries []entry
	of      []int
}

// rowKey identifies the row of a line.
type rowKey struct {
	ledger  string
	account int64
	party   string // of a line without an account
	date    unit.Date
}

// grouped returns the IN and OUT sides of rows, in the order of their first lines. of returns the row of a line, false for none. A line
// without a side, which the request's schema refuses, is on the IN side: the rules for its fields are the same on both.
func grouped(lines []Line, of func(i int) (rowKey, bool)) (keys []rowKey, rows []*[2]side) {
	known := map[rowKey]*[2]side{}
	for i, l := range lines {
		key, is := of(i)
		if !is {
			continue
		}
		row := known[key]
		if row == nil {
			row = &[2]side{{entries: []entry{}}, {entries: []entry{}}}
			known[key] = row
			keys, rows = append(keys, key), append(rows, row)
		}
		s := &row[0]
		if l.Side == khatapage.Out {
			s = &row[1]
		}
		for _, e := range l.entries() {
			s.entries, s.of = append(s.entries, e), append(s.of, i)
		}
	}
	return keys, rows
}

// inputOf returns the requested content of a row.
func inputOf(l *book.Ledger, date unit.Date, in, out []entry) (book.RowInput, error) {
	return l.Input(&date, raw(in), raw(out))
}

// Lines converts lines to rows. Lines with the same account and date become one row. Even with an error, it returns the converted rows, so
// that the caller can check them too.
func Lines(lines []Line) ([]Asked, error) {
	if err := checkCount("entries", len(lines)); err != nil {
		return nil, err
	}
	var wrong []fault.Field
	for i, l := range lines {
		for _, field := range unused[l.Ledger] {
			if field == "weight" && l.Weight != nil || field == "touch" && l.Touch != nil || field == "fine_weight" && l.Fine != nil {
				wrong = append(wrong, fault.Field{Field: fmt.Sprintf("entries[%d].%s", i, field),
					Message: "the " + l.Ledger + " ledger has no such field"})
			}
		}
	}
	keys, sides := grouped(lines, func(i int) (rowKey, bool) {
		return rowKey{ledger: lines[i].Ledger, account: lines[i].Account, date: lines[i].Date}, ledger.Named(lines[i].Ledger) != nil
	})
	rows := make([]Asked, len(keys))
	for i, k := range keys {
		l, in, out := ledger.Named(k.ledger), sides[i][0], sides[i][1]
		row, err := inputOf(l, k.date, in.entries, out.entries)
		if err != nil {
			return nil, err
		}
		rows[i] = Asked{Ledger: l, Account: k.account, Row: row, List: "entries", Of: slices.Compact(slices.Concat(in.of, out.of)),
			Place: func(field string) string { return placeOf(l, field, in, out) }}
	}
	return rows, fault.Found(wrong)
}

// placeOf returns the field of the request that corresponds to a field of the row.
func placeOf(l *book.Ledger, field string, in, out side) string {
	for name, s := range map[string]side{"in": in, "out": out} {
		rest, found := strings.CutPrefix(field, name+"_entries[")
		if !found {
			continue
		}
		var nth int
		if _, err := fmt.Sscanf(rest, "%d]", &nth); err != nil || nth >= len(s.of) {
			break
		}
		_, inner, named := strings.Cut(rest, "].")
		at := fmt.Sprintf("entries[%d]", s.of[nth])
		if !named {
			return at
		}
		if other, ok := renamed[l.Name+" "+name][inner]; ok {
			inner = other
		}
		return at + "." + inner
	}
	return fmt.Sprintf("entries[%d]", slices.Concat(in.of, out.of)[0])
}

// SubmitRow is a row of any ledger.
type SubmitRow struct {
	Ledger  string    `json:"ledger" enum:"bank,bullion,client,karigar,polisher" doc:"Ledger, such as bank"`
	Account int64     `json:"account_id" minimum:"1" doc:"ID of the account"`
	Date    unit.Date `json:"date" doc:"Date of the row"`
	In      []entry   `json:"in_entries,omitempty" doc:"IN entries with the fields of the ledger"`
	Out     []entry   `json:"out_entries,omitempty" doc:"OUT entries with the fields of the ledger"`
}

// SchemaName implements http/api's Named.
func (SubmitRow) SchemaName() string { return "LedgerSubmitRow" }

// Submitting returns rows in the form of their ledgers. It refuses the fields that a ledger does not have, and then still returns the rows.
func Submitting(sent []SubmitRow) (rows []Asked, err error) {
	if err := checkCount("rows", len(sent)); err != nil {
		return nil, err
	}
	var wrong []fault.Field
	for i, row := range sent {
		l := ledger.Named(row.Ledger)
		if l == nil { // the schema has refused it
			continue
		}
		at := fmt.Sprintf("rows[%d].", i)
		in, out := l.Fields()
		wrong = append(append(wrong, foreign(row.In, in, at+"in_entries")...), foreign(row.Out, out, at+"out_entries")...)
		input, err := inputOf(l, row.Date, row.In, row.Out)
		if err != nil {
			return nil, err
		}
		rows = append(rows, Asked{Ledger: l, Account: row.Account, Row: input, List: "rows", Of: []int{i},
			Place: func(field string) string { return strings.TrimSuffix(at+field, ".") }})
	}
	return rows, fault.Found(wrong)
}

// foreign returns the faults of fields that entries of a side do not have.
func foreign(entries []entry, known []string, at string) (wrong []fault.Field) {
	for i, e := range entries {
		var given map[string]json.RawMessage
		if json.Unmarshal(raw(e), &given) != nil {
			continue // not possible: it is the text of an object
		}
		for name := range given {
			if !slices.Contains(known, name) && name != "computed" && name != "counter" {
				wrong = append(wrong, fault.Field{Field: fmt.Sprintf("%s[%d].%s", at, i, name), Message: "the ledger has no such field on this side"})
			}
		}
	}
	slices.SortFunc(wrong, func(a, b fault.Field) int { return strings.Compare(a.Field, b.Field) })
	return wrong
}

// ProposedRow is a row of a khata in the form of its ledger, for review and submission.
type ProposedRow struct {
	Ledger  *string         `json:"ledger" enum:"bank,bullion,client,karigar,polisher" doc:"Ledger; null: no account has the party's name"`
	Account *int64          `json:"account_id" doc:"ID of the account"`
	Party   *string         `json:"party_name" doc:"Name of the party as written"`
	Date    *unit.Date      `json:"date" doc:"Date of the row; null: not read"`
	In      json.RawMessage `json:"in_entries" doc:"Entries on the IN side"`
	Out     json.RawMessage `json:"out_entries" doc:"Entries on the OUT side"`
}

// Rows returns the proposed rows of the read entries, grouped by account and date. Entries without an account have the
// form of lines.
func Rows(entries []khatapage.Entry) []ProposedRow {
	lines := make([]Line, len(entries))
	for i, e := range entries {
		lines[i] = Line{Ledger: orZero(e.Ledger), Side: e.Side, Item: book.Text(orZero(e.Item)), Weight: e.Weight, Touch: e.Touch, Fine: e.Fine,
			Amount: e.Amount}
	}
	_, sides := grouped(lines, func(i int) (rowKey, bool) {
		e := entries[i]
		k := rowKey{orZero(e.Ledger), orZero(e.Account), orZero(e.Party), orZero(e.Date)}
		if e.Account != nil {
			k.party = ""
		}
		return k, true
	})
	rows := make([]ProposedRow, len(sides))
	for i, both := range sides {
		e := entries[slices.Min(slices.Concat(both[0].of, both[1].of))]
		rows[i] = ProposedRow{e.Ledger, e.Account, e.Party, e.Date, raw(both[0].entries), raw(both[1].entries)}
	}
	return rows
}

func orZero[T any](v *T) (zero T) {
	if v == nil {
		return zero
	}
	return *v
}

// raw returns a value as JSON.
func raw(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Errorf("encode entries: %w", err)) // entries are plain values
	}
	return text
}
