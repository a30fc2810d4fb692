package ledgerview

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/domain/ledger/book"
	"bahi/domain/unit"
	"bahi/readmodels"
)

// Version is a row between two consecutive changes.
type Version struct {
	book.Row

	Position event.Position
	At       time.Time
	Actor    string
	Reason   string
	Revision int64
}

// Change returns the name of the change since the previous version; nil: this version is the first.
func (v Version) Change(before *Version) string {
	if before == nil {
		return book.Change(book.Row{}, v.Row)
	}
	return book.Change(before.Row, v.Row)
}

// RowColumns returns the SQL of the columns of a row's version that [RowScan] reads.
func RowColumns(version string) string {
	const columns = `.date, .in_entries, .out_entries, .warnings, .deleted, .void, .reverses, .reversed_by, .paired_with`
	return strings.ReplaceAll(columns, ".", version+".")
}

// RowScan receives a row's columns, which are all null without a row.
type RowScan struct {
	date              *time.Time
	in, out, warnings *string
	deleted, void     *bool

	reverses, reversedBy, pairedWith *int64
}

// Into returns the destinations of the columns of [RowColumns].
func (s *RowScan) Into() []any {
	return []any{&s.date, &s.in, &s.out, &s.warnings, &s.deleted, &s.void, &s.reverses, &s.reversedBy, &s.pairedWith}
}

// Row returns the row of an account without the effects of the sides, or the zero Row.
func (s *RowScan) Row(account int64) (r book.Row) {
	if s.date == nil {
		return r
	}
	r = book.Row{
		Account: account, Date: unit.DateOf(*s.date), Deleted: *s.deleted, Void: *s.void,
		In: book.StoredSide(*s.in, book.Effect{}), Out: book.StoredSide(*s.out, book.Effect{}),
	}
	if s.warnings != nil {
		r.Warnings = book.Warnings(*s.warnings)
	}
	if s.reverses != nil {
		r.Reverses = *s.reverses
	}
	if s.reversedBy != nil {
		r.ReversedBy = *s.reversedBy
	}
	if s.pairedWith != nil {
		r.PairedWith = *s.pairedWith
	}
	return r
}

// rowOf selects a row of an account of a workspace. A condition on the account follows it.
const rowOf = `
	from books.account a join books.row_version v on v.account_id = a.id
	where a.workspace_id = @workspace and a.ledger = @ledger and a.id = @account and v.row_id = @row and `

// Row returns one row with the balances after it, or the ledger's NoRow.
func (v *Views) Row(ctx context.Context, at *readmodels.At, of AccountKey, row int64, as As) (Row, error) {
	rows, err := v.RowsFrom(ctx, at, of, row, 1, as)
	if err == nil && len(rows) == 0 {
		err = of.Ledger.NoRow
	}
	if err != nil {
		return Row{}, err
	}
	return rows[0], nil
}

// RowsFrom returns the existing rows among count consecutive ids, by id, each with the balances after it.
func (v *Views) RowsFrom(ctx context.Context, at *readmodels.At, of AccountKey, first, count int64, as As) ([]Row, error) {
	s := as.sources()
	args := pgx.NamedArgs{
		"known": as.known(), "workspace": of.Workspace, "ledger": of.Ledger.Name, "account": of.ID, "row": first, "last": last(first, count),
	}
	dated := ``
	if as.Of != nil {
		dated, args["day"] = ` and v.date <= `+day0+` + @day::int`, int64(*as.Of)
	}
	// The query finds rows by id first: if it began with the account, Postgres would read the account's whole index.
	sql := `
		with v as materialized (
			select * from books.row_version v
			where v.row_id between @row and @last and v.account_id + 0 = @account and not v.deleted and ` + s.current + dated + `
		)
		select v.row_id, b.cash::text, b.fine::text, v.revision, ` + RowColumns("v") + `
		from v join books.account a on a.id = v.account_id, lateral (` + s.upTo(`(v.date - `+day0+`)::bigint`, `v.row_id`) + `) b
		where a.workspace_id = @workspace and a.ledger = @ledger and ` + s.account + ` order by v.row_id`
	return readmodels.Rows(ctx, v.Reader.From(as.reading(at), "books"), func(row pgx.CollectableRow) (r Row, err error) {
		var s RowScan
		err = row.Scan(append([]any{&r.ID, &r.Cash, &r.Fine, &r.Revision}, s.Into()...)...)
		r.Row = s.Row(of.ID)
		return r, err
	}, sql, args)
}

