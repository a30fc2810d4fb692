package ledgerview

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/ledger/book"
	"bahi/domain/unit"
	"bahi/readmodels"
)

// Summed has the balances of a ledger's accounts and the turnover of one day. It sums positive and negative balances separately, both as
// positive numbers.
type Summed struct {
	Ledger   string
	Accounts int64

	CashAbove, CashBelow unit.Sum
	FineAbove, FineBelow unit.Sum

	Rows int64 // number of rows on the day
	Turnover
}

// Turnover has the sums of each side of rows.
type Turnover struct {
	CashIn, CashOut unit.Sum
	FineIn, FineOut unit.Sum
}

// Plus returns the sum.
func (m Turnover) Plus(o Turnover) Turnover {
	return Turnover{add(m.CashIn, o.CashIn), add(m.CashOut, o.CashOut), add(m.FineIn, o.FineIn), add(m.FineOut, o.FineOut)}
}

func add(a, b unit.Sum) unit.Sum { return unit.Sum{Decimal: a.Add(b.Decimal)} }

// turnoverColumns is the SQL of sums that [Turnover] scans.
const turnoverColumns = `coalesce(sum(d.in_cash), 0)::text, coalesce(sum(d.out_cash), 0)::text, coalesce(sum(d.in_fine), 0)::text, ` +
	`coalesce(sum(d.out_fine), 0)::text`

// Summary has the sums of a workspace's ledgers, and the newest rows of a day.
type Summary struct {
	Ledgers []Summed
	Newest  []Entered
}

// Summary returns the ledgers in which the workspace has accounts, with the turnover of a day and its newest rows,
// newest first. It reads all of them at one position.
func (v *Views) Summary(ctx context.Context, at *readmodels.At, workspace uuid.UUID, day unit.Date, newest int, as As) (s Summary,
	err error) {
	sql, args := as.summary(workspace, day)
	seen := as.reading(at).After(0)
	s.Ledgers, err = readmodels.Rows(ctx, v.Reader.From(seen, "books"), toSummed, sql, args)
	if err != nil {
		return s, err
	}
	var rows int64 // of the day
	for _, l := range s.Ledgers {
		rows += l.Rows
	}
	if newest = int(min(rows, int64(newest))); newest == 0 {
		return s, nil
	}
	if as.KnownAt == nil { // fixes the position of the following reads
		position, _ := seen.Position()
		as.KnownAt = &position
	}
	s.Newest, err = v.newest(ctx, at, workspace, day, newest, as)
	return s, err
}

// newest returns the newest rows of a day, which has at least size rows. If they are not among the last rows of all books, it looks into
// each account of the workspace. It reads no further rows of any account.
func (v *Views) newest(ctx context.Context, at *readmodels.At, workspace uuid.UUID, day unit.Date, size int, as As) ([]Entered, error) {
	s := as.sources()
	args := pgx.NamedArgs{"known": as.known(), "workspace": workspace, "today": int64(day), "size": int64(size)}
	ofDay := `not v.deleted and ` + s.current + ` and v.date = ` + day0 + ` + @today::int`
	ofWorkspace := `a.workspace_id = @workspace and ` + s.account + ` order by v.row_id desc limit @size::bigint`
	last := enteredSQL(s) + `
		from (select * from books.row_version order by row_id desc limit 1000) v join books.account a on a.id = v.account_id
		where ` + ofDay + ` and ` + ofWorkspace
	rows, err := readmodels.Rows(ctx, v.Reader.From(as.reading(at), "books"), toEntered, last, args)
	if err != nil || len(rows) == size {
		return rows, err
	}
	all := enteredSQL(s) + `
		from (
			select v.row_id, v.from_position from books.account a cross join lateral (
				select v.row_id, v.from_position from books.row_version v
				where v.account_id = a.id and ` + ofDay + ` order by v.row_id desc limit @size::bigint
			) v
			where ` + ofWorkspace + `
		) n join books.row_version v on v.row_id = n.row_id and v.from_position = n.from_position join books.account a on a.id = v.account_id
		order by v.row_id desc`
	return readmodels.Rows(ctx, v.Reader.From(as.reading(at), "books"), toEntered, all, args)
}

func toSummed(row pgx.CollectableRow) (o Summed, err error) {
	err = row.Scan(&o.Ledger, &o.Accounts, &o.CashAbove, &o.CashBelow, &o.FineAbove, &o.FineBelow, &o.Rows, &o.CashIn, &o.CashOut,
		&o.FineIn, &o.FineOut)
	return o, err
}

// whole reports whether a view selects the current state of all rows. Only that state has totals of ledgers.
func (a As) whole() bool { return a.KnownAt == nil && a.Of == nil }

