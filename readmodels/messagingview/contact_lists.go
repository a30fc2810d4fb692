package messagingview

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/readmodels"
)

// ContactList is a named list of contacts.
type ContactList struct {
	ID           int64     `json:"id" doc:"ID of the contact list"`
	Name         string    `json:"name" doc:"Name of the contact list"`
	ContactCount int64     `json:"contactCount" doc:"Number of contacts"`
	CreatedAt    time.Time `json:"createdAt" doc:"Time when the contact list was created"`
}

// ContactLists lists a page of a workspace's lists, newest first.
func (v *Views) ContactLists(ctx context.Context, at *readmodels.At, workspace uuid.UUID, page readmodels.Page) (rows []ContactList,
	total int64, err error) {
	return readmodels.List[ContactList]{As: pgx.RowToStructByName[ContactList], Order: `id desc`, SQL: `
		select id, name, (select count(*) from messaging_contacts.member where list_id = list.id) as contact_count, created_at
		from messaging_contacts.list where workspace_id = @workspace`, Args: pgx.NamedArgs{"workspace": workspace},
	}.Page(ctx, v.Reader.From(at, "messaging_contacts"), page)
}
