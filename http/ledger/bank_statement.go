package ledger

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/shopspring/decimal"

	"bahi/domain/ledger/bank"
	"bahi/domain/unit"
	"bahi/http/api"
	"bahi/http/pdf"
	"bahi/readmodels"
	views "bahi/readmodels/ledger"
)

const pdfType = "application/pdf"

// BankStatement registers the statement of an account.
func (r *Routes) BankStatement() {
	api.Download(r.API, api.Op{
		ID: "get-bank-statement", Method: "GET", Path: "/bank-ledger/{bank_account_id}/statement.pdf",
		Summary: "Draw a statement of a bank account as a PDF",
		Tags:    tags, Area: area, Limit: limitPDF, Reads: []string{"books"}, StrictQuery: true,
	}, map[string]any{pdfType: nil}, func(ctx context.Context, in *struct {
		ByAccount
		Days
	}) (api.Content, error) {
		sel, err := r.days(ctx, in.Days)
		if err != nil {
			return api.Content{}, err
		}
		return r.bankStatement(ctx, in.Account, sel)
	})
}

// bankStatement reads everything as known at one position, so that it adds up whatever is posted
// meanwhile, and so that it can be drawn again.
func (r *Routes) bankStatement(ctx context.Context, account int64, sel views.Selection) (c api.Content, err error) {
	sel.Page, sel.PageSize = 1, 0
	a, err := r.Views.Account(ctx, workspace(ctx), bank.Ledger.Name, account, sel.As, bank.ErrNoAccount)
	if err != nil {
		return c, err
	}
	if sel.KnownAt == nil {
		position, _ := readmodels.FreshnessOf(ctx).Position()
		sel.KnownAt = &position
	}
	rows, _, err := r.Views.Rows(ctx, workspace(ctx), bank.Ledger.Name, account, sel, bank.ErrNoAccount)
	if err != nil {
		return c, err
	}
	recorded, err := r.Log.RecordedAt(ctx, *sel.KnownAt)
	if err != nil {
		return c, err
	}
	s := pdf.Statement{
		Title: "Bahi", Account: a.Name, Ledger: "Bank ledger", Units: []pdf.Unit{pdf.Rupees},
		Drawn: pdf.Drawn{StoreID: r.Store.String(), Position: uint64(*sel.KnownAt), RecordedAt: recorded.In(r.Zone)},
	}
	if r.Proof != nil {
		if s.Drawn.Checkpoint, err = r.Proof.Upto(ctx, *sel.KnownAt); err != nil {
			return c, err
		}
	}
	if sel.From != nil {
		s.From = sel.From.Time()
	}
	if sel.To != nil {
		s.To = sel.To.Time()
	}
	if sel.Of != nil {
		s.Notes = append(s.Notes, "Rows dated up to "+sel.Of.Time().Format("2 Jan 2006"))
	}
	opening := decimal.Zero
	if sel.From != nil {
		before, _, err := r.Views.BalanceBefore(ctx, workspace(ctx), bank.Ledger.Name, account, *sel.From, sel.As, bank.ErrNoAccount)
		if err != nil {
			return c, err
		}
		opening = before.Decimal
	}
	closing := opening
	for _, row := range rows {
		drawn, err := pdfRow(row)
		if err != nil {
			return c, err
		}
		s.Rows = append(s.Rows, drawn)
		closing = row.Cash.Decimal
	}
	s.Opening, s.Closing = []decimal.Decimal{opening}, []decimal.Decimal{closing}
	return api.Content{
		Type: pdfType, Name: fmt.Sprintf("bank-%d-statement.pdf", account), Inline: true,
		Write: func(_ context.Context, w io.Writer) error {
			if err := pdf.Write(w, s); err != nil {
				return fmt.Errorf("draw the statement of bank %d: %w", account, err)
			}
			return nil
		},
	}, nil
}

func pdfRow(row views.Row) (drawn pdf.Row, err error) {
	drawn = pdf.Row{Date: row.Date.Time(), ID: row.ID, Balance: []decimal.Decimal{row.Cash.Decimal}}
	if drawn.In, err = pdfLines(Entries[bank.Entry]{row.In}, row.Void, "IN"); err != nil {
		return drawn, err
	}
	if drawn.Out, err = pdfLines(Entries[bank.Entry]{row.Out}, row.Void, "OUT"); err != nil {
		return drawn, err
	}
	note := func(format string, other *int64) {
		if other != nil {
			drawn.Out = append(drawn.Out, pdf.Line{Text: fmt.Sprintf(format, *other), Amounts: []decimal.Decimal{{}}})
		}
	}
	note("Takes back row %d", row.Reverses)
	note("Taken back by row %d", row.ReversedBy)
	return drawn, nil
}

// pdfLines are a side's entries on paper. Those of a void row are struck: their amounts stand in the text,
// where nobody adds them up.
func pdfLines(entries Entries[bank.Entry], void bool, side string) ([]pdf.Line, error) {
	list, err := entries.lines()
	lines := make([]pdf.Line, len(list))
	for i, e := range list {
		lines[i] = pdf.Line{Text: string(e.Description), Amounts: []decimal.Decimal{e.Amount.Decimal()}}
		if void {
			lines[i] = pdf.Line{Text: fmt.Sprintf("VOID, was %s %s: %s", side, e.Amount.Decimal().StringFixed(unit.MoneyPlaces), e.Description), Amounts: []decimal.Decimal{{}}}
			if e.Description == "" {
				lines[i].Text = strings.TrimSuffix(lines[i].Text, ": ")
			}
		}
	}
	return lines, err
}
