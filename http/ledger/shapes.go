package ledger

import (
	"encoding/json"
	"reflect"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"bahi/domain/event"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/domain/unit"
	views "bahi/readmodels/ledger"
)

// Entries are a row's lines on one side, as they are stored.
type Entries[E book.Entry] struct {
	json.RawMessage
}

// Schema implements huma's SchemaProvider.
func (Entries[E]) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[[]E](), true, "")
}

// lines is what entries were before they were stored.
func (e Entries[E]) lines() (list []E, err error) {
	err = json.Unmarshal(e.RawMessage, &list)
	return list, err
}

func entriesOf[E book.Entry](list []E) Entries[E] {
	if list == nil {
		list = []E{}
	}
	text, err := json.Marshal(list)
	if err != nil {
		panic(err) // it was JSON a moment ago
	}
	return Entries[E]{text}
}

func sum[E book.Entry](list []E) (all book.Effect) {
	for _, e := range list {
		all = all.Plus(e.Effect())
	}
	return all
}

// BankAccount is a bank account as it is answered.
type BankAccount struct {
	ID       *int64    `json:"id" doc:"null in a dry run"`
	Name     string    `json:"name"`
	Balance  *unit.Sum `json:"balance,omitempty" doc:"IN less OUT, of all rows"`
	Revision *int64    `json:"revision" doc:"For If-Match"`
}

func bankAccount(a views.Account) BankAccount {
	return BankAccount{ID: &a.ID, Name: a.Name, Balance: &a.Cash, Revision: &a.Revision}
}

// BankRow is a row of a bank ledger as it is answered.
type BankRow struct {
	ID       *int64              `json:"id" doc:"null in a dry run"`
	Date     unit.Date           `json:"date"`
	In       Entries[bank.Entry] `json:"in_entries"`
	Out      Entries[bank.Entry] `json:"out_entries"`
	Balance  *unit.Sum           `json:"balance,omitempty" doc:"Of the account after this row"`
	Revision *int64              `json:"revision" doc:"For If-Match"`
	Links
}

// Links are what a row has to do with others, and whether it counts.
type Links struct {
	Void       bool   `json:"void,omitempty"        doc:"The row counts nothing, whatever its entries"`
	Reverses   *int64 `json:"reverses,omitempty"    doc:"The row that this one takes back"`
	ReversedBy *int64 `json:"reversed_by,omitempty" doc:"The row that takes this one back"`
}

func bankRow(r views.Row) BankRow {
	return BankRow{
		ID: &r.ID, Date: r.Date, In: Entries[bank.Entry]{r.In}, Out: Entries[bank.Entry]{r.Out}, Balance: &r.Cash, Revision: &r.Revision,
		Links: Links(r.Links),
	}
}

func bankRows(rows []views.Row) []BankRow {
	out := make([]BankRow, len(rows))
	for i := range rows {
		out[i] = bankRow(rows[i])
	}
	return out
}

// written is a row as a command left it.
func written(id string, s bank.Row, revision int64) BankRow {
	row := BankRow{Date: s.Date, In: entriesOf(s.In), Out: entriesOf(s.Out), Revision: &revision, Links: Links{Void: s.Void}}
	if s.Reverses != 0 {
		row.Reverses = &s.Reverses
	}
	if s.ReversedBy != 0 {
		row.ReversedBy = &s.ReversedBy
	}
	if n, err := strconv.ParseInt(id, 10, 64); err == nil {
		row.ID = &n
	}
	return row
}

// BankRowVersion is one step of a row's history.
type BankRowVersion struct {
	Position event.Position `json:"position" doc:"In the log"`
	At       time.Time      `json:"at"`
	Actor    string         `json:"actor"`
	Reason   string         `json:"reason,omitempty"`
	Change   string         `json:"change" enum:"added,edited,deleted,voided,reversed"`
	Before   *BankRow       `json:"before"`
	After    *BankRow       `json:"after"`
}

func bankHistory(id int64, versions []views.Version) []BankRowVersion {
	out := make([]BankRowVersion, len(versions))
	var (
		before *BankRow
		last   *views.Version
	)
	for i, v := range versions {
		after := &BankRow{ID: &id, Date: v.Date, In: Entries[bank.Entry]{v.In}, Out: Entries[bank.Entry]{v.Out}, Revision: &v.Revision, Links: Links(v.Links)}
		if v.Deleted {
			after = nil
		}
		out[i] = BankRowVersion{Position: v.Position, At: v.At, Actor: v.Actor, Reason: v.Reason, Change: v.Change(last), Before: before, After: after}
		before, last = after, &versions[i]
	}
	return out
}
