package ledgerhttp

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"bahi/domain/event"
	"bahi/domain/ledger/book"
	"bahi/domain/unit"
	"bahi/readmodels/ledgerview"
)

// entries are the stored entries of one side of a row.
type entries[E book.Entry] struct {
	json.RawMessage
}

// Schema implements huma's SchemaProvider.
func (entries[E]) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[[]E](), true, "")
}

// ledgerOf returns the ledger with these types of entries.
func ledgerOf[In, Out book.Entry]() *book.Ledger {
	for _, s := range ledgers {
		if in, out := s.ledger.Entries(); in == reflect.TypeFor[In]() && out == reflect.TypeFor[Out]() {
			return s.ledger
		}
	}
	panic("no ledger has such entries")
}

// titled returns the schema name of a ledger, such as LedgerBankRow.
func titled[In, Out book.Entry](before, after string) string {
	return before + ledgerOf[In, Out]().Title + after
}

// entered returns a schema name with types of entries, such as BookAddRowBankEntryBankEntry.
func entered(before string, entries ...reflect.Type) string {
	for _, entry := range entries {
		for part := range strings.SplitSeq(entry.String(), ".") {
			before += strings.ToUpper(part[:1]) + part[1:]
		}
	}
	return before
}

// Metal has the balances of a ledger with metal, in place of the single balance.
type Metal struct {
	Cash            *unit.Sum `json:"cash_balance,omitempty" doc:"IN less OUT, in rupees"`
	Crystal         *unit.Sum `json:"crystal_balance,omitempty" doc:"IN less OUT, in grams of fine metal"`
	CashPosition    string    `json:"cash_position,omitempty" enum:"we_owe,they_owe,settled" doc:"Who owes cash"`
	CrystalPosition string    `json:"crystal_position,omitempty" enum:"we_owe,they_owe,settled" doc:"Who owes metal"`
}

// balances converts a balance to one sum, or to sums of cash and metal.
func balances(l *book.Ledger, b ledgerview.Balance) (*unit.Sum, Metal) {
	if !l.Metal {
		return &b.Cash, Metal{}
	}
	return nil, Metal{&b.Cash, &b.Fine, position(b.Cash), position(b.Fine)}
}

// position returns the debtor of a balance (CONTRACT.md 6.3).
func position(balance unit.Sum) string {
	switch balance.Sign() {
	case 1:
		return "we_owe"
	case -1:
		return "they_owe"
	default:
		return "settled"
	}
}

// without removes the properties that a ledger's responses never have.
func without(l *book.Ledger, s *huma.Schema) *huma.Schema {
	absent := []string{"balance"}
	if !l.Metal {
		absent = []string{"cash_balance", "crystal_balance", "cash_position", "crystal_position", "warnings", "metal"}
	}
	if l.Types == 0 {
		absent = append(absent, "type")
	} else if kind := s.Properties["type"]; kind != nil {
		kind.Description = typeNames(l)
	}
	if crystal := s.Properties["crystal_balance"]; crystal != nil && l.Gross {
		crystal.Description = "IN less OUT, in grams of gross weight"
	}
	for _, name := range absent {
		delete(s.Properties, name)
	}
	return s
}

// typeNames describes the types of a ledger's accounts by the paths of their lists.
func typeNames(l *book.Ledger) string {
	for _, s := range ledgers {
		if s.ledger == l {
			names := make([]string, len(s.paths.OfType))
			for i, path := range s.paths.OfType {
				names[i] = fmt.Sprintf("%d: %s", i, path[1:])
			}
			return strings.Join(names, ", ")
		}
	}
	return ""
}

// account is an account in its response form.
type account[In, Out book.Entry] struct {
	ID      int64     `json:"id,omitzero" required:"true" doc:"ID; absent in a dry run"`
	Name    string    `json:"name" doc:"Name of the account"`
	Type    *int      `json:"type,omitempty" doc:"Type of the account, where the ledger has types"`
	Balance *unit.Sum `json:"balance,omitempty" doc:"IN less OUT of all rows, in rupees"`
	Metal
	Of       string `json:"metal,omitempty" doc:"Metal of the entries that name none; absent: the metal of the workspace"`
	Revision *int64 `json:"revision,omitempty" required:"true" doc:"Revision for If-Match; absent in a dry run"`
}

// SchemaName implements http/api's Named.
func (account[In, Out]) SchemaName() string { return titled[In, Out]("Ledger", "Account") }

// TransformSchema implements huma's SchemaTransformer.
func (account[In, Out]) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	return without(ledgerOf[In, Out](), s)
}

