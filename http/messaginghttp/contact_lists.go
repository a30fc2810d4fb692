package messaginghttp

import (
	"context"

	"bahi/commands"
	"bahi/commands/messagingcmd"
	"bahi/domain/messaging/contactlist"
	"bahi/http/api"
	"bahi/readmodels/messagingview"
)

// contactLists registers the operations of lists of contacts.
func (r *Routes) contactLists() {
	api.Handle(r.API, contactListOp("list-contact-lists", "GET", "", "List the contact lists, newest first"),
		func(ctx context.Context, in *struct{ api.Limited }) (*api.Array[messagingview.ContactList], error) {
			return api.Listed(r.Views.ContactLists(ctx, api.At(ctx), api.Caller(ctx).Workspace, in.Get()))
		})
	api.Handle(r.API, contactListOp("create-contact-list", "POST", "", "Create a contact list, empty or with contacts"),
		func(ctx context.Context, in *struct{ Body contactlist.Create }) (*api.Tagged[messagingview.ContactList], error) {
			out, err := messagingcmd.CreateContactList(ctx, r.Commands, api.Request(ctx), in.Body)
			return api.WriteResult(ctx, out, err, func(out commands.Outcome[contactlist.State]) messagingview.ContactList {
				count := int64(len(contactlist.Distinct(in.Body.ContactIDs)))
				return messagingview.ContactList{ID: out.Number(), Name: out.State.Name, ContactCount: count, CreatedAt: out.CreatedAt}
			})
		})
}