// last returns the last of count consecutive numbers from first on.
func last(first, count int64) int64 {
	if first > math.MaxInt64-count+1 {
		return math.MaxInt64
	}
	return first + count - 1
}

// upTo returns the SQL of account a's balance up to and including a row of a day.
func (s sources) upTo(day, row string) string {
	parts, first := ``, `0`
	if s.current == now.current { // skip the beginning of a crowded day
		start := func(level int) string { // of the part with the row
			return fmt.Sprintf(`coalesce((select max(t.node) from books.total t where t.account_id = a.id and t.level = %d
				and t.node between (%s) << 40 and ((%s) << 40) + (%s)), (%s) << 40)`, level, day, day, row, day)
		}
		parts = ` union all ` + s.nodes(3, `t.node >= (`+day+`) << 40 and t.node < `+start(3)) +
			` union all ` + s.nodes(4, `t.node >= `+start(3)+` and t.node < `+start(4))
		first = start(4) + ` & 1099511627775`
	}
	return `select coalesce(sum(n.cash), 0) as cash, coalesce(sum(n.fine), 0) as fine from (
		select node, row_count, cash, fine, loss from (select 0::bigint as node, b.* from (` + s.before(day) + `) b) b` + parts + `
		union all
		select 0, 1, d.in_cash - d.out_cash, d.in_fine - d.out_fine, 0 from books.row_version d
		where d.account_id = a.id and not d.deleted and ` + strings.ReplaceAll(s.current, "v.", "d.") + `
			and d.date = ` + day0 + ` + (` + day + `)::int and d.row_id <= (` + row + `) and d.row_id >= ` + first + `) n`
}

// Balance is the balance of an account.
type Balance struct {
	Cash unit.Sum
	Fine unit.Sum
}

// Plus adds a row's effect.
func (b Balance) Plus(e book.Effect) Balance {
	return Balance{unit.Sum{Decimal: b.Cash.Add(e.Cash.Decimal())}, unit.Sum{Decimal: b.Fine.Add(e.Fine.Decimal())}}
}

// LastRow is greater than all row ids.
const LastRow = 1<<40 - 1

// BalancesAt returns, for each date, an account's balance after all earlier rows and the rows of that date with ids up to row. No row needs
// to have the date or the id. For an unknown account it returns the ledger's NoAccount.
func (v *Views) BalancesAt(ctx context.Context, at *readmodels.At, of AccountKey, row int64, dates ...unit.Date) (map[unit.Date]Balance,
	error) {
	days := make([]int32, len(dates))
	for i, d := range dates {
		days[i] = int32(d)
	}
	sql, args := `
		select asked.day, b.cash, b.fine from books.account a, unnest(@days::int[]) asked (day), lateral (`+now.upTo(`asked.day::bigint`,
		`@row::bigint`)+`) b
		where a.workspace_id = @workspace and a.ledger = @ledger and a.id = @account and `+now.account,
		pgx.NamedArgs{"workspace": of.Workspace, "ledger": of.Ledger.Name, "account": of.ID, "row": row, "days": days}
	type line struct {
		Day int32
		Balance
	}
	found, err := readmodels.Rows(ctx, v.Reader.From(at, "books"), pgx.RowToStructByPos[line], sql, args)
	if err == nil && len(found) == 0 {
		err = of.Ledger.NoAccount
	}
	balances := make(map[unit.Date]Balance, len(found))
	for _, f := range found {
		balances[unit.Date(f.Day)] = f.Balance
	}
	return balances, err
}

// BalanceBefore returns an account's balance before a day, or the ledger's NoAccount.
func (v *Views) BalanceBefore(ctx context.Context, at *readmodels.At, of AccountKey, date unit.Date, as As) (Balance, error) {
	day := date - 1
	if as.Of != nil {
		day = min(day, *as.Of)
	}
	as.Of = &day
	a, err := v.Account(ctx, at, of, as)
	return a.Balance, err
}

// Sides are the sums of an account's IN sides and OUT sides.
type Sides struct {
	In, Out Balance
}

