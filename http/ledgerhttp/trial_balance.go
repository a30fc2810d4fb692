package ledgerhttp

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"

	"bahi/domain/event"
	"bahi/domain/ledger"
	"bahi/domain/unit"
	"bahi/http/api"
	"bahi/http/pdf"
	"bahi/http/sheet"
	"bahi/readmodels/ledgerview"
)

// TrialBalance has the balances of all accounts at one position of the log. With the lines unpaired and loss, the debits
// equal the credits.
type TrialBalance struct {
	AsOf     *unit.Date     `json:"as_of" doc:"null: all rows"`
	Position event.Position `json:"position" doc:"Position of the log up to which the response is complete"`
	Accounts []trialAccount `json:"accounts" doc:"Accounts by kind and name"`
	Unpaired trialUnpaired  `json:"unpaired" doc:"Opposite balance of the unpaired rows"`
	Loss     TrialSums      `json:"loss" doc:"Metal that was lost in work: the wastage of karigars and the loss of polishers"`
	Total    TrialSums      `json:"total" doc:"Sums of all lines"`
}

// trialAccount is an account of a trial balance.
type trialAccount struct {
	Kind string `json:"kind" enum:"bank,bullion,client,karigar,polisher" doc:"Ledger"`
	ID   int64  `json:"id" doc:"ID of the account"`
	Name string `json:"name" doc:"Name of the account"`
	TrialSums
}

// trialUnpaired is the line of the unpaired rows.
type trialUnpaired struct {
	Path string `json:"path" doc:"List of these rows"`
	TrialSums
}

// TrialSums is a debit or a credit in money and in each metal.
type TrialSums struct {
	Debit  unit.Sum     `json:"debit" doc:"In rupees"`
	Credit unit.Sum     `json:"credit" doc:"In rupees"`
	Metals []trialMetal `json:"metals" doc:"Metals with a sum other than 0"`
}

// trialMetal is a debit or a credit in one metal.
type trialMetal struct {
	Metal  string   `json:"metal" doc:"Name of the metal"`
	Debit  unit.Sum `json:"debit" doc:"In grams of fine metal; of polishers, grams of weight"`
	Credit unit.Sum `json:"credit" doc:"In grams of fine metal; of polishers, grams of weight"`
}

// trialBalance registers the trial balance and the list of unpaired rows.
func (r *Routes) trialBalance() {
	op := ledgerOp(api.Op{
		ID: "get-trial-balance", Method: "GET", Path: "/books/trial-balance", Limit: limitPDF, Reads: []string{"books"},
		Summary: "Read the balance of each account as a debit or a credit, in money and in each metal",
	})
	api.Download(r.API, op, map[string]any{"application/json": TrialBalance{}, pdfType: nil, sheet.XLSX: nil},
		func(ctx context.Context, in *struct {
			AsOf
			Format string `query:"format" enum:"json,pdf,xlsx" default:"json" doc:"Format of the response"`
		}) (c api.Content, err error) {
			as, err := r.as(ctx, in.AsOf)
			if err != nil {
				return c, err
			}
			p, err := r.paper(ctx, as)
			if err != nil {
				return c, err
			}
			found, err := r.Views.TrialBalance(ctx, api.At(ctx), workspace(ctx), p.as)
			b := trialBalance(found, p.as)
			return formats{
				json: func(_ context.Context, w io.Writer) error { return json.NewEncoder(w).Encode(b) },
				pdf:  func(_ context.Context, w io.Writer) error { return b.pdf(w, p.title, p.drawn) },
				xlsx: func(_ context.Context, w io.Writer) error { return sheet.Write(sheet.XLSX)(w, b.table(p.drawn)) },
			}.content(in.Format, "trial-balance"), err
		})
	api.Handle(r.API, ledgerOp(api.Op{
		ID: "find-row", Method: "GET", Path: "/books/rows/{row_id}", Summary: "Read a row with its account by the row's id alone",
		Reads: []string{"books"},
	}), func(ctx context.Context, in *byLooseRow) (*api.Body[DaybookRow], error) {
		found, err := r.Views.RowOfAny(ctx, api.At(ctx), workspace(ctx), in.Row)
		if err != nil {
			return nil, err
		}
		return &api.Body[DaybookRow]{Body: daybookRow(found)}, nil
	})
	api.Handle(r.API, ledgerOp(api.Op{
		ID: "list-unpaired-rows", Method: "GET", Path: "/books/unpaired", Summary: "List the rows that are not paired, by date",
		Reads: []string{"books"}, Expensive: true,
	}), func(ctx context.Context, in *struct {
		api.Pages
		AsOf
	}) (*api.Array[DaybookRow], error) {
		as, err := r.as(ctx, in.AsOf)
		if err != nil {
			return nil, err
		}
		found, total, err := r.Views.Unpaired(ctx, api.At(ctx), workspace(ctx), in.Get(), as)
		rows := make([]DaybookRow, len(found))
		for i, e := range found {
			rows[i] = daybookRow(e)
		}
		return api.Listed(rows, total, err)
	})
}

