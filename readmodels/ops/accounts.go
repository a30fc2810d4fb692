package ops

import (
	"context"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/readmodels"
)

// Account is an account of a ledger in any workspace.
type Account struct {
	ID        int64
	Ledger    string
	Workspace uuid.UUID
	Name      string
	Deleted   bool
}

// Accounts finds accounts in all workspaces.
type Accounts struct {
	Reader *readmodels.Reader
}

// Find returns at most size accounts whose name, id or workspace id contains the words, or all accounts without words. Open accounts come
// first, then by age, newest first.
func (a *Accounts) Find(ctx context.Context, words string, size int) ([]Account, error) {
	words = strings.TrimSpace(words)
	var id *int64
	if n, err := strconv.ParseInt(words, 10, 64); err == nil {
		id = &n
	}
	var workspace *uuid.UUID
	if w, err := uuid.Parse(words); err == nil {
		workspace = &w
	}
	return readmodels.Rows(ctx, a.Reader, pgx.RowToStructByPos[Account], `
		select a.id, a.ledger, a.workspace_id, a.name, a.deleted_position <> 9223372036854775807 as deleted
		from books.account a
		where $1 = '' or a.id = $2::bigint or a.workspace_id = $3::uuid or strpos(lower(a.name), lower($1)) > 0
		order by deleted, a.id desc limit $4`, words, id, workspace, size)
}

// Account returns one account of a ledger, or missing.
func (a *Accounts) Account(ctx context.Context, ledger string, id int64, missing error) (Account, error) {
	return readmodels.Row(ctx, a.Reader, missing, pgx.RowToStructByPos[Account], `
		select a.id, a.ledger, a.workspace_id, a.name, a.deleted_position <> 9223372036854775807 as deleted
		from books.account a where a.id = $1 and a.ledger = $2`, id, ledger)
}
