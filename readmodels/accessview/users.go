package accessview

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/access/user"
	"bahi/domain/actor"
	"bahi/readmodels"
)

// User is the account of a user. Missing personal values are nil.
type User struct {
	ID            uuid.UUID
	WorkspaceID   uuid.UUID
	Email         *string
	FirstName     *string
	LastName      *string
	Phone         *string
	AuthProvider  string
	EmailVerified bool
	Operator      bool
	Picture       *string // key of the picture in the blob store
	CreatedAt     time.Time
	LastLoginAt   *time.Time
	DeleteAfter   *time.Time
	Revision      int64             // revision of their stream
	Permissions   actor.Permissions // in their own workspace
}

const userColumns = `
	a.id, a.workspace_id, a.email, a.first_name, a.last_name, a.phone, a.auth_provider, a.email_verified, a.operator, a.picture,
	a.created_at, a.last_login_at, a.delete_after, a.revision, coalesce(m.permissions, '{}') as permissions
	from users.account a left join workspaces.member m on m.workspace_id = a.workspace_id and m.user_id = a.id`

// User reads an account. It returns [user.ErrNotFound] for an unknown or erased user.
func (v *Views) User(ctx context.Context, at *readmodels.At, id uuid.UUID) (User, error) {
	return readmodels.Row(ctx, v.Reader.From(at, "users", "workspaces"), user.ErrNotFound, pgx.RowToStructByPos[User],
		`select `+userColumns+` where a.id = $1 and a.erased_at is null`, id)
}

// Users lists the accounts of the deployment, oldest first. It is for an operator.
func (v *Views) Users(ctx context.Context, at *readmodels.At) ([]User, error) {
	return readmodels.Rows(ctx, v.Reader.From(at, "users", "workspaces"), pgx.RowToStructByPos[User],
		`select `+userColumns+` where a.erased_at is null order by a.created_at, a.id`)
}

// DueForErasure returns the users who have requested deletion, and the times of the deletion.
func (v *Views) DueForErasure(ctx context.Context, at *readmodels.At, now time.Time) ([]uuid.UUID, error) {
	return readmodels.Rows(ctx, v.Reader.From(at, "users"), pgx.RowTo[uuid.UUID],
		`select a.id from users.account a where a.erased_at is null and a.delete_after <= $1 order by a.delete_after`, now)
}

// Membership has a user's permissions in a workspace.
type Membership struct {
	ID          uuid.UUID         `json:"id" doc:"ID of the workspace"`
	Name        *string           `json:"name" doc:"Name of the workspace's oldest company, or else of its owner"`
	Own         bool              `json:"own" doc:"true: the workspace created with the user"`
	Permissions actor.Permissions `json:"permissions" doc:"Permissions by area"`
	JoinedAt    time.Time         `json:"joined_at" doc:"Time when the user joined"`
}

// WorkspacesOf returns the ids of a user's workspaces, the oldest membership first.
func (v *Views) WorkspacesOf(ctx context.Context, at *readmodels.At, id uuid.UUID) ([]uuid.UUID, error) {
	return readmodels.Rows(ctx, v.Reader.From(at, "workspaces"), pgx.RowTo[uuid.UUID], `
		select m.workspace_id from workspaces.member m where m.user_id = $1 order by m.joined_at, m.workspace_id`, id)
}

// Memberships lists a user's workspaces, the oldest membership first.
func (v *Views) Memberships(ctx context.Context, at *readmodels.At, id uuid.UUID) ([]Membership, error) {
	return readmodels.Rows(ctx, v.Reader.From(at, "companies", "users", "workspaces"), pgx.RowToStructByPos[Membership], `
		select m.workspace_id, coalesce(
				(select c.name from companies.company c where c.workspace_id = m.workspace_id order by c.created_at, c.id limit 1),
				nullif(concat_ws(' ', o.first_name, o.last_name), '')), coalesce(o.id = m.user_id, false), m.permissions, m.joined_at
		from workspaces.member m left join users.account o on o.workspace_id = m.workspace_id
		where m.user_id = $1 order by m.joined_at, m.workspace_id`, id)
}

// Member has the data of a user that other members see.
type Member struct {
	UserID      uuid.UUID         `json:"user_id" doc:"ID of the user"`
	Email       *string           `json:"email" doc:"Email address"`
	FirstName   *string           `json:"first_name" doc:"First name"`
	LastName    *string           `json:"last_name" doc:"Last name"`
	Permissions actor.Permissions `json:"permissions" doc:"Permissions by area"`
	JoinedAt    time.Time         `json:"joined_at" doc:"Time when the user joined"`
	Revision    int64             `json:"revision" doc:"Revision for If-Match"`
}

// Members lists a workspace's members, the oldest membership first.
func (v *Views) Members(ctx context.Context, at *readmodels.At, workspace uuid.UUID) ([]Member, error) {
	return readmodels.Rows(ctx, v.Reader.From(at, "users", "workspaces"), pgx.RowToStructByPos[Member], `
		select m.user_id, a.email, a.first_name, a.last_name, m.permissions, m.joined_at, m.revision
		from workspaces.member m left join users.account a on a.id = m.user_id
		where m.workspace_id = $1 order by m.joined_at, m.user_id`, workspace)
}
