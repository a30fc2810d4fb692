package accessview

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/readmodels"
)

// InvitationsTo returns all invitations of all workspaces to an address with one of these keyed hashes.
func (v *Views) InvitationsTo(ctx context.Context, at *readmodels.At, emailKeys []string) ([]uuid.UUID, error) {
	return readmodels.Rows(ctx, v.Reader.From(at, "workspaces"), pgx.RowTo[uuid.UUID],
		`select i.id from workspaces.invitation i where i.email_key = any($1) order by i.id`, emailKeys)
}

// Workspace has the data of a workspace that operators see.
type Workspace struct {
	ID         uuid.UUID `json:"id" doc:"ID of the workspace"`
	Name       *string   `json:"name" doc:"Name of the workspace's oldest company, or else of its owner"`
	OwnerName  *string   `json:"owner_name" doc:"Null if only API keys use it, or the owner was erased"`
	OwnerEmail *string   `json:"owner_email" doc:"Email address of the owner"`
	Members    int64     `json:"members" doc:"Number of members"`
	CreatedAt  time.Time `json:"created_at" doc:"When the first member joined, or the first API key or company was created"`
}

// AllWorkspaces returns a page of the workspaces with a member, an API key or a company, the newest first, and the number of workspaces on
// all pages. It searches for words in a workspace's names, the owner's address and the id. It is for operators.
func (v *Views) AllWorkspaces(ctx context.Context, at *readmodels.At, page readmodels.Page, words string) ([]Workspace, int64, error) {
	return readmodels.List[Workspace]{As: pgx.RowToStructByPos[Workspace], Order: "created_at desc, id", SQL: `
		select * from (
			select w.id, coalesce(
					(select c.name from companies.company c where c.workspace_id = w.id order by c.created_at, c.id limit 1),
					nullif(concat_ws(' ', o.first_name, o.last_name), '')) as name,
				nullif(concat_ws(' ', o.first_name, o.last_name), '') as owner_name, o.email as owner_email,
				(select count(*) from workspaces.member m where m.workspace_id = w.id) as members, w.created_at
			from (
				select used.id, min(used.at) as created_at from (
					select m.workspace_id as id, m.joined_at as at from workspaces.member m
					union all select k.workspace_id, k.created_at from api_keys.api_key k
					union all select c.workspace_id, c.created_at from companies.company c) used
				group by used.id) w
			left join users.account o on o.workspace_id = w.id and o.erased_at is null) found
		where strpos(lower(concat_ws(' ', name, owner_name, owner_email, id)),
			lower(@words)) > 0`, Args: pgx.NamedArgs{"words": strings.TrimSpace(words)},
	}.Page(ctx, v.Reader.From(at, "api_keys", "companies", "users", "workspaces"), page)
}
