package ledgerhttp

import (
	"context"

	"bahi/commands/ledgercmd"
	"bahi/domain/fault"
	"bahi/domain/ledger/book"
	"bahi/http/api"
	"bahi/readmodels"
	"bahi/readmodels/ledgerview"
)

// ByRow identifies a row of an account.
type ByRow struct {
	ByAccount

	Row int64 `path:"row_id" minimum:"1" doc:"The row's id"`
}

// row returns the id of the row: the body's id or row_id, or the query's row_id.
func (b editRow[In, Out]) row(query int64) (row int64, err error) {
	if query != 0 {
		row = query
	}
	for _, given := range []*int64{b.ID, b.RowID} {
		switch {
		case given == nil:
		case row != 0 && row != *given:
			return 0, fault.Wrong("id", "differs from row_id")
		default:
			row = *given
		}
	}
	if row == 0 {
		return 0, fault.Wrong("id", "is required: the id of the row")
	}
	return row, nil
}

// answered returns the response fields that a write of a row ignores.
func (o operations[In, Out]) answered(prefix string, more ...string) []string {
	more = append(more, "revision", "void", "reverses", "reversed_by", "paired_with")
	if o.l.Metal {
		more = append(more, "warnings")
	}
	return o.fields(prefix, more...)
}

// rowsRead is a response with rows and the number of rows in the whole selection.
type rowsRead[In, Out book.Entry] struct {
	Total int64 `header:"X-Total-Count"`
	Body  api.List[Row[In, Out]]
}

// rows registers the operations on the rows of an account.
func (o operations[In, Out]) rows() {
	name := o.l.Name
	api.Handle(o.API, o.op(api.Op{
		ID: "read-" + name + "-ledger", Method: "GET", Path: o.Ledger,
		Summary: "Read the rows of " + o.a() + " with the running balance",
	}), func(ctx context.Context, in *struct {
		ByAccount
		Selection
	}) (*rowsRead[In, Out], error) {
		sel, err := o.selection(ctx, in.Selection)
		if err != nil {
			return nil, err
		}
		read := &rowsRead[In, Out]{}
		err = in.read(ctx, func(page readmodels.Page) (_ int64, err error) {
			sel.Page, sel.PageSize, read.Body = page.Number, page.Size, api.NewList[Row[In, Out]](ctx)
			read.Total, err = o.Views.EachRow(ctx, api.At(ctx), accountOf(ctx, o.l, in.Account), sel,
				func(r ledgerview.Row) error { return read.Body.Add(o.read(r)) })
			return read.Total, err
		})
		return read, err
	})
	api.Handle(o.API, o.op(api.Op{
		ID: "add-" + name + "-row", Method: "POST", Path: o.Ledger, Summary: "Post a row to " + o.a(),
		ReadOnly: o.answered("", "id"),
	}), func(ctx context.Context, in *struct {
		ByAccount
		Body addRow[In, Out]
	}) (*api.Tagged[Row[In, Out]], error) {
		out, err := ledgercmd.AddRow(ctx, api.Request(ctx), o.Books, o.l, in.Account, in.Body.asked())
		return o.rowWritten(ctx, in.Account, out, err)
	})
	api.Handle(o.API, o.op(api.Op{
		ID: "edit-" + name + "-row", Method: "PUT", Path: o.Ledger, Summary: "Edit a row of " + o.a(), ReadOnly: o.answered(""),
	}), func(ctx context.Context, in *struct {
		ByAccount
		Row  int64 `query:"row_id" minimum:"0" doc:"ID of the row if the body has none"`
		Body editRow[In, Out]
	}) (*api.Tagged[Row[In, Out]], error) {
		edit := book.EditRow{Ledger: o.l, Account: in.Account, Today: o.Books.Today(), RowInput: in.Body.asked()}
		row, err := in.Body.row(in.Row)
		if err != nil {
			return nil, o.Books.AndLocked(ctx, workspace(ctx), fault.Join(err, edit.Check()), edit.Date)
		}
		out, err := ledgercmd.ChangeRow(ctx, api.Request(ctx), o.Books, o.l, row, edit)
		return o.rowWritten(ctx, in.Account, out, err)
	})
	api.Handle(o.API, o.op(api.Op{
		ID: "get-" + name + "-row", Method: "GET", Path: o.Ledger + "/row/{row_id}", Summary: "Read a row with the balance after it",
	}), func(ctx context.Context, in *struct {
		ByRow
		AsOf
	}) (*api.Tagged[Row[In, Out]], error) {
		as, err := o.as(ctx, in.AsOf)
		if err != nil {
			return nil, err
		}
		row, err := o.Views.Row(ctx, api.At(ctx), accountOf(ctx, o.l, in.Account), in.Row, as)
		return api.WithETag(o.read(row), row.Revision, err)
	})
	api.Handle(o.API, o.op(api.Op{
		ID: "delete-" + name + "-row", Method: "DELETE", Path: o.Ledger + "/row/{row_id}", Summary: "Delete a row of an account",
	}), func(ctx context.Context, in *ByRow) (*api.Nothing, error) {
		out, err := ledgercmd.ChangeRow(ctx, api.Request(ctx), o.Books, o.l, in.Row, book.DeleteRow{Ledger: o.l, Account: in.Account})
		return api.Done(ctx, out, err)
	})
	api.Handle(o.API, o.op(api.Op{
		ID: "read-" + name + "-row-history", Method: "GET", Path: o.Ledger + "/row/{row_id}/history",
		Summary: "List the versions of a row, oldest first. Each version has its actor, time, reason and the row before and after.",
	}), func(ctx context.Context, in *ByRow) (*api.Body[[]rowVersion[In, Out]], error) {
		versions, err := o.Views.History(ctx, api.At(ctx), accountOf(ctx, o.l, in.Account), in.Row)
		return api.Answer(o.history(in.Row, versions), err)
	})
	o.bulk()
	o.looseRows()
}