func (o operations[In, Out]) account(a ledgerview.Account) (shown account[In, Out]) {
	shown = account[In, Out]{ID: a.ID, Name: a.Name, Type: a.Type, Of: a.Metal, Revision: &a.Revision}
	shown.Balance, shown.Metal = balances(o.l, a.Balance)
	return shown
}

// Row is a row in its response form.
type Row[In, Out book.Entry] struct {
	ID      int64        `json:"id,omitzero" required:"true" doc:"ID; absent in a dry run"`
	Date    unit.Date    `json:"date" doc:"Date of the row"`
	In      entries[In]  `json:"in_entries" doc:"Entries on the IN side"`
	Out     entries[Out] `json:"out_entries" doc:"Entries on the OUT side"`
	Balance *unit.Sum    `json:"balance,omitempty" doc:"Balance of the account after this row, in rupees"`
	Metal
	Revision *int64    `json:"revision,omitempty" required:"true" doc:"Revision for If-Match; absent in a dry run"`
	Warnings *warnings `json:"warnings,omitempty" doc:"Warnings about given values that differ from their formulas"`
	Void     bool      `json:"void,omitempty" doc:"true: the row is void and has no effect"`
	Reverses int64     `json:"reverses,omitempty" doc:"ID of the row that this row reverses"`

	ReversedBy int64 `json:"reversed_by,omitempty" doc:"ID of the row that reverses this row"`
	PairedWith int64 `json:"paired_with,omitempty" doc:"ID of the row of another account with the opposite value"`
}

// SchemaName implements http/api's Named.
func (Row[In, Out]) SchemaName() string { return titled[In, Out]("Ledger", "Row") }

// TransformSchema implements huma's SchemaTransformer.
func (Row[In, Out]) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	return without(ledgerOf[In, Out](), s)
}

// warnings are the stored warnings of a row.
type warnings struct {
	json.RawMessage
}

// Schema implements huma's SchemaProvider. See [book.Warning].
func (warnings) Schema(huma.Registry) *huma.Schema {
	property := func(kind, description string, example any) *huma.Schema {
		return &huma.Schema{Type: kind, Description: description, Examples: []any{example}}
	}
	return &huma.Schema{Type: huma.TypeArray, Items: &huma.Schema{
		Type: huma.TypeObject, Required: []string{"field", "message", "given", "computed"},
		Properties: map[string]*huma.Schema{
			"field":    property(huma.TypeString, "Name of the field", "out_entries[0].fine_weight"),
			"message":  property(huma.TypeString, "Text of the warning", "differs from what the other values say"),
			"given":    property(huma.TypeNumber, "Value that the row keeps, in the unit of the field: rupees or grams", 91),
			"computed": property(huma.TypeNumber, "Value of the formula, in the same unit", 92),
		},
	}, Examples: []any{[]any{map[string]any{
		"field": "out_entries[0].fine_weight", "message": "differs from what the other values say", "given": 91, "computed": 92,
	}}}}
}

// shownRow returns a row in its response form without balances.
func shownRow[In, Out book.Entry](id int64, revision *int64, r book.Row) Row[In, Out] {
	shown := Row[In, Out]{
		ID: id, Date: r.Date, In: entries[In]{r.In.JSON()}, Out: entries[Out]{r.Out.JSON()}, Revision: revision,
		Void: r.Void, Reverses: r.Reverses, ReversedBy: r.ReversedBy, PairedWith: r.PairedWith,
	}
	if r.Warnings != "" {
		shown.Warnings = &warnings{json.RawMessage(r.Warnings)}
	}
	return shown
}

// read returns a row from the projection with the balances after it.
func (o operations[In, Out]) read(r ledgerview.Row) Row[In, Out] {
	shown := shownRow[In, Out](r.ID, &r.Revision, r.Row)
	shown.Balance, shown.Metal = balances(o.l, r.Balance)
	return shown
}

// rowVersion is one change in a row's history.
type rowVersion[In, Out book.Entry] struct {
	Position event.Position `json:"position" doc:"Position in the log"`
	At       time.Time      `json:"at" doc:"Time of the change"`
	Actor    string         `json:"actor" doc:"Actor, such as user:<id> or api_key:<id>"`
	Reason   string         `json:"reason,omitempty" doc:"Reason of the change; empty: none given"`
	Change   string         `json:"change" enum:"added,edited,deleted,voided,reversed,paired,unpaired" doc:"Kind of the change"`
	Before   *Row[In, Out]  `json:"before" doc:"Record before the change; null: created"`
	After    *Row[In, Out]  `json:"after" doc:"Record after the change; null: deleted"`
}