func trialBalance(found ledgerview.TrialBalance, as ledgerview.As) TrialBalance {
	query := url.Values{"known_at": {strconv.FormatUint(uint64(*as.KnownAt), 10)}}
	if as.Of != nil {
		query.Set("as_of", as.Of.String())
	}
	b := TrialBalance{AsOf: as.Of, Position: *as.KnownAt, Accounts: []trialAccount{}, Loss: sides(found.Loss, true)}
	b.Unpaired = trialUnpaired{"/books/unpaired?" + query.Encode(), sides(found.Unpaired, true)}
	for _, l := range ledger.All {
		for i, a := range found.Accounts {
			if a.Ledger == l.Name {
				b.Accounts = append(b.Accounts, trialAccount{a.Ledger, a.ID, a.Name, sides(found.Of[i], false)})
			}
		}
	}
	b.Total.Metals = []trialMetal{}
	for _, l := range b.lines() {
		b.Total.add(l.TrialSums)
	}
	return b
}

// sides returns a sum as a debit or a credit. If balances is set, it returns the opposite, which balances the sum.
func sides(t ledgerview.Trial, balances bool) TrialSums {
	s := TrialSums{Metals: []trialMetal{}}
	s.Debit, s.Credit = side(t.Cash, balances)
	for _, metal := range slices.Sorted(maps.Keys(t.Fine)) {
		debit, credit := side(t.Fine[metal], balances)
		s.Metals = append(s.Metals, trialMetal{metal, debit, credit})
	}
	return s
}

func side(sum unit.Sum, balances bool) (debit, credit unit.Sum) {
	if sum.IsNegative() != balances {
		return debit, unit.Sum{Decimal: sum.Abs()}
	}
	return unit.Sum{Decimal: sum.Abs()}, credit
}

func (t *TrialSums) add(o TrialSums) {
	t.Debit, t.Credit = plus(t.Debit, o.Debit), plus(t.Credit, o.Credit)
	for _, m := range o.Metals {
		at := slices.IndexFunc(t.Metals, func(one trialMetal) bool { return one.Metal >= m.Metal })
		switch {
		case at < 0:
			t.Metals = append(t.Metals, m)
		case t.Metals[at].Metal == m.Metal:
			t.Metals[at].Debit, t.Metals[at].Credit = plus(t.Metals[at].Debit, m.Debit), plus(t.Metals[at].Credit, m.Credit)
		default:
			t.Metals = slices.Insert(t.Metals, at, m)
		}
	}
}

func plus(a, b unit.Sum) unit.Sum { return unit.Sum{Decimal: a.Add(b.Decimal)} }

// lines returns the accounts and the lines unpaired and loss. The kind of these two lines is their name.
func (b TrialBalance) lines() []trialAccount {
	return append(slices.Clone(b.Accounts), trialAccount{Kind: "unpaired", TrialSums: b.Unpaired.TrialSums},
		trialAccount{Kind: "loss", TrialSums: b.Loss})
}

// table returns a line for each account and metal, and the lines unpaired, loss and total. The last line has the
// position of the log and its day.
func (b TrialBalance) table(drawn pdf.Drawn) sheet.Table {
	columns := []string{"kind", "account_id", "account_name", "debit", "credit", "metal", "metal_debit", "metal_credit"}
	return sheet.Table{Name: "Trial balance", Columns: columns, Rows: func(take func([]any) error) error {
		for _, l := range append(b.lines(), trialAccount{Kind: "total", TrialSums: b.Total}) {
			line := []any{l.Kind, idOr(l.ID), l.Name, l.Debit.Decimal, l.Credit.Decimal, nil, nil, nil}
			for i, m := range l.Metals {
				if i > 0 {
					line[3], line[4] = nil, nil
				}
				line[5], line[6], line[7] = m.Metal, m.Debit.Decimal, m.Credit.Decimal
				if err := take(slices.Clone(line)); err != nil {
					return err
				}
			}
			if len(l.Metals) == 0 {
				if err := take(line); err != nil {
					return err
				}
			}
		}
		return take([]any{"drawn_from", int64(drawn.Position), unit.DateOf(drawn.RecordedAt).String(), nil, nil, nil, nil, nil})
	}}
}

// pdf draws the trial balance.
func (b TrialBalance) pdf(w io.Writer, title string, drawn pdf.Drawn) error {
	scope := "All rows"
	if b.AsOf != nil {
		scope = "As of " + day(*b.AsOf)
	}
	paper := pdf.NewTrialBalance(w, title, []string{scope}, drawn)
	kind := ""
	for _, l := range b.lines() {
		name := l.Name
		switch of := ledger.Named(l.Kind); {
		case of == nil:
			name = map[string]string{"unpaired": "Unpaired rows", "loss": "Loss in work"}[l.Kind]
		case kind != l.Kind:
			paper.Head(of.Title)
		}
		kind = l.Kind
		paper.Line(name, l.drawn())
	}
	return paper.Finish(b.Total.drawn())
}

// drawn returns the sums in their printed form.
func (t TrialSums) drawn() []pdf.TrialSum {
	sums := []pdf.TrialSum{{Debit: t.Debit.Decimal, Credit: t.Credit.Decimal}}
	for _, m := range t.Metals {
		sums = append(sums, pdf.TrialSum{Metal: m.Metal, Debit: m.Debit.Decimal, Credit: m.Credit.Decimal})
	}
	return sums
}