func (o operations[In, Out]) bulk() {
	op := o.op(api.Op{
		ID: "add-" + o.l.Name + "-rows", Method: "POST", Path: o.Ledger + "/rows", Summary: "Post up to 1,000 rows, all or none",
		ReadOnly: o.answered("rows.", "id"), MaxBody: bulkBytes,
	})
	api.Handle(o.API, op, func(ctx context.Context, in *struct {
		ByAccount
		Body postRows[In, Out]
	}) (*api.Body[rowsPosted[In, Out]], error) {
		asked := make([]book.RowInput, len(in.Body.Rows))
		for i, row := range in.Body.Rows {
			asked[i] = addRow[In, Out](row).asked()
		}
		out, err := ledgercmd.PostRows(ctx, api.Request(ctx), o.Books, o.l, in.Account, asked)
		if err != nil {
			return nil, err
		}
		api.SetWriteHeaders(ctx, out.Position, out.Replayed)
		rows, err := o.rowsWritten(ctx, in.Account, out)
		return api.Answer(rowsPosted[In, Out]{Rows: rows}, err)
	})
}

// byLooseRow identifies a row without its account.
type byLooseRow struct {
	Row int64 `path:"row_id" minimum:"1" doc:"The row's id"`
}

// looseRows registers the deletion of rows and their sides without the account's id.
func (o operations[In, Out]) looseRows() {
	if o.LooseRow == "" {
		return
	}
	name := o.l.Name
	api.Handle(o.API, o.op(api.Op{
		ID: "delete-loose-" + name + "-row", Method: "DELETE", Path: o.LooseRow, Summary: "Delete a row without naming its account",
	}), func(ctx context.Context, in *byLooseRow) (*api.Nothing, error) {
		out, err := ledgercmd.ChangeRow(ctx, api.Request(ctx), o.Books, o.l, in.Row, book.DeleteRow{Ledger: o.l})
		return api.Done(ctx, out, err)
	})
	for _, side := range []struct {
		name, of string
		out      bool
	}{{"in", "IN", false}, {"out", "OUT", true}} {
		api.Handle(o.API, o.op(api.Op{
			ID: "delete-" + name + "-row-" + side.name, Method: "DELETE", Path: o.LooseRow + "/" + side.name,
			Summary: "Delete the " + side.of + " entries of a row. The row is deleted too if it has no other entries.",
		}), func(ctx context.Context, in *byLooseRow) (*api.Nothing, error) {
			out, err := ledgercmd.ChangeRow(ctx, api.Request(ctx), o.Books, o.l, in.Row, book.EmptySide{Ledger: o.l, Out: side.out})
			return api.Done(ctx, out, err)
		})
	}
}
