package ledger

import (
	"context"
	"strings"

	"bahi/commands"
	flows "bahi/commands/ledger"
	"bahi/domain/fault"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/domain/unit"
	"bahi/http/api"
)

// Because is why a row is corrected, in the body where the header Bahi-Reason does not say it.
type Because struct {
	Reason book.Text `json:"reason,omitempty" maxLength:"500" doc:"Why; wanted here or in the header Bahi-Reason"`
}

// maxReason is in characters, as the header's is.
const maxReason = 500

// ReverseRow is the body of the reversal of one row.
type ReverseRow struct {
	Because

	Date *unit.Date `json:"date,omitempty" doc:"Of the row that takes it back; today when it is absent, and never before the row's own"`
}

// ReverseRows is the body of the reversal of several rows.
type ReverseRows struct {
	ReverseRow

	Rows []int64 `json:"rows" doc:"Ids of the rows to take back, all or none, up to 1,000"`
}

// given returns the request with the body's reason.
func (b Because) given(ctx context.Context) (commands.Request, error) {
	request := api.Request(ctx)
	if wrong := book.CheckText("reason", b.Reason, maxReason); wrong != nil {
		return request, fault.Fields(wrong...)
	}
	switch reason := string(b.Reason); {
	case reason == "":
		return request, nil
	case request.Reason != "" && strings.TrimSpace(request.Reason) != reason:
		return request, fault.Fields(fault.Field{Field: "reason", Message: "is not what the header Bahi-Reason says"})
	default:
		request.Reason = reason
		return request, nil
	}
}

// BankCorrections registers how rows are corrected that stay where they are.
func (r *Routes) BankCorrections() {
	reads := []string{"books"}
	api.Handle(r.API, api.Op{
		ID: "reverse-bank-row", Method: "POST", Path: "/bank-ledger/{bank_account_id}/row/{row_id}/reverse",
		Summary: "Take a row back by a new one with its IN and OUT exchanged; wants a reason",
		Tags:    tags, Area: area, Limit: limit, Reads: reads, StrictBody: true, DryRun: true,
	}, func(ctx context.Context, in *struct {
		ByRow
		Body *ReverseRow
	}) (*api.Tagged[BankRow], error) {
		if in.Body == nil {
			in.Body = &ReverseRow{}
		}
		rows, err := r.reverse(ctx, in.Account, *in.Body, []int64{in.Row})
		if err != nil {
			return nil, err
		}
		answer := &api.Tagged[BankRow]{Body: rows[0]}
		if rows[0].ID != nil {
			answer.ETag = api.Revision(*rows[0].Revision)
		}
		return answer, nil
	})
	api.Handle(r.API, api.Op{
		ID: "reverse-bank-rows", Method: "POST", Path: "/bank-ledger/{bank_account_id}/rows/reverse",
		Summary: "Take rows back by new ones with their IN and OUT exchanged, all or none; wants a reason",
		Tags:    tags, Area: area, Limit: limit, Reads: reads, StrictBody: true, DryRun: true,
	}, func(ctx context.Context, in *struct {
		ByAccount
		Body ReverseRows
	}) (*api.Body[BankRowsPosted], error) {
		rows, err := r.reverse(ctx, in.Account, in.Body.ReverseRow, in.Body.Rows)
		return api.Answer(BankRowsPosted{Rows: rows}, err)
	})
	api.Handle(r.API, api.Op{
		ID: "void-bank-row", Method: "POST", Path: "/bank-ledger/{bank_account_id}/row/{row_id}/void", Status: 200,
		Summary: "Let a row stay in its place and count nothing, for good; wants a reason",
		Tags:    tags, Area: area, Limit: limit, Reads: reads, StrictBody: true, DryRun: true,
	}, func(ctx context.Context, in *struct {
		ByRow
		Body *Because
	}) (*api.Tagged[BankRow], error) {
		if in.Body == nil {
			in.Body = &Because{}
		}
		req, err := in.Body.given(ctx)
		if err != nil {
			return nil, err
		}
		out, err := flows.VoidRow(ctx, req, r.Books, bank.Ledger, in.Account, in.Row)
		return r.rowWritten(ctx, in.Account, out, err)
	})
}

// reverse answers the rows that take others back, each with the balance after it in a dry run or when the
// caller wants it.
func (r *Routes) reverse(ctx context.Context, account int64, body ReverseRow, rows []int64) ([]BankRow, error) {
	req, err := body.given(ctx)
	if err != nil {
		return nil, err
	}
	out, err := flows.ReverseRows(ctx, req, r.Books, bank.Ledger, account, flows.Reversal{Rows: rows, Date: body.Date})
	if err != nil {
		return nil, err
	}
	if !req.DryRun {
		api.Wrote(ctx, out.Position, out.Replayed)
	}
	return r.rowsWritten(ctx, account, out)
}
