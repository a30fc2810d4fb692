package ledgerview

import (
	"context"
	"math"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/ledger/closing"
	"bahi/domain/ledger/khata"
	"bahi/domain/ledger/period"
	"bahi/domain/unit"
	"bahi/readmodels"
)

// Period is the seal of a closed period. It may have been reopened.
type Period struct {
	period.Closed

	ClosedAt time.Time `json:"closed_at" doc:"Time of the closing"`
	ClosedBy string    `json:"closed_by" doc:"Actor of the closing"`
	Reopened *Reopened `json:"reopened,omitempty" doc:"Absent: the period is closed"`
}

// Reopened describes the reopening of a period.
type Reopened struct {
	At     time.Time `json:"reopened_at" doc:"Time of the reopening"`
	By     string    `json:"reopened_by" doc:"Actor of the reopening"`
	Reason string    `json:"reason" doc:"Reason of the reopening"`
}

func toPeriod(row pgx.CollectableRow) (p Period, err error) {
	var (
		from       *time.Time
		through    time.Time
		size, read int64
		at         *time.Time
		by, reason *string
	)
	err = row.Scan(&from, &through, &p.Digest, &size, &p.LogRoot, &read, &p.ClosedAt, &p.ClosedBy, &at, &by, &reason)
	p.Through, p.LogSize, p.Position, p.ClosedAt = unit.DateOf(through), uint64(size), event.Position(read), p.ClosedAt.UTC()
	if from != nil {
		p.From = new(unit.DateOf(*from))
	}
	if at != nil {
		p.Reopened = &Reopened{At: at.UTC(), By: *by, Reason: *reason}
	}
	return p, err
}

const periodsSQL = `
	select p.from_date, p.through, p.digest, p.log_size, p.log_root, p.read_position, p.closed_at, p.closed_by,
		case when p.reopened_position <= @known then p.reopened_at end, p.reopened_by, p.reopen_reason
	from periods.period p where p.workspace_id = @workspace and p.position <= @known`

// Periods returns the seals of a workspace, the newest first.
func (v *Views) Periods(ctx context.Context, at *readmodels.At, workspace uuid.UUID, as As) ([]Period, error) {
	return readmodels.Rows(ctx, v.Reader.From(as.reading(at), "periods"), toPeriod, periodsSQL+` order by p.position desc`,
		as.seals(workspace))
}

// Period returns the newest seal of the period that ends on a day, or [period.ErrNotFound].
func (v *Views) Period(ctx context.Context, at *readmodels.At, workspace uuid.UUID, through unit.Date, as As) (Period, error) {
	args := as.seals(workspace)
	args["through"] = int64(through)
	return readmodels.Row(ctx, v.Reader.From(as.reading(at), "periods"), period.ErrNotFound, toPeriod,
		periodsSQL+` and p.through = `+day0+` + @through::int order by p.position desc limit 1`, args)
}

func (a As) seals(workspace uuid.UUID) pgx.NamedArgs {
	known := int64(math.MaxInt64)
	if a.KnownAt != nil {
		known = int64(*a.KnownAt)
	}
	return pgx.NamedArgs{"workspace": workspace, "known": known}
}

// ClosingBalance is the closing balance of an account of any ledger.
type ClosingBalance struct {
	Ledger string   `json:"kind" enum:"bank,bullion,client,karigar,polisher" doc:"Ledger of the account"`
	ID     int64    `json:"id" doc:"ID of the account"`
	Name   string   `json:"name" doc:"Name of the account when the period was closed"`
	Rows   int64    `json:"rows" doc:"Number of rows"`
	Cash   unit.Sum `json:"cash" doc:"Balance in rupees"`
	Fine   unit.Sum `json:"crystal" doc:"Balance in fine grams"`
}