// SidesBefore returns the sums of an account's sides before a day as known at a position, or the ledger's NoAccount.
func (v *Views) SidesBefore(ctx context.Context, at *readmodels.At, of AccountKey, day unit.Date, known event.Position) (Sides, error) {
	sql, args := `
		select coalesce(sum(s.in_cash), 0)::text, coalesce(sum(s.in_fine), 0)::text, coalesce(sum(s.out_cash), 0)::text,
			coalesce(sum(s.out_fine), 0)::text
		from books.account a left join lateral (
			select p.in_cash, p.in_fine, p.in_cash - p.cash as out_cash, p.in_fine - p.fine as out_fine
			from books.total t cross join lateral (
				select p.period_cash as cash, p.period_fine as fine, p.period_in_cash as in_cash, p.period_in_fine as in_fine
				from books.balance_history p where p.account_id = a.id and p.period = t.node and p.position <= @known
				order by p.position desc, p.ordinal desc limit 1) p
			where t.account_id = a.id and t.level = 1 and t.node < @day::bigint >> 6
			union all
			select v.in_cash, v.in_fine, v.out_cash, v.out_fine from books.row_version v
			where v.account_id = a.id and not v.deleted and v.date >= `+day0+` + ((@day::bigint >> 6) << 6)::int
				and v.date < `+day0+` + @day::int and `+then.current+`
		) s on true
		where a.workspace_id = @workspace and a.ledger = @ledger and a.id = @account and `+then.account+` group by a.id`,
		pgx.NamedArgs{"known": int64(known), "workspace": of.Workspace, "ledger": of.Ledger.Name, "account": of.ID, "day": int64(day)}
	at = at.AsKnownAt(known)
	return readmodels.Row(ctx, v.Reader.From(at, "books"), of.Ledger.NoAccount, func(row pgx.CollectableRow) (s Sides, err error) {
		err = row.Scan(&s.In.Cash, &s.In.Fine, &s.Out.Cash, &s.Out.Fine)
		return s, err
	}, sql, args)
}

// History returns all versions of a row, oldest first, even of a deleted row, or the ledger's NoRow.
func (v *Views) History(ctx context.Context, at *readmodels.At, of AccountKey, row int64) ([]Version, error) {
	sql, args := `
		select v.from_position, v.recorded_at, v.actor, coalesce(v.reason, ''), v.revision, `+RowColumns("v")+rowOf+now.account+
		` order by v.from_position`,
		pgx.NamedArgs{"workspace": of.Workspace, "ledger": of.Ledger.Name, "account": of.ID, "row": row}
	versions, err := readmodels.Rows(ctx, v.Reader.From(at, "books"), func(row pgx.CollectableRow) (o Version, err error) {
		var (
			s        RowScan
			position int64
		)
		err = row.Scan(append([]any{&position, &o.At, &o.Actor, &o.Reason, &o.Revision}, s.Into()...)...)
		o.Row, o.Position, o.At = s.Row(of.ID), event.Position(position), o.At.UTC()
		return o, err
	}, sql, args)
	if err == nil && len(versions) == 0 {
		err = of.Ledger.NoRow
	}
	return versions, err
}

// Lock is the lock of a workspace's books.
type Lock struct {
	LockedThrough *unit.Date `json:"locked_through" doc:"Last locked date; null: none"`
}

// Lock returns the lock of a workspace's books and the revision of its stream, -1 before the first lock.
func (v *Views) Lock(ctx context.Context, at *readmodels.At, workspace uuid.UUID) (Lock, int64, error) {
	type line struct {
		Through  *time.Time
		Revision int64
	}
	errNever := errors.New("never locked")
	l, err := readmodels.Row(ctx, v.Reader.From(at, "books"), errNever, pgx.RowToStructByPos[line],
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

// EarliestRow returns the date of an account's oldest row, nil without rows. The result includes all events in the log, because commands
// decide on it. If the tables lag too long, EarliestRow returns [readmodels.ErrPositionTimeout].
func (v *Views) EarliestRow(ctx context.Context, workspace uuid.UUID, account int64) (*unit.Date, error) {
	errNone := errors.New("no rows")
	date, err := readmodels.Complete(func(at *readmodels.At) (time.Time, error) {
		return readmodels.Row(ctx, v.Reader.From(at, "books"), errNone, pgx.RowTo[time.Time], `
			select v.date from books.account a join books.row_version v on v.account_id = a.id
			where a.id = $1 and a.workspace_id = $2 and not v.deleted and v.to_position = 9223372036854775807
			order by v.date limit 1`, account, workspace)
	})
	if errors.Is(err, errNone) {
		return nil, nil
	}
	return new(unit.DateOf(date)), err
}
