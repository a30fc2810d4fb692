package ledgerhttp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/shopspring/decimal"

	"bahi/domain/event"
	"bahi/domain/ledger/book"
	"bahi/domain/unit"
	"bahi/http/api"
	"bahi/http/pdf"
	"bahi/http/sheet"
	"bahi/readmodels/ledgerview"
)

// forSpreadsheets are the file formats for spreadsheets: path endings and media types.
var forSpreadsheets = []struct{ ending, kind string }{{"csv", sheet.CSV}, {"xlsx", sheet.XLSX}}

// sheets registers the statement of an account as CSV and XLSX.
func (o operations[In, Out]) sheets() {
	for _, as := range forSpreadsheets {
		op := o.op(api.Op{
			ID: "get-" + o.l.Name + "-statement-" + as.ending, Method: "GET", Path: o.Ledger + "/statement." + as.ending, Limit: limitPDF,
			Summary: "Read a statement of " + o.a() + " for a spreadsheet. A line for each entry, between the two balances.",
		})
		api.Download(o.API, op, map[string]any{as.kind: nil}, func(ctx context.Context, in *struct {
			ByAccount
			Days
		}) (c api.Content, err error) {
			sel, err := o.days(ctx, in.Days)
			if err != nil {
				return c, err
			}
			s, err := o.stated(ctx, accountOf(ctx, o.l, in.Account), sel, pdf.Both)
			return api.Content{
				Type: as.kind, Name: s.name(as.ending), Drawn: true,
				Write: func(ctx context.Context, w io.Writer) error {
					return sheet.Write(as.kind)(w, s.table(func(take func(ledgerview.Row) error) error {
						_, err := o.Views.EachRow(ctx, api.At(ctx), s.of, s.sel, take)
						return err
					}))
				},
			}, err
		})
	}
}

// statementTotals has the balances of a statement and the sums of its rows.
type statementTotals struct {
	Opening    statementBalance `json:"opening" doc:"Balance before the first row"`
	CashIn     unit.Sum         `json:"cash_in" doc:"IN of the rows, in rupees"`
	CashOut    unit.Sum         `json:"cash_out" doc:"OUT of the rows, in rupees"`
	CrystalIn  *unit.Sum        `json:"crystal_in,omitempty" doc:"IN of the rows, in grams"`
	CrystalOut *unit.Sum        `json:"crystal_out,omitempty" doc:"OUT of the rows, in grams"`
	Closing    statementBalance `json:"closing" doc:"Balance after the last row"`
	Position   event.Position   `json:"position" doc:"Position of the log from which the statement is drawn"`
}

// statementBalance is a balance of a statement: one sum, or cash and metal.
type statementBalance struct {
	Balance *unit.Sum `json:"balance,omitempty" doc:"IN less OUT, in rupees"`
	Metal
}

// totals registers the totals of a statement.
func (o operations[In, Out]) totals() {
	op := o.op(api.Op{
		ID: "total-" + o.l.Name + "-statement", Method: "GET", Path: o.Ledger + "/totals",
		Summary: "Read the balances and totals of a statement of " + o.a(),
	})
	api.Handle(o.API, op, func(ctx context.Context, in *struct {
		ByAccount
		Days
	}) (*api.Body[statementTotals], error) {
		sel, err := o.days(ctx, in.Days)
		if err != nil {
			return nil, err
		}
		s, err := o.stated(ctx, accountOf(ctx, o.l, in.Account), sel, pdf.Both)
		if err != nil {
			return nil, err
		}
		rows, err := o.Views.Extent(ctx, api.At(ctx), s.of, s.sel)
		t := statementTotals{CashIn: rows.CashIn, CashOut: rows.CashOut, Position: *s.sel.KnownAt}
		if o.l.Metal {
			t.CrystalIn, t.CrystalOut = &rows.FineIn, &rows.FineOut
		}
		closing := ledgerview.Balance{
			Cash: unit.Sum{Decimal: rows.CashIn.Sub(rows.CashOut.Decimal)}, Fine: unit.Sum{Decimal: rows.FineIn.Sub(rows.FineOut.Decimal)},
		}
		t.Opening.Balance, t.Opening.Metal = balances(o.l, s.opening)
		t.Closing.Balance, t.Closing.Metal = balances(o.l, closing.Above(s.opening))
		return api.Answer(t, err)
	})
}

// table returns the statement as a table: a line for each entry between the opening and the closing balance. The last
// line has the position of the log and its day.
func (s stated) table(each func(take func(ledgerview.Row) error) error) sheet.Table {
	fields := fieldsOf(s.of.Ledger)
	columns := append([]string{"line", "id", "date"}, fields...)
	columns = append(append(columns, "void", "reverses", "reversed_by"), s.balanceColumns()...)
	return sheet.Table{Name: "Statement", Columns: columns, Rows: func(take func([]any) error) error {
		balance := s.opening
		line := func(kind string, id, date any, rest ...any) error {
			line := make([]any, len(columns))
			copy(line, append([]any{kind, id, date}, rest...))
			if kind != "drawn_from" {
				for i, amount := range amounts(s.of.Ledger, balance) {
					line[len(line)-len(amounts(s.of.Ledger, balance))+i] = amount
				}
			}
			return take(line)
		}
		if err := line("opening", nil, dateOr(s.sel.From)); err != nil {
			return err
		}
		err := each(func(r ledgerview.Row) error {
			balance = r.Balance
			in, out, err := s.of.Ledger.Lines(r.Row)
			if err != nil {
				return fmt.Errorf("read row %d: %w", r.ID, err)
			}
			for _, side := range []struct {
				name    string
				entries []book.Line
			}{{"in", in}, {"out", out}} {
				for _, e := range side.entries {
					rest := append(values(e.JSON, fields), r.Void, idOr(r.Reverses), idOr(r.ReversedBy))
					if err := line(side.name, r.ID, r.Date, rest...); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err == nil {
			err = line("closing", nil, dateOr(s.sel.To))
		}
		if err == nil {
			err = line("drawn_from", int64(*s.sel.KnownAt), unit.DateOf(s.recorded))
		}
		return err
	}}
}

func (s stated) balanceColumns() []string {
	if s.of.Ledger.Metal {
		return []string{"cash_balance", "crystal_balance"}
	}
	return []string{"balance"}
}

// dateOr returns a day, nil for none.
func dateOr(day *unit.Date) any {
	if day == nil {
		return nil
	}
	return *day
}

// idOr returns an id, nil for 0.
func idOr(id int64) any {
	if id == 0 {
		return nil
	}
	return id
}

// fieldsOf returns the field names of a ledger's entries: the fields of IN entries in their order, then the fields that only OUT entries
// have.
func fieldsOf(l *book.Ledger) (names []string) {
	in, out := l.Fields()
	for _, name := range slices.Concat(in, out) {
		if name != "computed" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// values returns the values of an entry's fields, nil for absent ones.
func values(entry json.RawMessage, fields []string) []any {
	var (
		given map[string]json.RawMessage
		all   = make([]any, len(fields))
	)
	if json.Unmarshal(entry, &given) != nil {
		return all // the entry was decoded before
	}
	for i, name := range fields {
		all[i] = plain(given[name])
	}
	return all
}

// plain returns a text, a boolean or a number from JSON, nil for null.
func plain(value json.RawMessage) any {
	var (
		text  string
		truth bool
	)
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	if json.Unmarshal(value, &truth) == nil {
		return truth
	}
	if number, err := decimal.NewFromString(string(value)); err == nil {
		return number
	}
	return nil
}