// SchemaName implements http/api's Named.
func (rowVersion[In, Out]) SchemaName() string { return titled[In, Out]("Ledger", "RowVersion") }

func (o operations[In, Out]) history(id int64, versions []ledgerview.Version) []rowVersion[In, Out] {
	all := make([]rowVersion[In, Out], len(versions))
	var (
		before *Row[In, Out]
		last   *ledgerview.Version
	)
	for i, v := range versions {
		var after *Row[In, Out]
		if v.Exists() {
			after = new(shownRow[In, Out](id, &v.Revision, v.Row))
		}
		all[i] = rowVersion[In, Out]{Position: v.Position, At: v.At, Actor: v.Actor, Reason: v.Reason, Change: v.Change(last), Before: before,
			After: after}
		before, last = after, &versions[i]
	}
	return all
}

// rowsPosted is the response to a bulk post.
type rowsPosted[In, Out book.Entry] struct {
	Rows []Row[In, Out] `json:"rows" doc:"Posted rows"`
}

// SchemaName implements http/api's Named.
func (rowsPosted[In, Out]) SchemaName() string { return titled[In, Out]("Ledger", "RowsPosted") }

// openAccount is the body of a new account.
type openAccount[In, Out book.Entry] struct{ book.OpenAccount }

// SchemaName implements http/api's Named.
func (openAccount[In, Out]) SchemaName() string {
	return entered("BookOpenAccount", reflect.TypeFor[In]())
}

// TransformSchema implements huma's SchemaTransformer.
func (openAccount[In, Out]) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	l := ledgerOf[In, Out]()
	if l.Types > 0 {
		s.Required = append(s.Required, "type")
	}
	return without(l, s)
}

// renameAccount is the body of a change of an account.
type renameAccount[In, Out book.Entry] struct{ book.ChangeAccount }

// SchemaName implements http/api's Named.
func (renameAccount[In, Out]) SchemaName() string {
	return entered("BookRenameAccount", reflect.TypeFor[In]())
}

// TransformSchema implements huma's SchemaTransformer.
func (renameAccount[In, Out]) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	l := ledgerOf[In, Out]()
	if l.Types == 0 {
		s.Required = []string{"name"}
	}
	return without(l, s)
}

// addRow is the body of a new row.
type addRow[In, Out book.Entry] struct {
	Date unit.Date `json:"date" doc:"Date of the row"`
	In   []In      `json:"in_entries,omitempty" doc:"Entries on the IN side"`
	Out  []Out     `json:"out_entries,omitempty" doc:"Entries on the OUT side"`
}

// SchemaName implements http/api's Named.
func (addRow[In, Out]) SchemaName() string {
	return entered("BookAddRow", reflect.TypeFor[In](), reflect.TypeFor[Out]())
}

func (b addRow[In, Out]) asked() book.RowInput {
	return book.RowInput{Date: &b.Date, In: book.Entries(b.In), Out: book.Entries(b.Out)}
}

// bulkRow is one of several new rows.
type bulkRow[In, Out book.Entry] addRow[In, Out]

// SchemaName implements http/api's Named.
func (bulkRow[In, Out]) SchemaName() string {
	return entered("BookBulkRow", reflect.TypeFor[In](), reflect.TypeFor[Out]())
}

// postRows is the body of several new rows.
type postRows[In, Out book.Entry] struct {
	Rows []bulkRow[In, Out] `json:"rows" doc:"Rows to post, up to 1,000"`
}

// SchemaName implements http/api's Named.
func (postRows[In, Out]) SchemaName() string {
	return entered("BookPostRows", reflect.TypeFor[In](), reflect.TypeFor[Out]())
}

// editRow is the body of an edit: the row's id and the changed parts.
type editRow[In, Out book.Entry] struct {
	ID    *int64     `json:"id,omitempty" doc:"The row's id"`
	RowID *int64     `json:"row_id,omitempty" doc:"Another name for id"`
	Date  *unit.Date `json:"date,omitempty" doc:"Date of the row"`
	In    *[]In      `json:"in_entries,omitempty" doc:"Entries on the IN side"`
	Out   *[]Out     `json:"out_entries,omitempty" doc:"Entries on the OUT side"`
}

// SchemaName implements http/api's Named.
func (editRow[In, Out]) SchemaName() string { return titled[In, Out]("LedgerEdit", "Row") }

func (b editRow[In, Out]) asked() (asked book.RowInput) {
	asked.Date = b.Date
	if b.In != nil {
		asked.In = book.Entries(*b.In)
	}
	if b.Out != nil {
		asked.Out = book.Entries(*b.Out)
	}
	return asked
}
