package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/domain/unit"
	"bahi/readmodels"
)

// Version is a row as it was from one position of the log on.
type Version struct {
	Position event.Position
	At       time.Time
	Actor    string
	Reason   string
	Deleted  bool
	Date     unit.Date
	In       json.RawMessage
	Out      json.RawMessage
	Revision int64
	Links
}

// Change says in a word what was done to a row since the version before; nil: there is none.
func (v Version) Change(before *Version) string {
	switch {
	case v.Deleted:
		return "deleted"
	case before == nil:
		return "added"
	case v.Void && !before.Void:
		return "voided"
	case v.ReversedBy != nil && before.ReversedBy == nil:
		return "reversed"
	default:
		return "edited"
	}
}

// rowOf narrows a view to a row of a workspace's account that stands.
const rowOf = `
	from books.account a join books.row_version v on v.account_id = a.id
	where a.workspace_id = $workspace and a.ledger = $ledger and a.id = $account and v.row_id = $row and `

// Row reads one row with the balances after it, or answers missing.
func (v *Views) Row(ctx context.Context, workspace uuid.UUID, ledger string, account, row int64, as As, missing error) (Row, error) {
	rows, err := v.RowsFrom(ctx, workspace, ledger, account, row, 1, as)
	switch {
	case err != nil:
		return Row{}, err
	case len(rows) == 0:
		return Row{}, missing
	default:
		return rows[0], nil
	}
}

// RowsFrom reads those of count rows whose ids follow one another that are there, by id, each with the
// balances after it.
func (v *Views) RowsFrom(ctx context.Context, workspace uuid.UUID, ledger string, account, first, count int64, as As) ([]Row, error) {
	s := as.sources()
	values := map[string]any{
		"known": as.known(), "workspace": workspace, "ledger": ledger, "account": account, "row": first, "last": last(first, count),
	}
	dated := ``
	if as.Of != nil {
		dated, values["day"] = ` and v.date <= `+day0+` + $day::int`, int64(*as.Of)
	}
	// The rows come first, by their ids: joined to the account, Postgres would read all of its index.
	sql, args := bind(`
		with v as materialized (
			select * from books.row_version v
			where v.row_id between $row and $last and v.account_id + 0 = $account and not v.deleted and `+s.current+dated+`
		)
		select v.row_id, v.date, v.in_entries, v.out_entries, b.cash::text, b.fine::text, `+s.rowRevision+`, v.void, v.reverses, v.reversed_by
		from v join books.account a on a.id = v.account_id, lateral (`+s.upTo(`(v.date - `+day0+`)::bigint`, `v.row_id`)+`) b
		where a.workspace_id = $workspace and a.ledger = $ledger and `+s.account+` order by v.row_id`, values)
	return readmodels.Rows(as.reading(ctx), v.Reader, toRow, sql, args...)
}

// last is the last of count numbers from first on.
func last(first, count int64) int64 {
	if first > math.MaxInt64-count+1 {
		return math.MaxInt64
	}
	return first + count - 1
}

func toRow(row pgx.CollectableRow) (r Row, err error) {
	var (
		date    time.Time
		in, out string
	)
	err = row.Scan(&r.ID, &date, &in, &out, &r.Cash, &r.Fine, &r.Revision, &r.Void, &r.Reverses, &r.ReversedBy)
	r.Date, r.In, r.Out = unit.DateOf(date), json.RawMessage(in), json.RawMessage(out)
	return r, err
}

