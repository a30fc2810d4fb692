package ledgerhttp

import (
	"cmp"
	"context"
	"strings"

	"bahi/commands"
	"bahi/commands/ledgercmd"
	"bahi/domain/fault"
	"bahi/domain/ledger/book"
	"bahi/domain/unit"
	"bahi/http/api"
)

// Because is the reason of a correction in the body. The header Bahi-Reason may have it instead.
type Because struct {
	Reason book.Text `json:"reason,omitempty" maxLength:"500" doc:"Reason; required here or in the header Bahi-Reason"`
}

// maxReason is the maximum length of a reason in characters, in the body and in the header.
const maxReason = 500

// ReverseRow is the body of the reversal of one row.
type ReverseRow struct {
	Because

	Date *unit.Date `json:"date,omitempty" doc:"Date of the reversing row, not before that of the reversed row; absent: today"`
}

// reverseRows is the body of a bulk reversal.
type reverseRows struct {
	ReverseRow

	Rows []int64 `json:"rows" doc:"IDs of the rows to reverse, up to 1,000"`
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
		return request, fault.Wrong("reason", "differs from the header Bahi-Reason")
	default:
		request.Reason = reason
		return request, nil
	}
}

// corrections registers reversals and voidings of rows.
func (o operations[In, Out]) corrections() {
	name := o.l.Name
	api.Handle(o.API, o.op(api.Op{
		ID: "reverse-" + name + "-row", Method: "POST", Path: o.Ledger + "/row/{row_id}/reverse",
		Summary: "Reverse a row. Bahi posts a row with IN and OUT exchanged. Requires a reason.",
	}), func(ctx context.Context, in *struct {
		ByRow
		Body *ReverseRow
	}) (*api.Tagged[Row[In, Out]], error) {
		in.Body = cmp.Or(in.Body, &ReverseRow{})
		rows, err := o.reverse(ctx, in.Account, *in.Body, []int64{in.Row})
		if err != nil {
			return nil, err
		}
		answer := &api.Tagged[Row[In, Out]]{Body: rows[0]}
		if rows[0].ID != 0 {
			answer.ETag = api.Revision(*rows[0].Revision)
		}
		return answer, nil
	})
	api.Handle(o.API, o.op(api.Op{
		ID: "reverse-" + name + "-rows", Method: "POST", Path: o.Ledger + "/rows/reverse",
		Summary: "Reverse up to 1,000 rows, all or none. Bahi posts rows with IN and OUT exchanged. Requires a reason.",
	}), func(ctx context.Context, in *struct {
		ByAccount
		Body reverseRows
	}) (*api.Body[rowsPosted[In, Out]], error) {
		rows, err := o.reverse(ctx, in.Account, in.Body.ReverseRow, in.Body.Rows)
		return api.Answer(rowsPosted[In, Out]{Rows: rows}, err)
	})
	api.Handle(o.API, o.op(api.Op{
		ID: "void-" + name + "-row", Method: "POST", Path: o.Ledger + "/row/{row_id}/void", Status: 200,
		Summary: "Void a row permanently. The row stays in the ledger and has no effect. Requires a reason.",
	}), func(ctx context.Context, in *struct {
		ByRow
		Body *Because
	}) (*api.Tagged[Row[In, Out]], error) {
		in.Body = cmp.Or(in.Body, &Because{})
		req, err := in.Body.given(ctx)
		if err != nil {
			return nil, err
		}
		out, err := ledgercmd.VoidRow(ctx, req, o.Books, o.l, in.Account, in.Row)
		return o.rowWritten(ctx, in.Account, out, err)
	})
}

// reverse returns the new rows of a reversal. Each has the balances after it in a dry run, or if the caller requests
// them.
func (o operations[In, Out]) reverse(ctx context.Context, account int64, body ReverseRow, rows []int64) ([]Row[In, Out], error) {
	req, wrong := body.given(ctx)
	if wrong != nil {
		req.DryRun, req.Key = true, ""
	}
	out, err := ledgercmd.ReverseRows(ctx, req, o.Books, o.l, account, ledgercmd.Reversal{Rows: rows, Date: body.Date})
	if wrong != nil {
		return nil, fault.Besides(wrong, err)
	}
	if err != nil {
		return nil, err
	}
	api.SetWriteHeaders(ctx, out.Position, out.Replayed)
	return o.rowsWritten(ctx, account, out)
}
