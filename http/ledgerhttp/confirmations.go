package ledgerhttp

import (
	"context"
	"net/http"

	"bahi/commands"
	"bahi/commands/ledgercmd"
	"bahi/domain/actor"
	"bahi/domain/ledger"
	"bahi/domain/ledger/confirmation"
	"bahi/domain/ledger/party"
	"bahi/http/api"
	"bahi/http/pdf"
	"bahi/readmodels/ledgerview"
)

// accountContact is the contact of an account.
type accountContact struct {
	Kind      string `json:"kind" enum:"bank,bullion,client,karigar,polisher" doc:"Ledger"`
	AccountID int64  `json:"account_id" doc:"ID of the account"`
	ContactID *int64 `json:"contact_id" doc:"ID of the contact; null: none"`
}

// ByConfirmation identifies a confirmation.
type ByConfirmation struct {
	ID int64 `path:"id" minimum:"1" doc:"The confirmation's id"`
}

func confirmationOp(id, method, path, summary string) api.Op {
	op := ledgerOp(api.Op{ID: id, Method: method, Path: "/books/confirmations" + path, Summary: summary,
		Reads: ledgerview.ConfirmationReads()})
	op.StrictQuery = false
	return op
}

// confirmations registers the operations on confirmations of balances.
func (r *Routes) confirmations() {
	api.Handle(r.API, ledgerOp(api.Op{
		ID: "set-account-contact", Method: "PUT", Path: "/books/accounts/{id}/contact",
		Summary: "Set the contact of an account of any ledger. null removes it.",
	}), func(ctx context.Context, in *struct {
		ID   int64 `path:"id" minimum:"1" doc:"The account's id"`
		Body party.SetContact
	}) (*api.Tagged[accountContact], error) {
		out, l, err := r.Confirming.SetContact(ctx, api.Request(ctx), in.ID, in.Body)
		return api.WriteResult(ctx, out, err, func(out commands.Outcome[party.State]) accountContact {
			shown := accountContact{Kind: l.Name, AccountID: in.ID}
			if out.State.Contact != 0 {
				shown.ContactID = &out.State.Contact
			}
			return shown
		})
	})
	request := confirmationOp("request-confirmations", "POST", "", "Ask parties to confirm their balances as of a day. "+
		"The channel sends each reachable party one message of the template. The message has both balances and a link to the statement. "+
		"If the template has a document, the message has the statement as a PDF. "+
		"The party replies with 1 or 2. "+
		"The caller also needs messaging:write.")
	request.Limit, request.Expensive = "campaign_send", true
	api.Handle(r.API, request, func(ctx context.Context, in *struct{ Body confirmation.Request }) (*api.Tagged[ledgerview.Confirmation],
		error) {
		if !api.Caller(ctx).May(actor.Messaging, actor.Write) {
			return nil, api.ErrNotPermitted
		}
		out, err := r.Confirming.Request(ctx, api.Request(ctx), in.Body)
		return api.WriteResult(ctx, out, err, func(out commands.Outcome[confirmation.State]) ledgerview.Confirmation {
			c := ledgerview.ConfirmationAfter(out.Number(), out.State)
			if !out.CreatedAt.IsZero() {
				c.CreatedAt = &out.CreatedAt
			}
			return c
		})
	})
	api.Handle(r.API, confirmationOp("list-confirmations", "GET", "", "List the confirmations, newest first"),
		func(ctx context.Context, in *api.Limited) (*api.Array[ledgerview.Confirmation], error) {
			return api.Listed(r.Views.Confirmations(ctx, api.At(ctx), workspace(ctx), in.Get()))
		})
	api.Handle(r.API, confirmationOp("get-confirmation", "GET", "/{id}", "Read a confirmation with the counts of its parties by status"),
		func(ctx context.Context, in *ByConfirmation) (*api.Body[ledgerview.Confirmation], error) {
			return api.Answer(r.Views.Confirmation(ctx, api.At(ctx), workspace(ctx), in.ID))
		})
	api.Handle(r.API, confirmationOp("list-confirmation-parties", "GET", "/{id}/parties",
		"List the parties of a confirmation by their accounts"),
		func(ctx context.Context, in *struct {
			ByConfirmation
			api.Limited
			ledgerview.PartyFilter
		}) (*api.Array[ledgerview.ConfirmationParty], error) {
			if _, err := r.Views.Confirmation(ctx, api.At(ctx), workspace(ctx), in.ID); err != nil {
				return nil, err
			}
			return api.Listed(r.Views.ConfirmationParties(ctx, api.At(ctx), workspace(ctx), in.Get(), in.ID, in.PartyFilter))
		})
	decide := confirmationOp("decide-confirmation", "POST", "/{id}/parties/{account}",
		"Record the outcome of a party by a user's decision. The decision replaces any other reply.")
	decide.Status = http.StatusOK
	api.Handle(r.API, decide, func(ctx context.Context, in *struct {
		ByConfirmation
		ByAccount
		Body ledgercmd.Decision
	}) (*api.Tagged[ledgerview.ConfirmationParty], error) {
		out, err := r.Confirming.Decide(ctx, api.Request(ctx), in.ID, in.Account, in.Body)
		if err != nil {
			return nil, err
		}
		shown, err := r.Views.ConfirmationParty(ctx, api.At(ctx).After(out.Position), workspace(ctx), in.ID, in.Account)
		return api.WriteResult(ctx, out, err, func(out commands.Outcome[party.State]) ledgerview.ConfirmationParty {
			shown.Status = out.State.Said[in.ID].Outcome // a dry run stores nothing
			return shown
		})
	})
	api.Download(r.API, ledgerOp(api.Op{
		ID: "get-shared-statement", Method: "GET", Path: "/s/{token}",
		Summary: "Read the statement of a confirmation's link as a PDF", Public: true, Limit: "ledger_shared_statement", Proof: true,
		Reads: []string{"books"}, Errors: []int{http.StatusNotFound},
	}), map[string]any{pdfType: nil}, func(ctx context.Context, in *struct {
		Token string `path:"token" maxLength:"100" doc:"Token of the link"`
	}) (api.Content, error) {
		s, err := r.Confirming.Statement(ctx, in.Token)
		if err == nil {
			err = api.CountFor(ctx, "ledger_pdf", in.Token)
		}
		if err != nil {
			return api.Content{}, err
		}
		sel := ledgerview.Selection{As: ledgerview.As{Of: &s.AsOf, KnownAt: &s.Position}}
		of := ledgerview.AccountKey{Workspace: s.Workspace, Ledger: ledger.Named(s.Ledger), ID: s.Account}
		c, err := r.statement(ctx, of, sel, pdf.Both, forParty, "Check it at "+r.Confirming.PublicURL+"/verify")
		c.Unlisted = true
		return c, err
	})
}