// upTo returns the SQL of what account a amounts to up to a row of a day, the row included.
func (s sources) upTo(day, row string) string {
	parts, first := ``, `0`
	if s == now { // a crowded day is not read from its beginning
		start := func(level int) string { // of the part that the row is in
			return fmt.Sprintf(`coalesce((select max(t.node) from books.total t where t.account_id = a.id and t.level = %d
				and t.node between (%s) << 40 and ((%s) << 40) + (%s)), (%s) << 40)`, level, day, day, row, day)
		}
		parts = ` union all ` + s.nodes(3, `t.node >= (`+day+`) << 40 and t.node < `+start(3)) +
			` union all ` + s.nodes(4, `t.node >= `+start(3)+` and t.node < `+start(4))
		first = start(4) + ` & 1099511627775`
	}
	return `select coalesce(sum(n.cash), 0) as cash, coalesce(sum(n.fine), 0) as fine from (
		select node, row_count, cash, fine from (select 0::bigint as node, b.* from (` + s.before(day) + `) b) b` + parts + `
		union all
		select 0, 1, d.in_cash - d.out_cash, d.in_fine - d.out_fine from books.row_version d
		where d.account_id = a.id and not d.deleted and ` + strings.ReplaceAll(s.current, "v.", "d.") + `
			and d.date = ` + day0 + ` + (` + day + `)::int and d.row_id <= (` + row + `) and d.row_id >= ` + first + `) n`
}

// BalanceAt answers what an account amounts to up to a place among its rows, whether or not a row
// stands there, or missing.
func (v *Views) BalanceAt(ctx context.Context, workspace uuid.UUID, ledger string, account int64, date unit.Date, row int64, missing error) (cash, fine unit.Sum, err error) {
	found, err := v.balancesAt(ctx, workspace, ledger, account, []unit.Date{date}, row)
	if err == nil && len(found) == 0 {
		err = missing
	}
	if err != nil {
		return cash, fine, err
	}
	return found[0].Cash, found[0].Fine, nil
}

// lastRow is behind every row of a day.
const lastRow = 1<<40 - 1

// BalancesOn answers what an account amounts to in cash at the end of each of these days, or missing.
func (v *Views) BalancesOn(ctx context.Context, workspace uuid.UUID, ledger string, account int64, dates []unit.Date, missing error) (map[unit.Date]unit.Sum, error) {
	found, err := v.balancesAt(ctx, workspace, ledger, account, dates, lastRow)
	if err == nil && len(found) == 0 {
		err = missing
	}
	balances := make(map[unit.Date]unit.Sum, len(found))
	for _, f := range found {
		balances[unit.Date(f.Day)] = f.Cash
	}
	return balances, err
}

type balanceAt struct {
	Day  int32
	Cash unit.Sum
	Fine unit.Sum
}

func (v *Views) balancesAt(ctx context.Context, workspace uuid.UUID, ledger string, account int64, dates []unit.Date, row int64) ([]balanceAt, error) {
	days := make([]int32, len(dates))
	for i, d := range dates {
		days[i] = int32(d)
	}
	sql, args := bind(`
		select asked.day, b.cash, b.fine from books.account a, unnest($days::int[]) asked (day), lateral (`+now.upTo(`asked.day::bigint`, `$row::bigint`)+`) b
		where a.workspace_id = $workspace and a.ledger = $ledger and a.id = $account and `+now.account,
		map[string]any{"workspace": workspace, "ledger": ledger, "account": account, "row": row, "days": days})
	return readmodels.Rows(ctx, v.Reader, pgx.RowToStructByPos[balanceAt], sql, args...)
}

// BalanceBefore answers what an account amounted to before a day, or missing.
func (v *Views) BalanceBefore(ctx context.Context, workspace uuid.UUID, ledger string, account int64, date unit.Date, as As, missing error) (cash, fine unit.Sum, err error) {
	day := date - 1
	if as.Of != nil {
		day = min(day, *as.Of)
	}
	as.Of = &day
	a, err := v.Account(ctx, workspace, ledger, account, as, missing)
	return a.Cash, a.Fine, err
}

