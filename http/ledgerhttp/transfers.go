package ledgerhttp

import (
	"context"

	"bahi/commands"
	"bahi/commands/ledgercmd"
	"bahi/domain/ledger/metal"
	"bahi/http/api"
	"bahi/readmodels/ledgerview"
)

// pairedRows has the rows of a pair.
type pairedRows struct {
	Rows []DaybookRow `json:"rows" doc:"Both rows, in the order of the request; ids and revisions are absent from a dry run's answer"`
}

// transfers registers transfers between accounts, and the pairing of rows.
func (r *Routes) transfers() {
	op := func(id, path, summary string, status int) api.Op {
		return ledgerOp(api.Op{ID: id, Method: "POST", Path: path, Summary: summary, Status: status})
	}
	api.Handle(r.API, op("post-transfer", "/books/transfers", "Post a transfer: a row in each of two accounts. The rows name each other.", 0),
		func(ctx context.Context, in *struct{ Body ledgercmd.Transfer }) (*api.Body[pairedRows], error) {
			return paired(ctx)(r.Books.Transfer(ctx, api.Request(ctx), in.Body))
		})
	api.Handle(r.API, op("pair-rows", "/books/transfers/pair",
		"Pair two rows of different accounts with opposite values", 200),
		func(ctx context.Context, in *struct {
			Body struct {
				Rows []int64 `json:"rows" minItems:"2" maxItems:"2" example:"[73,74]" doc:"IDs of the two rows"`
			}
		}) (*api.Body[pairedRows], error) {
			return paired(ctx)(r.Books.PairRows(ctx, api.Request(ctx), in.Body.Rows))
		})
	api.Handle(r.API, op("unpair-row", "/books/transfers/unpair", "Dissolve the pair of a row", 200),
		func(ctx context.Context, in *struct {
			Body struct {
				Row int64 `json:"row" minimum:"1" doc:"ID of one of the rows"`
			}
		}) (*api.Body[pairedRows], error) {
			return paired(ctx)(r.Books.UnpairRow(ctx, api.Request(ctx), in.Body.Row))
		})
}

// paired returns the response to a command on a pair of rows.
func paired(ctx context.Context) func(ledgercmd.Paired, error) (*api.Body[pairedRows], error) {
	return func(p ledgercmd.Paired, err error) (*api.Body[pairedRows], error) {
		if err != nil {
			return nil, err
		}
		api.SetWriteHeaders(ctx, p.Position, p.Replayed)
		rows := make([]DaybookRow, len(p.Rows))
		for i, row := range p.Rows {
			revision := &p.Rows[i].Revision
			if row.ID == 0 {
				revision = nil
			}
			rows[i] = rowOf(row.Ledger.Name, row.Name, row.ID, revision, row.Row)
		}
		return &api.Body[pairedRows]{Body: pairedRows{rows}}, nil
	}
}

// booksMetal registers the metal of the books.
func (r *Routes) booksMetal() {
	api.Handle(r.API, ledgerOp(api.Op{
		ID: "get-books-metal", Method: "GET", Path: "/books/metal", Summary: "Read the metal of the accounts and entries that name none",
		Reads: []string{"books"},
	}), func(ctx context.Context, _ *struct{}) (*api.Tagged[ledgerview.Metal], error) {
		of, revision, err := r.Views.Metal(ctx, api.At(ctx), workspace(ctx), ledgerview.As{})
		return api.WithETag(of, revision, err)
	})
	api.Handle(r.API, ledgerOp(api.Op{
		ID: "set-books-metal", Method: "PUT", Path: "/books/metal", Summary: "Set the metal of the accounts and entries that name none",
	}), func(ctx context.Context, in *struct{ Body metal.Change }) (*api.Tagged[ledgerview.Metal], error) {
		out, err := commands.Handle(ctx, r.Books.Commands, api.Request(ctx), metal.Kind, workspace(ctx).String(), in.Body)
		return api.WriteResult(ctx, out, err, func(out commands.Outcome[metal.State]) ledgerview.Metal {
			return ledgerview.Metal{Metal: out.State.Of()}
		})
	})
}
