package marketplacehttp

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"bahi/commands/marketplacecmd"
	"bahi/domain/actor"
	"bahi/domain/fault"
	"bahi/domain/marketplace/company"
	"bahi/domain/marketplace/companycontact"
	"bahi/domain/wording"
	"bahi/http/api"
	"bahi/readmodels/marketplaceview"
)

const (
	contacts = "/api/v1/contacts"

	generalContacts = "contact_general"
)

// ByContact names a contact.
type ByContact struct {
	ID string `path:"contact_id" doc:"The contact's id"`
}

// id returns the id. For an invalid id, it returns an id that no contact has.
func (in ByContact) id() (uuid.UUID, error) { return idOr(in.ID, companycontact.ErrNotFound) }

// idOr returns an id, or the error for an invalid one.
func idOr(text string, none error) (uuid.UUID, error) {
	id, err := uuid.Parse(text)
	if err != nil || !company.IsID(text) {
		return uuid.Nil, none
	}
	return id, nil
}

// contactChange is the response to a change.
type contactChange struct {
	marketplaceview.Contact

	Warnings []fault.Field `json:"warnings,omitempty" doc:"Values that the caller may not change, and values that are stored but not used"`
}

// SchemaName implements http/api's Named.
func (contactChange) SchemaName() string { return "CompanyContactChange" }

// admitted refuses callers without a credential if contacts are not public.
func (r *Routes) admitted(ctx context.Context) error {
	if r.KnownOnly && api.Caller(ctx).Type == "" {
		return api.ErrNotAuthenticated
	}
	return nil
}

// mayRead returns the workspace in which the caller sees hidden records, uuid.Nil for none.
func mayRead(ctx context.Context) uuid.UUID {
	if who := api.Caller(ctx); who.May(area, actor.Read) {
		return who.Workspace
	}
	return uuid.Nil
}

// contacts registers the operations on companies' contact persons.
func (r *Routes) contacts() {
	reads := []string{"contacts"}
	api.Handle(r.API, closed(api.Op{
		ID: "list-contacts", Method: "GET", Path: contacts, Summary: "List the contacts of the caller's company, newest first",
		Limit: generalContacts, Reads: reads,
	}), func(ctx context.Context, in *struct {
		CompanyID uuid.UUID `query:"company_id" required:"true" doc:"Only contacts of this company"`
		Skip      int64     `query:"skip" default:"0" minimum:"0" maximum:"1000000000" doc:"Number of contacts to skip"`
		Limit     int       `query:"limit" default:"100" minimum:"1" maximum:"1000" doc:"Maximum number of records"`
	}) (*api.Array[marketplaceview.Contact], error) {
		of, err := marketplacecmd.WorkspaceOf(ctx, r.Commands, api.Request(ctx), in.CompanyID, companycontact.ErrNotYours)
		if err != nil {
			return nil, err
		}
		return api.Listed(r.Views.Contacts(ctx, api.At(ctx), of, in.CompanyID, in.Skip, in.Limit))
	})
	api.Handle(r.API, open(api.Op{
		ID: "get-contact", Method: "GET", Path: contacts + "/{contact_id}", Summary: "Read a contact", Limit: generalContacts, Reads: reads,
		Errors:     []int{http.StatusNotFound},
		Permission: "marketplace:read",
	}), func(ctx context.Context, in *ByContact) (*api.Tagged[marketplaceview.Contact], error) {
		id, err := in.id()
		if err == nil {
			err = r.admitted(ctx)
		}
		if err != nil {
			return nil, err
		}
		c, err := r.Views.Contact(ctx, api.At(ctx), mayRead(ctx), id)
		return api.WithETag(c, c.Revision, err)
	})
	api.Handle(r.API, open(api.Op{
		ID: "add-contact", Method: "POST", Path: contacts, Summary: "Add a contact, with or without a company", Limit: "contact_create",
		Errors:     []int{http.StatusBadRequest},
		Permission: "marketplace:write",
	}), func(ctx context.Context, in *struct{ Body companycontact.Add }) (*api.Tagged[contactChange], error) {
		if err := r.admitted(ctx); err != nil {
			return nil, err
		}
		w, err := marketplacecmd.AddContact(ctx, r.Commands, api.Request(ctx), in.Body)
		return api.WriteResult(ctx, w.ContactOutcome, err, func(marketplacecmd.ContactOutcome) contactChange { return contactAnswer(w) })
	})
	api.Handle(r.API, open(api.Op{
		ID: "edit-contact", Method: "PATCH", Path: contacts + "/{contact_id}",
		Summary: "Edit a contact. Only fields in the body change. Only members change the company and is_primary.",
		Limit:   generalContacts, Errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusForbidden}, Permission: "marketplace:write",
	}), func(ctx context.Context, in *struct {
		ByContact
		Body companycontact.Edit
	}) (*api.Tagged[contactChange], error) {
		id, err := in.id()
		if err == nil {
			err = r.admitted(ctx)
		}
		if err != nil {
			return nil, err
		}
		in.Body.ID = id.String()
		w, err := marketplacecmd.EditContact(ctx, r.Commands, api.Request(ctx), in.Body)
		return api.WriteResult(ctx, w.ContactOutcome, err, func(marketplacecmd.ContactOutcome) contactChange { return contactAnswer(w) })
	})
	api.Handle(r.API, closed(api.Op{
		ID: "delete-contact", Method: "DELETE", Path: contacts + "/{contact_id}", Summary: "Delete a contact and erase its personal data",
		Limit: generalContacts,
	}), func(ctx context.Context, in *ByContact) (*api.Nothing, error) {
		id, err := in.id()
		if err != nil {
			return nil, err
		}
		out, err := marketplacecmd.DeleteContact(ctx, r.Commands, api.Request(ctx), id.String())
		return api.Done(ctx, out, err)
	})
}

func contactAnswer(w marketplacecmd.ContactWritten) contactChange {
	shown := contactShown(w)
	return contactChange{Contact: shown, Warnings: append(w.Ignored, wording.Unread("phone", shown.Phone)...)}
}

// contactShown returns a contact after a command.
func contactShown(w marketplacecmd.ContactWritten) marketplaceview.Contact {
	s := w.State
	id, _ := uuid.Parse(w.ID) // the command has accepted the id
	c := marketplaceview.Contact{
		ID: id, FirstName: s.FirstName.Value.Shown(), LastName: s.LastName.Value.Shown(), Email: s.Email.Value.Shown(),
		Phone:       s.Phone.Value.Shown(),
		Designation: s.Designation.Value.Shown(), IsPrimary: w.Primary, CreatedAt: w.CreatedAt, UpdatedAt: w.At, Revision: w.Revision,
	}
	if s.Company != uuid.Nil {
		c.CompanyID = &s.Company
	}
	return c
}
