package ledgerhttp

import (
	"context"

	"bahi/domain/ledger"
	"bahi/domain/unit"
	"bahi/http/api"
	"bahi/readmodels/ledgerview"
)

// NamedAccount is an account in the list over all ledgers.
type NamedAccount struct {
	Kind    string    `json:"kind" enum:"bank,bullion,client,karigar,polisher" doc:"Ledger"`
	ID      int64     `json:"id" doc:"ID of the account"`
	Name    string    `json:"name" doc:"Name of the account"`
	Type    *int      `json:"type,omitempty" doc:"Type of a polisher's account"`
	Balance *unit.Sum `json:"balance,omitempty" doc:"Balance of a bank account in rupees"`
	Metal
	Of        string `json:"metal,omitempty" doc:"Metal of the entries that name none; absent: the metal of the workspace"`
	ContactID *int64 `json:"contact_id" doc:"ID of the account's contact; null: none"`
	Revision  int64  `json:"revision" doc:"Revision for If-Match"`
}

// Named registers the list of the accounts of all ledgers.
func (r *Routes) Named() {
	api.Handle(r.API, ledgerOp(api.Op{
		ID: "list-accounts", Method: "GET", Path: "/books/accounts", Summary: "List the accounts of all ledgers by name, with their balances",
		Reads: []string{"books", "confirmations"},
	}), func(ctx context.Context, in *struct {
		api.Pages
		ledgerview.AccountFilter
		AsOf
	}) (*api.Array[NamedAccount], error) {
		as, err := r.as(ctx, in.AsOf)
		if err != nil {
			return nil, err
		}
		found, total, err := r.Views.AccountsNamed(ctx, api.At(ctx), workspace(ctx), in.Get(), in.AccountFilter, as)
		accounts := make([]NamedAccount, len(found))
		for i, a := range found {
			accounts[i] = NamedAccount{
				Kind: a.Ledger, ID: a.ID, Name: a.Name, Type: a.Type, Of: a.Metal, ContactID: a.Contact, Revision: a.Revision,
			}
			accounts[i].Balance, accounts[i].Metal = balances(ledger.Named(a.Ledger), a.Balance)
		}
		return api.Listed(accounts, total, err)
	})
}
