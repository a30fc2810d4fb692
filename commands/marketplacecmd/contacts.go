package marketplacecmd

import (
	"cmp"
	"context"
	"errors"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/domain/actor"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/marketplace/company"
	"bahi/domain/marketplace/companycontact"
	"bahi/domain/patch"
)

// Refusals concerning a contact's company.
var (
	errNoSuchCompany = unknownID("company_id", "Company not found")
	// errCompanyGone reports a change of a deleted company's record.
	errCompanyGone = fault.New(fault.Conflict, "The company was deleted")
)

// belongs reports whether the caller may change a workspace's records.
func belongs(req commands.Request, workspace uuid.UUID) bool {
	who := req.Actor
	return workspace != uuid.Nil && who.Type != "" && who.May(actor.Marketplace, actor.Write) &&
		(workspace == req.Workspace || who.Permissions.Operator)
}

// WorkspaceOf returns the workspace of a company, which may be deleted. It refuses companies of other workspaces, except for operators.
func WorkspaceOf(ctx context.Context, h *commands.Handler, req commands.Request, id uuid.UUID, notYours error) (uuid.UUID, error) {
	l, err := commands.Load(ctx, h.Fresh(), company.Kind, id.String())
	if err == nil && (l.Revision < 0 || l.Workspace != req.Workspace && !req.Actor.Permissions.Operator) {
		err = notYours
	}
	return l.Workspace, err
}

// ContactOutcome is the outcome of a command on a contact.
type ContactOutcome = commands.Outcome[companycontact.State]

// ContactWritten is a contact after a command. Ignored has the fields that a non-member may not change.
type ContactWritten struct {
	ContactOutcome

	Primary bool
	Ignored []fault.Field
}

func noContact() ContactWritten {
	return ContactWritten{ContactOutcome: ContactOutcome{Revision: -1}}
}

// AddContact creates a contact, with or without a company.
func AddContact(ctx context.Context, h *commands.Handler, req commands.Request, c companycontact.Add) (ContactWritten, error) {
	member, of := false, uuid.Nil
	if c.CompanyID != nil {
		of = *c.CompanyID
		l, err := commands.Load(ctx, h.Fresh(), company.Kind, of.String())
		if err != nil {
			return noContact(), err
		}
		member, req = belongs(req, l.Workspace), req.In(l.Workspace)
	} else {
		req = req.In(uuid.Nil)
	}
	out, err := commands.Do(ctx, h, req, companycontact.Kind, func(ctx context.Context, tx *commands.Tx) error {
		if of != uuid.Nil {
			if err := existing(ctx, tx, of, errNoSuchCompany); err != nil {
				if _, wrong := c.Decide(companycontact.State{}); wrong != nil && errors.Is(err, errNoSuchCompany) {
					return fault.Join(wrong, fault.Fields(errNoSuchCompany.Fields...))
				}
				return err
			}
		}
		_, err := commands.DecideNew(ctx, tx, companycontact.Kind, newID, func(id string) event.Command[companycontact.State] {
			c.ID = id
			return c
		})
		if err != nil || of == uuid.Nil || !c.IsPrimary.Value || c.ID == "" {
			return err
		}
		return namePrimary(ctx, tx, of, c.ID, member)
	})
	if err != nil {
		return noContact(), err
	}
	return contactWritten(ctx, h, out)
}

// contactWritten adds whether the contact is its company's primary one.
func contactWritten(ctx context.Context, h *commands.Handler, out ContactOutcome) (ContactWritten, error) {
	w := ContactWritten{ContactOutcome: out}
	var err error
	if w.State, err = commands.Reveal(ctx, h, w.State); err != nil || w.State.Company == uuid.Nil {
		return w, err
	}
	first, err := commands.Load(ctx, h.Fresh(), companycontact.PrimaryKind, w.State.Company.String())
	w.Primary = err == nil && first.State.Contact.String() == out.ID
	return w, err
}

// namePrimary makes a contact the primary one of a company.
func namePrimary(ctx context.Context, tx *commands.Tx, of uuid.UUID, id string, member bool) error {
	first, err := commands.Load(ctx, tx, companycontact.PrimaryKind, of.String())
	if err != nil {
		return err
	}
	c := companycontact.NamePrimary{Member: member}
	if c.Contact, err = uuid.Parse(id); err != nil {
		return err
	}
	if holder := first.State.Contact; !member && holder != uuid.Nil {
		l, err := commands.Load(ctx, tx, companycontact.Kind, holder.String())
		if err != nil {
			return err
		}
		if l.State.Company != of {
			c.Gone = holder
		}
	}
	_, err = commands.Decide(ctx, tx, companycontact.PrimaryKind, of.String(), c)
	return err
}

