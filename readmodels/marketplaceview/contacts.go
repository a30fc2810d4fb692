package marketplaceview

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/marketplace/companycontact"
	"bahi/readmodels"
)

// Contact is a contact of a company.
type Contact struct {
	ID          uuid.UUID  `json:"id" doc:"ID of the contact"`
	CompanyID   *uuid.UUID `json:"company_id" doc:"ID of the company; null: none"`
	FirstName   *string    `json:"first_name" doc:"null: erased"`
	LastName    *string    `json:"last_name" doc:"Last name"`
	Email       *string    `json:"email" doc:"null: erased"`
	Phone       *string    `json:"phone" doc:"Phone number in E.164 form"`
	Designation *string    `json:"designation" doc:"Occupation"`
	IsPrimary   bool       `json:"is_primary" doc:"true: the company's primary contact"`
	CreatedAt   time.Time  `json:"created_at" doc:"Time when the contact was created"`
	UpdatedAt   time.Time  `json:"updated_at" doc:"Time of the last change of the contact"`
	Revision    int64      `json:"revision" doc:"Revision for If-Match"`
}

// SchemaName implements http/api's Named.
func (Contact) SchemaName() string { return "CompanyContact" }

const contactColumns = `select c.id, c.company_id, c.first_name, c.last_name, c.email, c.phone, c.designation,
	exists (select from contacts.primary_contact f where f.company_id = c.company_id and f.contact_id = c.id) as is_primary,
		c.created_at, c.updated_at, c.revision
	from contacts.contact c`

// Contact reads a contact, or returns [companycontact.ErrNotFound]. Only the company's workspace finds a contact of a deleted company.
func (v *Views) Contact(ctx context.Context, at *readmodels.At, workspace, id uuid.UUID) (Contact, error) {
	return readmodels.Row(ctx, v.Reader.From(at, "contacts"), companycontact.ErrNotFound, pgx.RowToStructByName[Contact],
		contactColumns+` where c.id = $1 and (not c.hidden or c.workspace_id = $2)`, id, workspace)
}

// Contacts lists at most limit contacts of a company, newest first, after the first skip, and returns the number of all.
func (v *Views) Contacts(ctx context.Context, at *readmodels.At, workspace, of uuid.UUID, skip int64, limit int) (rows []Contact,
	total int64, err error) {
	return readmodels.List[Contact]{
		As: pgx.RowToStructByName[Contact], Order: `created_at desc, id desc`,
		SQL: contactColumns + ` where c.company_id = @company and c.workspace_id = @workspace`, Args: pgx.NamedArgs{"company": of,
			"workspace": workspace},
	}.Skip(ctx, v.Reader.From(at, "contacts"), skip, limit)
}
