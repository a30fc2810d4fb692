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
	ID           int64     `json:"id"`
	Name         string    `json:"name"`
	ContactCount int64     `json:"contactCount"`
	CreatedAt    time.Time `json:"createdAt"`
}

// ContactLists lists a page of a workspace's lists, newest first.
func (v *Views) ContactLists(ctx context.Context, workspace uuid.UUID, page readmodels.Page) (rows []ContactList, total int64, err error) {
	return readmodels.Paged(ctx, v.Reader, page, pgx.RowToStructByName[ContactList], `id desc`, `
		select id, name, (select count(*) from messaging_contacts.member where list_id = list.id) as contact_count, created_at
		from messaging_contacts.list where workspace_id = $1`, workspace)
}