func dropPrimary(ctx context.Context, tx *commands.Tx, of uuid.UUID, id string) error {
	who, err := uuid.Parse(id)
	if err != nil || of == uuid.Nil {
		return err
	}
	_, err = commands.Decide(ctx, tx, companycontact.PrimaryKind, of.String(), companycontact.DropPrimary{Contact: who})
	return err
}

// EditContact changes the fields of a contact that the command contains. It ignores a non-member's change of fields that only members of
// the company may change.
func EditContact(ctx context.Context, h *commands.Handler, req commands.Request, c companycontact.Edit) (ContactWritten, error) {
	l, err := commands.Load(ctx, h.Fresh(), companycontact.Kind, c.ID)
	if err != nil || !l.State.Exists {
		return noContact(), cmp.Or(err, error(companycontact.ErrNotFound))
	}
	member, asked := belongs(req, l.Workspace), req.Workspace
	req = req.In(l.Workspace)
	var ignored []fault.Field
	if c.ByNonMember = !member; c.ByNonMember {
		const why = "only members of the company may change it"
		if c.CompanyID.Present() {
			c.CompanyID, ignored = patch.Field[uuid.UUID]{}, append(ignored, fault.Field{Field: "company_id", Message: why})
		}
		if c.IsPrimary.Present() {
			c.IsPrimary, ignored = patch.Field[bool]{}, append(ignored, fault.Field{Field: "is_primary", Message: why})
		}
	}
	out, err := commands.Do(ctx, h, req, companycontact.Kind, func(ctx context.Context, tx *commands.Tx) error {
		before, err := commands.Load(ctx, tx, companycontact.Kind, c.ID)
		if err != nil || !before.State.Exists {
			return cmp.Or(err, error(companycontact.ErrNotFound))
		}
		if err := checkCompany(ctx, tx, before.State.Company, member); err != nil {
			return err
		}
		if c.CompanyID.Present() {
			if err := movable(ctx, tx, c.CompanyID.Value, l.Workspace, req.In(asked)); err != nil {
				_, wrong := c.Decide(before.State)
				return fault.Join(err, wrong)
			}
		}
		after, err := commands.Decide(ctx, tx, companycontact.Kind, c.ID, c)
		if err != nil {
			return err
		}
		if from := before.State.Company; from != after.State.Company || c.IsPrimary.Present() && !c.IsPrimary.Value {
			if err := dropPrimary(ctx, tx, from, c.ID); err != nil {
				return err
			}
		}
		if c.IsPrimary.Value && after.State.Company != uuid.Nil {
			return namePrimary(ctx, tx, after.State.Company, c.ID, true)
		}
		return nil
	})
	if err != nil {
		return noContact(), err
	}
	w, err := contactWritten(ctx, h, out)
	w.Ignored = ignored
	return w, err
}

// checkCompany refuses changes of a deleted company's contact. It does not reveal to non-members that the contact existed.
func checkCompany(ctx context.Context, tx *commands.Tx, of uuid.UUID, member bool) error {
	switch {
	case of == uuid.Nil:
		return nil
	case member:
		return existing(ctx, tx, of, errCompanyGone)
	}
	return existing(ctx, tx, of, companycontact.ErrNotFound)
}

// movable refuses a company outside the contact's workspace.
func movable(ctx context.Context, tx *commands.Tx, to, workspace uuid.UUID, req commands.Request) error {
	l, err := commands.Load(ctx, tx, company.Kind, to.String())
	switch {
	case err != nil:
		return err
	case l.State.Name == "":
		return errNoCompany
	case l.Workspace != workspace || !belongs(req, l.Workspace):
		return companycontact.ErrNotYours
	}
	return nil
}

// DeleteContact deletes a contact of the caller's company, or any contact for an operator. The contact's key is destroyed soon after.
func DeleteContact(ctx context.Context, h *commands.Handler, req commands.Request, id string) (ContactOutcome, error) {
	none := noContact().ContactOutcome
	l, err := commands.Load(ctx, h.Fresh(), companycontact.Kind, id)
	if err != nil {
		return none, err
	}
	if req.Actor.Permissions.Operator && l.Revision >= 0 {
		req = req.In(l.Workspace)
	}
	return commands.Do(ctx, h, req, companycontact.Kind, func(ctx context.Context, tx *commands.Tx) error {
		before, err := commands.Load(ctx, tx, companycontact.Kind, id)
		if err == nil {
			_, err = commands.Decide(ctx, tx, companycontact.Kind, id, companycontact.Delete{})
		}
		if err == nil {
			err = dropPrimary(ctx, tx, before.State.Company, id)
		}
		return err
	})
}
