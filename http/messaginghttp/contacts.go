package messaginghttp

import (
	"context"
	"strconv"

	"bahi/commands"
	"bahi/commands/messagingcmd"
	"bahi/domain/fault"
	"bahi/domain/messaging/contact"
	"bahi/domain/wording"
	"bahi/http/api"
	"bahi/readmodels/messagingview"
)

// ByContact names a contact.
type ByContact struct {
	ID int64 `path:"id" minimum:"1" doc:"The contact's id"`
}

func (in ByContact) stream() string { return strconv.FormatInt(in.ID, 10) }

// ContactChange is the response to a change.
type ContactChange struct {
	messagingview.Contact

	Warnings []fault.Field `json:"warnings,omitempty" doc:"Values that are stored but not used"`
}

// SchemaName implements http/api's Named.
func (ContactChange) SchemaName() string { return "MessagingContactChange" }

// contacts registers the operations of contacts.
func (r *Routes) contacts() {
	api.Handle(r.API, contactOp("list-messaging-contacts", "GET", "", "List the contacts, newest first"),
		func(ctx context.Context, in *struct {
			api.Limited
			messagingview.ContactFilter
		}) (*api.Array[messagingview.Contact], error) {
			return api.Listed(r.Views.Contacts(ctx, api.At(ctx), api.Caller(ctx).Workspace, in.Get(), in.ContactFilter))
		})
	api.Handle(r.API, contactOp("add-messaging-contact", "POST", "", "Add a contact"),
		func(ctx context.Context, in *struct{ Body contact.Add }) (*api.Tagged[ContactChange], error) {
			out, err := messagingcmd.AddContact(ctx, r.Commands, api.Request(ctx), in.Body)
			return r.contactWritten(ctx, out, err)
		})
	api.Handle(r.API, contactOp("get-messaging-contact", "GET", "/{id}", "Read a contact"),
		func(ctx context.Context, in *ByContact) (*api.Tagged[messagingview.Contact], error) {
			c, err := r.Views.Contact(ctx, api.At(ctx), api.Caller(ctx).Workspace, in.ID)
			return api.WithETag(c, c.Revision, err)
		})
	api.Handle(r.API, contactOp("edit-messaging-contact", "PATCH", "/{id}",
		"Edit a contact. Only fields in the body change: addresses, consent, bot replies, status."),
		func(ctx context.Context, in *struct {
			ByContact
			Body contact.Edit
		}) (*api.Tagged[ContactChange], error) {
			in.Body.ID = in.stream()
			out, err := messagingcmd.EditContact(ctx, r.Commands, api.Request(ctx), in.Body)
			return r.contactWritten(ctx, out, err)
		})
	api.Handle(r.API, contactOp("delete-messaging-contact", "DELETE", "/{id}", "Delete a contact and erase its personal data"),
		func(ctx context.Context, in *ByContact) (*api.Nothing, error) {
			out, err := messagingcmd.DeleteContact(ctx, r.Commands, api.Request(ctx), in.stream())
			return api.Done(ctx, out, err)
		})
}

// contactWritten returns a contact after a command.
func (r *Routes) contactWritten(ctx context.Context, out commands.Outcome[contact.State], err error) (*api.Tagged[ContactChange], error) {
	if err == nil {
		out.State, err = commands.Reveal(ctx, r.Commands, out.State)
	}
	return api.WriteResult(ctx, out, err, func(out commands.Outcome[contact.State]) ContactChange {
		c := ContactChange{Contact: r.contactAfter(ctx, out)}
		if c.PhoneText != nil {
			c.Warnings = []fault.Field{{Field: "phone", Message: wording.UnreadPhone}}
		}
		return c
	})
}

// contactAfter returns a contact as reads do. If its row is not up to date, it has no values of the conversation.
func (r *Routes) contactAfter(ctx context.Context, out commands.Outcome[contact.State]) messagingview.Contact {
	s := out.State
	id := out.Number()
	if out.Revision > 0 { // the stream does not have the values of the conversation
		if c, err := r.Views.Contact(ctx, api.At(ctx), api.Caller(ctx).Workspace, id); err == nil && c.Revision == out.Revision {
			return c
		}
	}
	return messagingview.Contact{
		ID: id, Name: s.Name.Shown(), Phone: s.Phone.Shown(), PhoneText: s.PhoneText.Shown(), Email: s.Email.Shown(), Source: s.Source,
		OptIn: s.OptIn, ReplyBot: s.ReplyBot, Status: s.Status, ListIDs: append([]int64{}, s.Lists...), CreatedAt: out.CreatedAt,
		UpdatedAt: out.At, Revision: out.Revision,
	}
}
