package ledgerhttp

import (
	"context"
	"strings"

	"bahi/commands"
	"bahi/commands/ledgercmd"
	"bahi/domain/event"
	"bahi/domain/ledger/book"
	"bahi/http/api"
	"bahi/readmodels/ledgerview"
)

// ByAccount identifies an account. Each ledger's paths have their own variable for it.
type ByAccount struct {
	Account int64 `path:"account" minimum:"1" doc:"The account's id"`
}

// accounts registers the operations on accounts.
func (o operations[In, Out]) accounts() {
	name, fields := o.l.Name, o.fields("", "id", "revision")
	rename := "Rename " + o.a()
	if o.l.Types > 0 {
		rename = "Change the name or the type of " + o.a()
	}
	o.list(o.List, o.Many, nil)
	for kind, path := range o.OfType {
		o.list(path, strings.ReplaceAll(path[1:], "-", " "), &kind)
	}
	api.Handle(o.API, o.op(api.Op{
		ID: "open-" + name, Method: "POST", Path: o.Open, Summary: "Open " + o.a(), ReadOnly: fields,
	}), func(ctx context.Context, in *struct{ Body openAccount[In, Out] }) (*api.Tagged[account[In, Out]], error) {
		out, err := ledgercmd.OpenAccount(ctx, api.Request(ctx), o.Books, o.l, in.Body.OpenAccount)
		return o.accountWritten(ctx, out, err, &ledgerview.Balance{}) // no row can have been posted to it before
	})
	api.Handle(o.API, o.op(api.Op{
		ID: "get-" + name, Method: "GET", Path: o.Account, Summary: "Read " + o.a() + " with its balance",
	}), func(ctx context.Context, in *struct {
		ByAccount
		AsOf
	}) (*api.Tagged[account[In, Out]], error) {
		as, err := o.as(ctx, in.AsOf)
		if err != nil {
			return nil, err
		}
		a, err := o.Views.Account(ctx, api.At(ctx), accountOf(ctx, o.l, in.Account), as)
		return api.WithETag(o.account(a), a.Revision, err)
	})
	api.Handle(o.API, o.op(api.Op{
		ID: "rename-" + name, Method: "PUT", Path: o.Account, Summary: rename, ReadOnly: fields,
	}), func(ctx context.Context, in *struct {
		ByAccount
		Body renameAccount[In, Out]
	}) (*api.Tagged[account[In, Out]], error) {
		out, err := ledgercmd.ChangeAccount(ctx, api.Request(ctx), o.Books, o.l, in.Account, in.Body.ChangeAccount)
		return o.accountWritten(ctx, out, err, nil)
	})
	api.Handle(o.API, o.op(api.Op{
		ID: "delete-" + name, Method: "DELETE", Path: o.Delete, Summary: "Delete " + o.a() + " and all its rows",
	}), func(ctx context.Context, in *ByAccount) (*api.Nothing, error) {
		out, err := ledgercmd.DeleteAccount(ctx, api.Request(ctx), o.Books, o.l, in.Account)
		return api.Done(ctx, out, err)
	})
}

// list registers the list of all accounts, or of the accounts of one type.
func (o operations[In, Out]) list(path, words string, kind *int) {
	api.Handle(o.API, o.op(api.Op{
		ID: "list-" + path[1:], Method: "GET", Path: path, Summary: "List the " + words + " with their balances",
	}), func(ctx context.Context, in *AsOf) (*api.Body[[]account[In, Out]], error) {
		as, err := o.as(ctx, *in)
		if err != nil {
			return nil, err
		}
		var found []ledgerview.Account
		read := func(most int) error {
			of := ledgerview.LedgerAccounts{Ledger: o.l, Type: kind, Most: most}
			found, err = o.Views.Accounts(ctx, api.At(ctx), workspace(ctx), of, as)
			return err
		}
		short, err := api.At(ctx).Attempt(func() (bool, error) {
			err := read(shortList + 1)
			return err != nil || len(found) <= shortList, err
		})
		if !short {
			err = api.InTurn(ctx, func() error { return read(0) })
		}
		accounts := make([]account[In, Out], len(found))
		for i := range found {
			accounts[i] = o.account(found[i])
		}
		return api.Answer(accounts, err)
	})
}

// op completes an operation of the ledger.
func (o operations[In, Out]) op(op api.Op) api.Op {
	op.Reads = []string{"books"}
	return ledgerOp(op)
}

// accountWritten returns an account after a command. It reads the balance unless it is known, and omits a stale balance,
// because the write is already in the log.
func (o operations[In, Out]) accountWritten(ctx context.Context, out commands.Outcome[book.Account], err error,
	known *ledgerview.Balance) (*api.Tagged[account[In, Out]], error) {
	if err != nil {
		return nil, err
	}
	shown := account[In, Out]{ID: out.Number(), Name: out.State.Name, Type: out.State.Type, Of: out.State.Metal}
	if out.Revision >= 0 {
		shown.Revision = &out.Revision
	}
	api.SetWriteHeaders(ctx, out.Position, out.Replayed)
	api.Prefers(ctx) // the response always has the whole account
	if known == nil && shown.ID != 0 {
		read, err := o.Views.Account(ctx, api.At(ctx).After(out.Position), accountOf(ctx, o.l, shown.ID),
			asWritten(out.Position, out.Replayed))
		if err == nil {
			known = &read.Balance
		}
	}
	if known != nil {
		shown.Balance, shown.Metal = balances(o.l, *known)
	}
	return &api.Tagged[account[In, Out]]{ETag: tag(out), Body: shown}, nil
}

// asWritten returns the state for the response to a write: the newest, or for a retry the state after the first request.
func asWritten(at event.Position, replayed bool) (as ledgerview.As) {
	if replayed {
		as.KnownAt = &at
	}
	return as
}

func tag[S any](out commands.Outcome[S]) api.ETag { return api.Revision(out.Revision) }
