package khata

import (
	"encoding/json"
	"fmt"
	"strings"

	"bahi/domain/fault"
	"bahi/domain/ledger"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/bullion"
	"bahi/domain/ledger/client"
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

// refused reports whether the request's schema has refused the line. A refused line becomes no row, but the other lines are still checked.
func (l Line) refused() bool {
	return ledger.Named(l.Ledger) == nil || l.Side != khatapage.In && l.Side != khatapage.Out
}

// group is the lines of one row.
type group struct {
	ledger  *book.Ledger
	account int64
	date    unit.Date
	in, out []int // indexes of lines
}

// grouped groups lines by account and date, in the order of their first lines.
func grouped(lines []Line) (all []*group) {
	type key struct {
		ledger  string
		account int64
		date    unit.Date
	}
	known := map[key]*group{}
	for i, l := range lines {
		if l.refused() {
			continue
		}
		k := key{l.Ledger, l.Account, l.Date}
		g := known[k]
		if g == nil {
			g = &group{ledger: ledger.Named(l.Ledger), account: l.Account, date: l.Date}
			known[k] = g
			all = append(all, g)
		}
		if l.Side == khatapage.In {
			g.in = append(g.in, i)
		} else {
			g.out = append(g.out, i)
		}
	}
	return all
}

// side has the entries of one side and the lines they come from.
type side struct {
	given book.SideInput
	list  any
	of    []int // the line of each entry
}

func sideOf[E book.Entry](lines []Line, places []int, entries func(Line) []E) (s side) {
	list := []E{}
	for _, i := range places {
		for _, e := range entries(lines[i]) {
			list, s.of = append(list, e), append(s.of, i)
		}
	}
	s.given, s.list = book.Entries(list), list
	return s
}

func (g *group) sides(lines []Line) (in, out side) {
	switch g.ledger {
	case bank.Ledger:
		entry := func(l Line) []bank.Entry {
			e := bank.Entry{Description: l.Item}
			if l.Amount != nil {
				e.Amount = *l.Amount
			}
			return []bank.Entry{e}
		}
		return sideOf(lines, g.in, entry), sideOf(lines, g.out, entry)
	case bullion.Ledger:
		return sideOf(lines, g.in, bullionEntries), sideOf(lines, g.out, bullionEntries)
	case client.Ledger:
		entry := func(l Line) client.Out {
			return client.Out{ItemName: l.Item, Weight: l.Weight, Touch: l.Touch, FineWeight: l.Fine, Amount: l.Amount}
		}
		return sideOf(lines, g.in, func(l Line) []client.In { return []client.In{client.In(entry(l))} }),
			sideOf(lines, g.out, func(l Line) []client.Out { return []client.Out{entry(l)} })
	case karigar.Ledger:
		return sideOf(lines, g.in, func(l Line) []karigar.In {
				return []karigar.In{{ItemName: l.Item, PureWeight: l.Weight, FinePercent: l.Touch, FineWeight: l.Fine, Other: l.Amount}}
			}), sideOf(lines, g.out, func(l Line) []karigar.Out {
				return []karigar.Out{{ItemName: l.Item, Weight: l.Weight, Touch: l.Touch, FineWeight: l.Fine, Amount: l.Amount}}
			})
	default:
		return sideOf(lines, g.in, func(l Line) []polisher.In {
				return []polisher.In{{ItemName: l.Item, Weight: l.Weight, Amount: l.Amount}}
			}), sideOf(lines, g.out, func(l Line) []polisher.Out {
				return []polisher.Out{{ItemName: l.Item, Weight: l.Weight, Amount: l.Amount}}
			})
	}
}

// bullionEntries returns the metal and the cash of a line as separate entries, because each entry has one unit.
func bullionEntries(l Line) (all []bullion.Entry) {
	if l.Weight != nil || l.Touch != nil || l.Fine != nil || l.Amount == nil {
		all = append(all, bullion.Entry{ItemName: l.Item, Weight: l.Weight, Touch: l.Touch, FineWeight: l.Fine})
	}
	if l.Amount != nil {
		all = append(all, bullion.Entry{ItemName: l.Item, Amount: l.Amount})
	}
	return all
}

// Lines converts lines to rows. Lines with the same account and date become one row. Even with an error, it returns the converted rows, so
// that the caller can check them too.
func Lines(lines []Line) ([]Asked, error) {
	if err := CheckCount("entries", len(lines)); err != nil {
		return nil, err
	}
	var wrong []fault.Field
	for i, l := range lines {
		if l.refused() {
			continue
		}
		for _, field := range unused[l.Ledger] {
			if field == "weight" && l.Weight != nil || field == "touch" && l.Touch != nil || field == "fine_weight" && l.Fine != nil {
				wrong = append(wrong, fault.Field{Field: fmt.Sprintf("entries[%d].%s", i, field),
					Message: "the " + l.Ledger + " ledger has no such field"})
			}
		}
	}
	var rows []Asked
	for _, g := range grouped(lines) {
		in, out := g.sides(lines)
		date := g.date
		rows = append(rows, Asked{
			Ledger: g.ledger, Account: g.account, Row: book.RowInput{Date: &date, In: in.given, Out: out.given},
			Of:    append(append([]int{}, g.in...), g.out...),
			Place: func(field string) string { return g.place(field, in, out) },
		})
	}
	if len(wrong) > 0 {
		return rows, fault.Fields(wrong...)
	}
	return rows, nil
}

// place returns the field of the request that corresponds to a field of the row.
func (g *group) place(field string, in, out side) string {
	first := append(append([]int{}, g.in...), g.out...)[0]
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
		if other, ok := renamed[g.ledger.Name+" "+name][inner]; ok {
			inner = other
		}
		return at + "." + inner
	}
	if field == "date" || field == "account_id" {
		return fmt.Sprintf("entries[%d].%s", first, field)
	}
	return fmt.Sprintf("entries[%d]", first)
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
	rows := []ProposedRow{}
	type key struct {
		ledger  string
		account int64
		party   string
		date    unit.Date
	}
	known := map[key]int{}
	lists := [][2][]Line{}
	for _, e := range entries {
		k := key{orZero(e.Ledger), orZero(e.Account), orZero(e.Party), orZero(e.Date)}
		if e.Account != nil {
			k.party = ""
		}
		at, ok := known[k]
		if !ok {
			at = len(rows)
			known[k] = at
			rows, lists = append(rows, ProposedRow{Ledger: e.Ledger, Account: e.Account, Party: e.Party, Date: e.Date}), append(lists, [2][]Line{})
		}
		nth := 0
		if e.Side == khatapage.Out {
			nth = 1
		}
		lists[at][nth] = append(lists[at][nth], Line{
			Ledger: k.ledger, Side: e.Side, Item: book.Text(orZero(e.Item)), Weight: e.Weight, Touch: e.Touch, Fine: e.Fine, Amount: e.Amount,
		})
	}
	for i, both := range lists {
		l := ledger.Named(orZero(rows[i].Ledger))
		rows[i].In, rows[i].Out = proposed(l, both[0], khatapage.In), proposed(l, both[1], khatapage.Out)
	}
	return rows
}

// unnamed is an entry of a party without an account.
type unnamed struct {
	Item   book.Text     `json:"item_name,omitempty"`
	Weight *unit.Grams   `json:"weight,omitempty"`
	Touch  *unit.Percent `json:"touch,omitempty"`
	Fine   *unit.Grams   `json:"fine_weight,omitempty"`
	Amount *unit.Money   `json:"amount,omitempty"`
}

func proposed(l *book.Ledger, lines []Line, of string) json.RawMessage {
	if l == nil {
		list := []unnamed{}
		for _, line := range lines {
			list = append(list, unnamed{line.Item, line.Weight, line.Touch, line.Fine, line.Amount})
		}
		return raw(list)
	}
	all := make([]int, len(lines))
	for i := range all {
		all[i] = i
	}
	g := &group{ledger: l}
	if of == khatapage.In {
		g.in = all
		in, _ := g.sides(lines)
		return raw(in.list)
	}
	g.out = all
	_, out := g.sides(lines)
	return raw(out.list)
}

func orZero[T any](v *T) (zero T) {
	if v == nil {
		return zero
	}
	return *v
}
