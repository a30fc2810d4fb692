package marketplaceview

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/readmodels"
)

// ContactsReached returns the contacts of the deployment with an address or a phone. An empty value matches none.
func (v *Views) ContactsReached(ctx context.Context, at *readmodels.At, email, phone string) ([]uuid.UUID, error) {
	return readmodels.Rows(ctx, v.Reader.From(at, "contacts"), pgx.RowTo[uuid.UUID],
		`select c.id from contacts.contact c where c.email = nullif($1, '') or c.phone = nullif($2, '')`, email, phone)
}

// Buyers returns the data subjects of the buyers with an address or a phone. An empty value matches none.
func (v *Views) Buyers(ctx context.Context, at *readmodels.At, email, phone string) ([]string, error) {
	return readmodels.Rows(ctx, v.Reader.From(at, "enquiries"), pgx.RowTo[string],
		`select distinct r.buyer from enquiries.enquiry r where r.user_email = nullif($1, '') or r.user_phone = nullif($2, '')`, email, phone)
}
