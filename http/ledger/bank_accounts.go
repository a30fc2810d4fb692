package ledger

import (
	"context"
	"strconv"

	"github.com/shopspring/decimal"

	"bahi/commands"
	flows "bahi/commands/ledger"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/domain/unit"
	"bahi/http/api"
	"bahi/readmodels"
)

// ByBank names a bank account.
type ByBank struct {
	Account int64 `path:"bank_id" minimum:"1" doc:"The account's id"`
}

// BankAccounts registers what is done to the accounts themselves.
func (r *Routes) BankAccounts() {
	reads := []string{"books"}
	fields := []string{"id", "balance", "revision"}
	api.Handle(r.API, api.Op{
		ID: "list-banks", Method: "GET", Path: "/banks", Summary: "List the bank accounts with their balances",
		Tags: tags, Area: area, Limit: limit, Reads: reads, StrictQuery: true,
	}, func(ctx context.Context, in *AsOf) (*api.Body[[]BankAccount], error) {
		as, err := r.as(ctx, *in)
		if err != nil {
			return nil, err
		}
		found, err := r.Views.Accounts(ctx, workspace(ctx), bank.Ledger.Name, as)
		accounts := make([]BankAccount, len(found))
		for i := range found {
			accounts[i] = bankAccount(found[i])
		}
		return api.Answer(accounts, err)
	})
	api.Handle(r.API, api.Op{
		ID: "open-bank", Method: "POST", Path: "/bank", Summary: "Open a bank account",
		Tags: tags, Area: area, Limit: limit, Reads: reads, StrictBody: true, ReadOnly: fields, DryRun: true,
	}, func(ctx context.Context, in *struct{ Body book.OpenAccount[bank.Entry] }) (*api.Tagged[BankAccount], error) {
		out, err := flows.OpenAccount(ctx, api.Request(ctx), r.Books, bank.Ledger, in.Body)
		written, err := r.bankWritten(ctx, out, err)
		if err == nil { // nothing can have been posted to it before
			written.Body.Balance = &unit.Sum{Decimal: decimal.Zero}
		}
		return written, err
	})
	api.Handle(r.API, api.Op{
		ID: "get-bank", Method: "GET", Path: "/bank/{bank_id}", Summary: "Read a bank account with its balance",
		Tags: tags, Area: area, Limit: limit, Reads: reads, StrictQuery: true,
	}, func(ctx context.Context, in *struct {
		ByBank
		AsOf
	}) (*api.Tagged[BankAccount], error) {
		as, err := r.as(ctx, in.AsOf)
		if err != nil {
			return nil, err
		}
		a, err := r.Views.Account(ctx, workspace(ctx), bank.Ledger.Name, in.Account, as, bank.ErrNoAccount)
		if err != nil {
			return nil, err
		}
		return &api.Tagged[BankAccount]{ETag: api.Revision(a.Revision), Body: bankAccount(a)}, nil
	})
	api.Handle(r.API, api.Op{
		ID: "rename-bank", Method: "PUT", Path: "/bank/{bank_id}", Summary: "Rename a bank account",
		Tags: tags, Area: area, Limit: limit, Reads: reads, StrictBody: true, ReadOnly: fields, DryRun: true,
	}, func(ctx context.Context, in *struct {
		ByBank
		Body book.RenameAccount[bank.Entry]
	}) (*api.Tagged[BankAccount], error) {
		out, err := flows.RenameAccount(ctx, api.Request(ctx), r.Books, bank.Ledger, in.Account, in.Body)
		return r.bankWritten(ctx, out, err)
	})
	api.Handle(r.API, api.Op{
		ID: "delete-bank", Method: "DELETE", Path: "/bank-account/{bank_id}", Summary: "Delete a bank account and all its rows",
		Tags: tags, Area: area, Limit: limit, Reads: reads, DryRun: true,
	}, func(ctx context.Context, in *ByBank) (*api.Nothing, error) {
		out, err := flows.DeleteAccount(ctx, api.Request(ctx), r.Books, bank.Ledger, in.Account)
		if err != nil {
			return nil, err
		}
		api.Wrote(ctx, out.Position, out.Replayed)
		return &api.Nothing{}, nil
	})
}

// bankWritten answers an account as a command left it, with its balance in a dry run or when the caller
// wants it.
func (r *Routes) bankWritten(ctx context.Context, out commands.Outcome[bank.Account], err error) (*api.Tagged[BankAccount], error) {
	if err != nil {
		return nil, err
	}
	a := BankAccount{Name: out.State.Name}
	if out.Revision >= 0 {
		a.Revision = &out.Revision
	}
	id, err := strconv.ParseInt(out.ID, 10, 64)
	if err == nil {
		a.ID = &id
	}
	if !api.Request(ctx).DryRun {
		api.Wrote(ctx, out.Position, out.Replayed)
	}
	if a.ID != nil && (api.Request(ctx).DryRun || api.Prefers(ctx)) {
		read, err := r.Views.Account(readmodels.AtLeast(ctx, out.Position), workspace(ctx), bank.Ledger.Name, id, asWritten(out), bank.ErrNoAccount)
		if err == nil { // else the write is answered without it: it is in the log
			a.Balance = &read.Cash
		}
	}
	return &api.Tagged[BankAccount]{ETag: tag(out), Body: a}, nil
}

func tag[S any](out commands.Outcome[S]) api.ETag { return api.Revision(out.Revision) }
