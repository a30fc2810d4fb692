package ledgerview

import (
	"context"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/ledger/khata"
	"bahi/domain/ledger/khatapage"
	"bahi/readmodels"
)

// ListedUpload is an uploaded khata.
type ListedUpload struct {
	ID        int64     `json:"upload_id" doc:"ID of the upload"`
	Status    string    `json:"status" enum:"processing,done,failed" doc:"Progress of the reading"`
	Pipeline  string    `json:"pipeline" enum:"v1,v2" doc:"Pipeline that reads the page"`
	Type      string    `json:"content_type" doc:"Media type of the file"`
	Pages     int       `json:"pages" doc:"Number of pages; 0: not known yet"`
	PagesDone int       `json:"pages_done" doc:"Number of pages that were read"`
	Entries   int       `json:"entry_count" doc:"Number of read entries"`
	Error     string    `json:"error,omitempty" doc:"Reason of the failure"`
	Submitted bool      `json:"submitted" doc:"true: the rows were posted"`
	CreatedAt time.Time `json:"created_at" doc:"Time of the upload"`
	Actor     string    `json:"actor" doc:"Actor of the upload"`

	Workspace uuid.UUID `json:"-"`
	Blob      string    `json:"-"`
	Removed   bool      `json:"-"`
	Revision  int64     `json:"-"`
	First     int64     `json:"-"` // id of the first submitted row; 0: none
	Rows      int64     `json:"-"` // number of submitted rows
}

const khatasSQL = `
	select k.id, k.status, k.pipeline, k.content_type, k.pages, k.pages_done, k.entry_count, coalesce(k.error, ''), k.first_row <> 0,
		k.created_at, k.actor, k.workspace_id, k.blob, k.removed, k.revision, k.first_row, k.row_count
	from khatas.khata k where k.workspace_id = @workspace`

func toKhata(row pgx.CollectableRow) (ListedUpload, error) {
	k, err := pgx.RowToStructByPos[ListedUpload](row)
	k.CreatedAt = k.CreatedAt.UTC()
	return k, err
}

// Khata reads an upload of a workspace, or returns [khata.ErrNotFound].
func (v *Views) Khata(ctx context.Context, at *readmodels.At, workspace uuid.UUID, id int64) (ListedUpload, error) {
	return readmodels.Row(ctx, v.Reader.From(at, "khatas"), khata.ErrNotFound, toKhata, khatasSQL+` and k.id = @id`,
		pgx.NamedArgs{"workspace": workspace, "id": id})
}

// KhataFilter selects uploads.
type KhataFilter struct {
	Waiting string `query:"waiting" enum:"true" doc:"true: only uploads that are neither submitted nor failed"`
}

// Khatas lists a page of the uploads of a workspace, newest first. A page of size 0 is all of them.
func (v *Views) Khatas(ctx context.Context, at *readmodels.At, workspace uuid.UUID, page readmodels.Page, f KhataFilter) (
	[]ListedUpload, int64, error) {
	waiting := ``
	if f.Waiting != "" {
		waiting = ` and unsubmitted`
	}
	return readmodels.List[ListedUpload]{
		As: toKhata, SQL: khatasSQL + waiting, Order: `id desc`,
		Count: readmodels.Tally(`khatas.khata`, `t`, `t.workspace_id = @workspace`+waiting), Args: pgx.NamedArgs{"workspace": workspace},
	}.Page(ctx, v.Reader.From(at, "khatas"), page)
}

// SubmittedRow identifies a submitted row.
type SubmittedRow struct {
	Ledger  string `json:"ledger" enum:"bank,bullion,client,karigar,polisher" doc:"Ledger, such as bank"`
	Account int64  `json:"account_id" doc:"ID of the account"`
	Row     int64  `json:"row_id" doc:"ID of the row"`
}

// SubmittedRows returns the submitted rows of an upload that are not deleted.
func (v *Views) SubmittedRows(ctx context.Context, at *readmodels.At, k ListedUpload) ([]SubmittedRow, error) {
	const newest = int64(1<<63 - 1)
	return readmodels.Rows(ctx, v.Reader.From(at, "books"), pgx.RowToStructByPos[SubmittedRow], `
		select a.ledger, a.id, r.row_id from books.row_version r join books.account a on a.id = r.account_id
		where r.row_id between $1 and $2 and r.to_position = $3 and not r.deleted and a.deleted_position = $3 and a.workspace_id = $4
		order by r.row_id`, k.First, k.First+k.Rows-1, newest, k.Workspace)
}

// OldKhata identifies an upload of any workspace.
type OldKhata struct {
	Workspace uuid.UUID
	Number    int64
}

// ID returns the id of its stream.
func (o OldKhata) ID() string { return strconv.FormatInt(o.Number, 10) }

// KhatasBefore returns the oldest uploads of all workspaces that are older than a time and have stored files.
func (v *Views) KhatasBefore(ctx context.Context, at *readmodels.At, before time.Time) ([]OldKhata, error) {
	return readmodels.Rows(ctx, v.Reader.From(at, "khatas"), pgx.RowToStructByPos[OldKhata],
		`select k.workspace_id, k.id from khatas.khata k where not k.removed and k.created_at < $1 order by k.created_at limit 100`, before)
}

// maxNames is the maximum number of account names that are matched with a page.
const maxNames = 20_000

// AccountNames returns the open accounts of a workspace.
func (v *Views) AccountNames(ctx context.Context, workspace uuid.UUID) ([]khatapage.Account, error) {
	return readmodels.Rows(ctx, v.Reader.From(nil, "books"), pgx.RowToStructByPos[khatapage.Account], `
		select a.ledger, a.id, a.name from books.account a
		where a.workspace_id = $1 and a.deleted_position = $2 order by a.id limit $3`, workspace, int64(1<<63-1), maxNames)
}