func (a As) summary(workspace uuid.UUID, day unit.Date) (string, pgx.NamedArgs) {
	s := a.sources()
	values := pgx.NamedArgs{"known": a.known(), "workspace": workspace, "today": int64(day)}
	if a.whole() {
		return `
			select t.ledger, t.accounts, t.cash_above::text, t.cash_below::text, t.fine_above::text, t.fine_below::text,
				coalesce(d.row_count, 0), coalesce(d.in_cash, 0)::text, coalesce(d.out_cash, 0)::text, coalesce(d.in_fine, 0)::text,
					coalesce(d.out_fine, 0)::text
			from books.ledger_total t
			left join books.ledger_day d on d.workspace_id = t.workspace_id and d.ledger = t.ledger and d.date = ` + day0 + ` + @today::int
			where t.workspace_id = @workspace`, values
	}
	return `
		select a.ledger, count(*),
			coalesce(sum(b.cash) filter (where b.cash > 0), 0)::text, coalesce(-sum(b.cash) filter (where b.cash < 0), 0)::text,
			coalesce(sum(b.fine) filter (where b.fine > 0), 0)::text, coalesce(-sum(b.fine) filter (where b.fine < 0), 0)::text,
			coalesce(sum(d.row_count), 0)::bigint, ` + turnoverColumns + `
		from books.account a left join lateral (` + a.amounts(values) + `) b on true left join lateral (
			select count(*) as row_count, sum(v.in_cash) as in_cash, sum(v.out_cash) as out_cash, sum(v.in_fine) as in_fine, sum(v.out_fine) as ` +
		`out_fine
			from books.row_version v
			where v.account_id = a.id and not v.deleted and v.date = ` + day0 + ` + @today::int and ` + s.current + `
		) d on true
		where a.workspace_id = @workspace and ` + s.account + `
		group by a.ledger`, values
}

// Entered is a row with its account and its effect.
type Entered struct {
	Row
	Turnover

	Ledger string
	Name   string // of the account
}

// CashBefore returns the cash of all accounts of a ledger before a day.
func (v *Views) CashBefore(ctx context.Context, at *readmodels.At, workspace uuid.UUID, l *book.Ledger, day unit.Date, as As) (unit.Sum,
	error) {
	s := as.sources()
	text := `select coalesce(sum(b.cash), 0)::text from books.account a, lateral (` + s.before(`@day::bigint`) + `) b
		where a.workspace_id = @workspace and a.ledger = @ledger and ` + s.account
	if as.whole() {
		text = `select coalesce(sum(d.in_cash - d.out_cash), 0)::text from books.ledger_day d
			where d.workspace_id = @workspace and d.ledger = @ledger and d.date < ` + day0 + ` + @day::int`
	}
	sql, args := text, pgx.NamedArgs{"known": as.known(), "workspace": workspace, "ledger": l.Name, "day": int64(day)}
	return readmodels.Row(ctx, v.Reader.From(as.reading(at), "books"), nil, pgx.RowTo[unit.Sum], sql, args)
}

// enteredSQL selects rows v of accounts a for [toEntered].
func enteredSQL(s sources) string {
	return ` select a.ledger, a.id, ` + s.name + `, v.row_id, v.revision,
		v.in_cash::text, v.out_cash::text, v.in_fine::text, v.out_fine::text, ` + RowColumns("v")
}

func toEntered(row pgx.CollectableRow) (o Entered, err error) {
	var (
		s       RowScan
		account int64
	)
	into := []any{&o.Ledger, &account, &o.Name, &o.ID, &o.Revision, &o.CashIn, &o.CashOut, &o.FineIn, &o.FineOut}
	err = row.Scan(append(into, s.Into()...)...)
	o.Row.Row = s.Row(account)
	return o, err
}

// RowOfAny returns a row of any ledger of the workspace with its account, or [book.ErrNoRow].
func (v *Views) RowOfAny(ctx context.Context, at *readmodels.At, workspace uuid.UUID, row int64) (Entered, error) {
	return readmodels.Row(ctx, v.Reader.From(at, "books"), book.ErrNoRow, toEntered, enteredSQL(now)+`
		from books.row_version v join books.account a on a.id = v.account_id
		where v.row_id = $2 and a.workspace_id = $1 and `+now.account+` and not v.deleted and `+now.current, workspace, row)
}

// EachEntered calls take for each row of the workspace's ledgers in the selection, by date and id.
func (v *Views) EachEntered(ctx context.Context, at *readmodels.At, workspace uuid.UUID, sel Selection, take func(Entered) error) error {
	s := sel.sources()
	low, high := sel.days()
	sql, args := enteredSQL(s)+`
		from books.account a join books.row_version v on v.account_id = a.id
		where a.workspace_id = @workspace and `+s.account+` and not v.deleted and `+s.current+`
			and v.date between `+day0+` + @low::int and `+day0+` + @high::int
		order by v.date, v.row_id`,
		pgx.NamedArgs{"known": sel.known(), "workspace": workspace, "low": low, "high": high}
	return readmodels.Each(ctx, v.Reader.From(sel.reading(at), "books"), toEntered, take, sql, args)
}
