package marketplaceproj

import (
	_ "embed"

	"github.com/google/uuid"

	"bahi/domain/event"
	"bahi/domain/marketplace/company"
	"bahi/domain/marketplace/companycontact"
	"bahi/domain/patch"
	"bahi/projections"
)

//go:embed contacts.sql
var contactsDDL string

// Contacts has the contact persons of companies. Its personal values are plaintext until their key is destroyed.
var Contacts = projections.Define("contacts", 2, contactsDDL,
	projections.On(func(b *projections.Batch, e event.Recorded[companycontact.Added]) {
		b.Exec(`insert into contact (id, workspace_id, company_id, created_at, updated_at, revision) values ($1, $2, nullif($3, $4::uuid), $5,
			$5, $6)`,
			e.StreamID(), e.Meta.Workspace, e.Data.Company, uuid.Nil, e.At, e.Revision)
		reached(b, e.StreamID(), e.Data.Details)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[companycontact.Edited]) {
		b.Set("contact", e.StreamID(), "updated_at", e.At, "revision", e.Revision)
		if e.Data.Company != uuid.Nil {
			b.Set("contact", e.StreamID(), "company_id", patch.Set(e.Data.Company))
		}
		reached(b, e.StreamID(), e.Data.Details)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[companycontact.Deleted]) {
		b.Exec(`delete from contact where id = $1`, e.StreamID())
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[companycontact.PrimaryNamed]) {
		b.Exec(`insert into primary_contact (company_id, contact_id) values ($1, nullif($2, $3::uuid))
			on conflict (company_id) do update set contact_id = excluded.contact_id`, e.StreamID(), e.Data.Contact, uuid.Nil)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[company.Deleted]) {
		b.Exec(`update contact set hidden = true where company_id = $1`, e.StreamID())
	}),
)

// reached writes the name, email and phone of a contact if the change contains them.
func reached(b *projections.Batch, id string, d companycontact.Details) {
	b.Set("contact", id, "first_name", d.FirstName, "last_name", d.LastName, "email", d.Email, "phone", d.Phone, "designation", d.Designation)
}