// History lists all versions of a row, oldest first, also of a deleted one, or answers missing.
func (v *Views) History(ctx context.Context, workspace uuid.UUID, ledger string, account, row int64, missing error) ([]Version, error) {
	sql, args := bind(`
		select v.from_position, v.recorded_at, v.actor, coalesce(v.reason, ''), v.deleted, v.date, v.in_entries, v.out_entries, v.first_revision, v.void, v.reverses, v.reversed_by
		`+rowOf+now.account+` order by v.from_position`,
		map[string]any{"workspace": workspace, "ledger": ledger, "account": account, "row": row})
	versions, err := readmodels.Rows(ctx, v.Reader, func(row pgx.CollectableRow) (o Version, err error) {
		var (
			position int64
			date     time.Time
			in, out  string
		)
		err = row.Scan(&position, &o.At, &o.Actor, &o.Reason, &o.Deleted, &date, &in, &out, &o.Revision, &o.Void, &o.Reverses, &o.ReversedBy)
		o.Position, o.At, o.Date = event.Position(position), o.At.UTC(), unit.DateOf(date)
		o.In, o.Out = json.RawMessage(in), json.RawMessage(out)
		return o, err
	}, sql, args...)
	if err == nil && len(versions) == 0 {
		err = missing
	}
	return versions, err
}

// Lock is where the lock of a workspace's books stands.
type Lock struct {
	LockedThrough *unit.Date `json:"locked_through"`
}

// Lock reads where the lock stands.
func (v *Views) Lock(ctx context.Context, workspace uuid.UUID) (Lock, int64, error) {
	type line struct {
		Through  *time.Time
		Revision int64
	}
	errNever := errors.New("never locked")
	l, err := readmodels.Row(ctx, v.Reader, errNever, pgx.RowToStructByPos[line],
		`select locked_through, revision from books.books_lock where workspace_id = $1`, workspace)
	switch {
	case errors.Is(err, errNever):
		return Lock{}, -1, nil
	case err != nil || l.Through == nil:
		return Lock{}, l.Revision, err
	default:
		d := unit.DateOf(*l.Through)
		return Lock{LockedThrough: &d}, l.Revision, nil
	}
}

// EarliestRow is the date of an account's oldest row, nil when it has none, and the position as of which
// that is so. It is complete, or answers [readmodels.ErrNotYet], and so are the two below: commands are decided on them.
func (v *Views) EarliestRow(ctx context.Context, workspace uuid.UUID, account int64) (*unit.Date, event.Position, error) {
	errNone := errors.New("no rows")
	date, at, err := readmodels.CompleteAsOf(ctx, func(ctx context.Context) (time.Time, error) {
		return readmodels.Row(ctx, v.Reader, errNone, pgx.RowTo[time.Time], `
			select v.date from books.account a join books.row_version v on v.account_id = a.id
			where a.id = $1 and a.workspace_id = $2 and not v.deleted and v.to_position = 9223372036854775807
			order by v.date limit 1`, account, workspace)
	})
	if errors.Is(err, errNone) {
		return nil, at, nil
	}
	d := unit.DateOf(date)
	return &d, at, err
}

// BulkOf is the id of the bulk that a row was posted in, 0 when there is none.
func (v *Views) BulkOf(ctx context.Context, workspace uuid.UUID, row int64) (int64, error) {
	errNone := errors.New("no bulk")
	bulk, err := readmodels.Complete(ctx, func(ctx context.Context) (int64, error) {
		return readmodels.Row(ctx, v.Reader, errNone, pgx.RowTo[int64], `
			select v.bulk from books.row_version v join books.account a on a.id = v.account_id
			where v.row_id = $1 and a.workspace_id = $2 and v.bulk is not null limit 1`, row, workspace)
	})
	if errors.Is(err, errNone) {
		return 0, nil
	}
	return bulk, err
}

// UnfinishedBulks are those of a ledger, of all workspaces, whose rows' own streams are not all filled.
func (v *Views) UnfinishedBulks(ctx context.Context, ledger string) ([]int64, error) {
	return readmodels.Complete(ctx, func(ctx context.Context) ([]int64, error) {
		return readmodels.Rows(ctx, v.Reader, pgx.RowTo[int64],
			`select id from books.bulk where ledger = $1 and filled < follow_ups order by id`, ledger)
	})
}