// closings returns the SQL of the workspace's [ClosingBalance] at the end of @day.
func (a As) closings(workspace uuid.UUID, day unit.Date) (string, pgx.NamedArgs) {
	s := a.sources()
	return `select a.ledger, a.id, ` + s.name + ` as name, b.row_count::bigint, b.cash::text, b.fine::text
		from books.account a, lateral (` + s.before(`(@day::bigint + 1)`) + `) b
		where a.workspace_id = @workspace and ` + s.account, pgx.NamedArgs{"known": a.known(), "workspace": workspace, "day": int64(day)}
}

// ClosingBalances lists a page of the closing balances of all accounts, by id.
func (v *Views) ClosingBalances(ctx context.Context, at *readmodels.At, workspace uuid.UUID, day unit.Date, as As,
	page readmodels.Page) ([]ClosingBalance, int64, error) {
	sql, args := as.closings(workspace, day)
	return readmodels.List[ClosingBalance]{
		As: pgx.RowToStructByPos[ClosingBalance], SQL: sql, Order: `id`, Args: args,
		Count: `select count(*) from books.account a where a.workspace_id = @workspace and ` + as.sources().account,
	}.Page(ctx, v.Reader.From(as.reading(at), "books"), page)
}

// errTooLarge reports a balance with more digits than the digest allows.
var errTooLarge = fault.New(fault.Conflict, "An account has a balance of more than 18 digits, which cannot be sealed")

// Closing returns the closing balances of all accounts of a workspace, and the position at which it read them. The result includes all
// events in the log. If the tables lag too long, Closing returns [readmodels.ErrPositionTimeout].
func (v *Views) Closing(ctx context.Context, workspace uuid.UUID, day unit.Date) ([]closing.Balance, event.Position, error) {
	return readmodels.CompleteAsOf(func(at *readmodels.At) ([]closing.Balance, error) {
		sql, args := As{}.closings(workspace, day)
		return readmodels.Rows(ctx, v.Reader.From(at, "books"), func(row pgx.CollectableRow) (b closing.Balance, err error) {
			c, err := pgx.RowToStructByPos[ClosingBalance](row)
			cash, fine := c.Cash.Shift(unit.MoneyPlaces).BigInt(), c.Fine.Shift(unit.GramsPlaces).BigInt()
			if err == nil && (!cash.IsInt64() || !fine.IsInt64()) {
				err = errTooLarge
			}
			return closing.Balance{Ledger: c.Ledger, Account: c.ID, Rows: c.Rows, Cash: unit.Money(cash.Int64()),
				Fine: unit.Grams(fine.Int64())}, err
		}, sql, args)
	})
}

// WaitingDrafts returns at most limit unconverted order drafts of a workspace dated on or before a day. A draft without
// a date is included if it was created before end.
func (v *Views) WaitingDrafts(ctx context.Context, workspace uuid.UUID, through unit.Date, end time.Time, limit int) ([]int64, error) {
	return readmodels.Complete(func(at *readmodels.At) ([]int64, error) {
		return readmodels.Rows(ctx, v.Reader.From(at, "order_drafts"), pgx.RowTo[int64], `
			select d.id from order_drafts.order_draft d
			where d.workspace_id = $1 and case when d.date is null then d.created_at < $3 else d.date <= $2 end
			order by d.id limit $4`, workspace, through.String(), end, int64(limit))
	})
}

// WaitingKhatas returns the uploads of a workspace that were not submitted, did not fail and were not removed.
func (v *Views) WaitingKhatas(ctx context.Context, workspace uuid.UUID) ([]khata.Waiting, error) {
	return readmodels.Complete(func(at *readmodels.At) ([]khata.Waiting, error) {
		return readmodels.Rows(ctx, v.Reader.From(at, "khatas"), pgx.RowToStructByPos[khata.Waiting], `
			select k.id, k.blob, k.status = 'done', k.created_at from khatas.khata k
			where k.workspace_id = $1 and k.unsubmitted and not k.removed order by k.id`, workspace)
	})
}
