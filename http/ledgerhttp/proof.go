package ledgerhttp

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"

	"bahi/domain/unit"
	"bahi/http/api"
	"bahi/http/pdf"
	"bahi/readmodels/auditview"
	"bahi/readmodels/ledgerview"
)

const (
	textType  = "text/plain"
	proofType = "application/gzip"
)

// proof registers the proof of a row for callers who may read the row.
func (o operations[In, Out]) proof() {
	op := o.op(api.Op{
		ID: "prove-" + o.l.Name + "-row", Method: "GET", Path: o.Ledger + "/row/{row_id}/proof", Tags: []string{"Ledger", "Audit"},
		Summary: "Prove the history of a row. The file has a proof for each event of the row. " +
			"It is verified with the public key alone.",
	})
	api.Download(o.API, op, map[string]any{textType: nil}, func(ctx context.Context, in *ByRow) (c api.Content, err error) {
		versions, err := o.Views.History(ctx, api.At(ctx), accountOf(ctx, o.l, in.Account), in.Row)
		if err != nil {
			return c, err
		}
		positions, err := o.Proofs.Stream(ctx, o.l.Rows.Stream(strconv.FormatInt(in.Row, 10)))
		if err != nil {
			return c, err
		}
		for _, v := range versions {
			positions = append(positions, v.Position)
		}
		slices.Sort(positions)
		file, err := o.Proofs.File(ctx, nil, slices.Compact(positions)...)
		return api.Content{
			Type: textType + "; charset=utf-8", Name: fmt.Sprintf("%s-row-%d.tlog-proof", o.l.Name, in.Row),
			Write: func(_ context.Context, w io.Writer) error {
				_, err := w.Write(file)
				return err //nolint:wrapcheck // the error comes from the client's connection
			},
		}, err
	})
}

// statementProof registers the statement of an account with all its events and their proofs.
func (o operations[In, Out]) statementProof() {
	op := o.op(api.Op{
		ID: "prove-" + o.l.Name + "-statement", Method: "GET", Path: o.Ledger + "/statement.proof", Limit: limitPDF,
		Tags: []string{"Ledger", "Audit"},
		Summary: "Read a statement of " + o.a() + " that proves itself. The file has all events of the account and no other party's, and " +
			"is verified with the public key alone: docs/proof.md.",
	})
	api.Download(o.API, op, map[string]any{proofType: nil}, func(ctx context.Context, in *struct {
		ByAccount

		From api.Optional[unit.Date] `query:"from" doc:"First day"`
		To   api.Optional[unit.Date] `query:"to"   doc:"Last day"`
	}) (c api.Content, err error) {
		sel, err := o.days(ctx, Days{From: in.From, To: in.To})
		if err != nil {
			return c, err
		}
		if _, err := o.Views.Account(ctx, api.At(ctx), accountOf(ctx, o.l, in.Account), sel.As); err != nil {
			return c, err
		}
		s, err := o.Proofs.Statement(ctx, api.At(ctx), workspace(ctx), in.Account)
		if err != nil {
			return c, err
		}
		sel.KnownAt = &s.Position
		stated, err := o.stated(ctx, accountOf(ctx, o.l, in.Account), sel, pdf.Both)
		if err != nil {
			return c, err
		}
		if s.Figures, err = o.figures(ctx, stated); err != nil {
			return c, err
		}
		return api.Content{
			Type: proofType, Name: fmt.Sprintf("%s-%d-statement.proof", o.l.Name, in.Account), Drawn: true,
			Write: func(_ context.Context, w io.Writer) error { return s.Write(w) },
		}, nil
	})
}

// closing returns the last day of a statement, nil without one, and the balance at its end.
func (r *Routes) closing(ctx context.Context, s stated) (to *unit.Date, b ledgerview.Balance, err error) {
	as := s.sel.As
	if to = s.sel.To; to == nil || as.Of != nil && *as.Of < *to {
		to = as.Of
	}
	as.Of = to
	a, err := r.Views.Account(ctx, api.At(ctx), s.of, as)
	return to, a.Balance, err
}

// figures returns the days and balances of a statement and its proof.
func (r *Routes) figures(ctx context.Context, s stated) (f auditview.Figures, err error) {
	to, closing, err := r.closing(ctx, s)
	if s.sel.From != nil {
		f.From = s.sel.From.String()
	}
	if to != nil {
		f.To = to.String()
	}
	f.Opening.Cash, f.Opening.Fine = s.opening.Cash.StringFixed(unit.MoneyPlaces), s.opening.Fine.StringFixed(unit.GramsPlaces)
	f.Closing.Cash, f.Closing.Fine = closing.Cash.StringFixed(unit.MoneyPlaces), closing.Fine.StringFixed(unit.GramsPlaces)
	return f, err
}

// code returns the text of the QR code on a statement: the address of the page that verifies it, and its figures.
func (r *Routes) code(ctx context.Context, s stated, checkpoint string) (string, error) {
	f, err := r.figures(ctx, s)
	return r.Verifier + f.Code(s.account.ID, *s.sel.KnownAt, checkpoint), err
}
