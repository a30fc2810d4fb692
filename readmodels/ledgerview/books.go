// Package ledgerview reads the books: accounts, and rows with their running balances, at any date and as known at any
// position of the log.
//
// A balance is the sum of all rows up to a row, in the order of date and id. Balances are not stored with rows, because one back-dated row
// would change a million balances. The balance before a page is computed from totals of periods, days and parts of days (see
// projections/ledgerproj/books.sql), and the other balances from the page itself. A view of the past uses the totals as known at its
// position.
package ledgerview

import (
	"cmp"
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/domain/ledger/book"
	"bahi/domain/unit"
	"bahi/readmodels"
)

// Views reads the books.
type Views struct {
	Reader *readmodels.Reader
}

// As selects rows dated up to a day, and the state as known at a position of the log.
type As struct {
	Of      *unit.Date      // nil: all dates
	KnownAt *event.Position // nil: now
}

// AccountKey identifies an account of a ledger of a workspace.
type AccountKey struct {
	Workspace uuid.UUID
	Ledger    *book.Ledger
	ID        int64
}

// Account is an account in a list.
type Account struct {
	ID    int64
	Name  string
	Type  *int
	Metal string // "": the metal of the workspace
	Balance
	Loss     unit.Sum // part of Fine that is wastage
	Revision int64
}

// Row is a row with the balances after it.
type Row struct {
	book.Row
	Balance

	ID       int64
	Revision int64
}

// Selection selects a page of the rows of an account that are dated from First through Last.
type Selection struct {
	As

	From, To *unit.Date
	Page     int // from 1
	PageSize int // 0: all rows
}

// days returns the bounds of the selection as days since 1970-01-01.
func (sel Selection) days() (low, high int64) {
	low, high = -1<<30, 1<<30
	if sel.From != nil {
		low = int64(*sel.From)
	}
	for _, d := range []*unit.Date{sel.To, sel.Of} {
		if d != nil {
			high = min(high, int64(*d))
		}
	}
	return low, high
}

const day0 = `date '1970-01-01'`

// sources are the SQL fragments of a view's sums: the current totals, or those as known at position @known.
type sources struct {
	account  string // conditions on table account a
	name     string // the account's name
	folded   string // the name in the form for searches
	kind     string // the account's type
	metal    string // the account's metal, null for the metal of the workspace
	revision string // revision of the account's stream
	whole    string // totals of account a
	current  string // conditions on table row_version v

	// nodes returns the SQL that reads totals of account a at a level: row_count, cash and fine. The condition on t.node selects the totals.
	nodes func(level int, condition string) string
}

var now = sources{
	account:  `a.deleted_position = 9223372036854775807`,
	name:     `a.name`,
	folded:   `a.name_folded`,
	kind:     `a.type`,
	metal:    `a.metal`,
	revision: `a.revision`,
	whole:    `select t.row_count, t.cash, t.fine, t.loss from books.total t where t.account_id = a.id and t.level = 0`,
	current:  `v.to_position = 9223372036854775807`,
	nodes: func(level int, condition string) string {
		return fmt.Sprintf(`select t.node, t.row_count, t.cash, t.fine, t.loss from books.total t
			where t.account_id = a.id and t.level = %d and %s`,
			level, condition)
	},
}

var then = sources{
	account:  `a.opened_position <= @known and a.deleted_position > @known`,
	name:     calledThen(`name`),
	folded:   calledThen(`name_folded`),
	kind:     calledThen(`type`),
	metal:    calledThen(`metal`),
	revision: calledThen(`revision`),
	whole: `select p.account_rows as row_count, p.account_cash as cash, p.account_fine as fine, p.account_loss as loss
		from books.balance_history p
		where p.account_id = a.id and p.position <= @known order by p.position desc, p.ordinal desc limit 1`,
	current: `v.from_position <= @known and v.to_position > @known`,
	nodes: func(level int, condition string) string {
		return fmt.Sprintf(`select t.node, q.row_count, q.cash, q.fine, q.loss from books.total t cross join lateral (
				select %[1]s_rows as row_count, %[1]s_cash as cash, %[1]s_fine as fine, %[1]s_loss as loss
				from books.balance_history q
				where q.account_id = a.id and q.%[1]s = t.node and q.position <= @known
				order by q.position desc, q.ordinal desc limit 1) q
			where t.account_id = a.id and t.level = %[2]d and %[3]s`, map[int]string{1: "period", 2: "day"}[level], level, condition)
	},
}

// calledThen returns the SQL of account a's name, or of another column of its names, as known at a position.
func calledThen(column string) string {
	return `(select n.` + column + ` from books.account_name n
		where n.account_id = a.id and n.from_position <= @known order by n.from_position desc limit 1)`
}

// before returns the SQL of account a's balance before a day. Each total as known at a position costs a search. So a view of the past
// starts at the account's total and subtracts the totals of that day and later days. Most requested days are in the last year.
func (s sources) before(day string) string {
	if s.current == then.current {
		return `select coalesce(w.row_count, 0) - f.row_count as row_count, coalesce(w.cash, 0) - f.cash as cash,
			coalesce(w.fine, 0) - f.fine as fine, coalesce(w.loss, 0) - f.loss as loss
			from (select coalesce(sum(row_count), 0) as row_count, coalesce(sum(cash), 0) as cash, coalesce(sum(fine), 0) as fine,
				coalesce(sum(loss), 0) as loss
				from (` +
			s.nodes(1, `t.node > `+day+` >> 6`) + ` union all ` +
			s.nodes(2, `t.node >= `+day+` and t.node < ((`+day+` >> 6) + 1) << 6`) + `) n) f
			left join lateral (` + s.whole + `) w on true`
	}
	return `select coalesce(sum(row_count), 0) as row_count, coalesce(sum(cash), 0) as cash, coalesce(sum(fine), 0) as fine,
		coalesce(sum(loss), 0) as loss
		from (` +
		s.nodes(1, `t.node < `+day+` >> 6`) + ` union all ` +
		s.nodes(2, `t.node >= ((`+day+` >> 6) << 6) and t.node < `+day) + `) n`
}

func (a As) sources() sources {
	if a.KnownAt != nil {
		return then
	}
	return now
}

// amounts returns the SQL of account a's balance, and adds its arguments to values.
func (a As) amounts(values pgx.NamedArgs) string {
	if a.Of == nil {
		return a.sources().whole
	}
	values["day"] = int64(*a.Of)
	return a.sources().before(`(@day::bigint + 1)`)
}

func (a As) known() any {
	if a.KnownAt == nil {
		return nil
	}
	return int64(*a.KnownAt)
}

// reading returns the requirements of a read. A view of the past requires its position.
func (a As) reading(at *readmodels.At) *readmodels.At {
	if a.KnownAt == nil {
		return at
	}
	return at.AsKnownAt(*a.KnownAt)
}

// LedgerAccounts selects accounts of a ledger.
type LedgerAccounts struct {
	Ledger *book.Ledger
	Type   *int // nil: all types
	Most   int  // maximum number of accounts; 0: all
}

// Accounts returns accounts of a workspace with their balances.
func (v *Views) Accounts(ctx context.Context, at *readmodels.At, workspace uuid.UUID, f LedgerAccounts, as As) ([]Account, error) {
	sql, args := as.accounts(workspace, f.Ledger.Name, nil, f.Type)
	args["most"] = int64(f.Most)
	return readmodels.Rows(ctx, v.Reader.From(as.reading(at), "books"), pgx.RowToStructByPos[Account],
		sql+` order by a.id limit nullif(@most::bigint, 0)`, args)
}

// Account returns one account, or the ledger's NoAccount.
func (v *Views) Account(ctx context.Context, at *readmodels.At, of AccountKey, as As) (Account, error) {
	sql, args := as.accounts(of.Workspace, of.Ledger.Name, &of.ID, nil)
	return readmodels.Row(ctx, v.Reader.From(as.reading(at), "books"), of.Ledger.NoAccount, pgx.RowToStructByPos[Account], sql, args)
}

func (a As) accounts(workspace uuid.UUID, ledger string, account *int64, kind *int) (string, pgx.NamedArgs) {
	s := a.sources()
	values := pgx.NamedArgs{"known": a.known(), "workspace": workspace, "ledger": ledger}
	sql := `select a.id, ` + s.name + ` as name, ` + s.kind + ` as type, coalesce(` + s.metal + `, '') as metal,
			coalesce(b.cash, 0)::text as cash, coalesce(b.fine, 0)::text as fine, coalesce(b.loss, 0)::text as loss, ` + s.revision + ` as revision
		from books.account a left join lateral (` + a.amounts(values) + `) b on true
		where a.workspace_id = @workspace and ` + s.account
	if ledger != "" {
		sql += ` and a.ledger = @ledger`
	}
	if account != nil {
		sql += ` and a.id = @account`
		values["account"] = *account
	}
	if kind != nil {
		sql += ` and ` + s.kind + ` = @type`
		values["type"] = *kind
	}
	return sql, values
}

// EachRow calls take for each row of a page of an account. It returns the number of rows in the whole selection, or the ledger's
// NoAccount.
func (v *Views) EachRow(ctx context.Context, at *readmodels.At, of AccountKey, sel Selection,
	take func(Row) error) (total int64, err error) {
	low, high := sel.days()
	args := pgx.NamedArgs{
		"known": sel.known(), "workspace": of.Workspace, "ledger": of.Ledger.Name, "account": of.ID, "low": low, "high": high,
		"skip": int64(sel.Page-1) * int64(sel.PageSize), "size": nil,
	}
	if sel.PageSize > 0 {
		args["size"] = int64(sel.PageSize)
	}
	var (
		last    Row
		balance Balance
		missing = of.Ledger.NoAccount
	)
	scan := func(row pgx.CollectableRow) (r Row, err error) {
		var (
			s                          RowScan
			id, revision, money, metal *int64
			cash, fine                 *unit.Sum // before the page
		)
		if err := row.Scan(append([]any{&total, &id, &cash, &fine, &money, &metal, &revision}, s.Into()...)...); err != nil || id == nil {
			return r, err // the only record of a page without rows has the total
		}
		if last.ID == 0 {
			balance = Balance{*cash, *fine}
		}
		balance = balance.Plus(book.Effect{Cash: unit.Money(*money), Fine: unit.Grams(*metal)})
		return Row{Row: s.Row(of.ID), Balance: balance, ID: *id, Revision: *revision}, nil
	}
	err = readmodels.Each(ctx, v.Reader.From(sel.reading(at), "books"), scan, func(r Row) error {
		missing = nil
		if r.ID == 0 {
			return nil
		}
		// The statement relies on the query plan for the order.
		if last.ID != 0 && cmp.Or(cmp.Compare(last.Date, r.Date), cmp.Compare(last.ID, r.ID)) > 0 {
			return fmt.Errorf("row %d of account %d was read before row %d, which is older", last.ID, of.ID, r.ID)
		}
		last = r
		return take(r)
	}, sel.pageSQL(), args)
	return total, cmp.Or(err, missing)
}

// passedRows is the maximum number of rows that a read skips. Beyond it, a search in the totals is faster.
const passedRows = 64

// searched reports whether the totals are searched for the page's first row.
func (sel Selection) searched() bool {
	return (sel.Page-1)*sel.PageSize > passedRows
}

// pageSQL returns SQL that finds the page's first row by its rank: it descends from periods to days to parts of days and sums the totals
// before the row. The first pages require no search. Each row has the balances before the page and its own effect in the smallest units,
// because a window function over the effects takes as long as reading the rows. All joins are nested loops over one row, so the rows keep
// their order without a sort. A sort, or a CTE that is read twice, takes longer than reading a page.
func (sel Selection) pageSQL() string {
	s := sel.sources()
	whole := `select coalesce((select t.row_count from (` + s.whole + `) t), 0) as row_count`
	low, high, last := `select 0 as row_count, 0::numeric as cash, 0::numeric as fine`, whole, ``
	if sel.From != nil {
		low = s.before(`@low::bigint`)
	}
	if sel.To != nil || sel.Of != nil {
		high, last = s.before(`(@high::bigint + 1)`), `and v.date <= `+day0+` + least(@high::bigint, 400000)::int`
	}
	start, first := `select a.low as rank, a.cash, a.fine`, ``
	if sel.From != nil {
		first = `and v.date >= ` + day0 + ` + @low::int`
	}
	if sel.searched() {
		start, first = s.searchSQL(sel.KnownAt == nil), `and (v.date, v.row_id) >= (`+day0+` + start.day::int, start.first_id)`
	}
	rows := `
			from books.row_version v
			where v.account_id = a.id and not v.deleted and ` + s.current + `
				` + first + ` ` + last + `
			order by v.date, v.row_id`
	return `
	select greatest(a.high - a.low, 0), page.row_id, page.cash::text, page.fine::text,
		((page.in_cash - page.out_cash) * 100)::bigint, ((page.in_fine - page.out_fine) * 1000)::bigint, page.revision,
		` + RowColumns("page") + `
	from (
		select a.id, low.row_count::bigint + @skip::bigint as rank, low.row_count::bigint as low, low.cash, low.fine,
			high.row_count::bigint as high
		from books.account a, lateral (` + low + `) low, lateral (` + high + `) high
		where a.id = @account and a.workspace_id = @workspace and a.ledger = @ledger and ` + s.account + `
		offset 0
	) a left join lateral (
		select v.*, before.cash, before.fine
		from (` + start + `) start, lateral (
			select start.cash + coalesce(sum(v.in_cash - v.out_cash), 0) as cash, start.fine + coalesce(sum(v.in_fine - v.out_fine), 0) as fine
			from (
				select v.in_cash, v.out_cash, v.in_fine, v.out_fine` + rows + `
				limit a.rank - start.rank
			) v
		) before, lateral (
			select v.row_id, v.in_cash, v.out_cash, v.in_fine, v.out_fine, ` + RowColumns("v") + `, v.revision` + rows + `
			limit @size::bigint offset a.rank - start.rank
		) v
	) page on true`
}

// searchSQL returns the SQL of start: the point, at or before the page's first row, where reading begins. Views of the past have no parts
// of days, so they read a day from its beginning.
func (s sources) searchSQL(parts bool) string {
	found := `
		from (` + descend(s.nodes(1, `true`), ``) + `) p,
		lateral (` + descend(s.nodes(2, `t.node >= p.node << 6 and t.node < (p.node + 1) << 6`), `p`) + `) d`
	if !parts {
		return `select d.node as day, 0::bigint as first_id, d.rank, d.cash, d.fine` + found
	}
	return `select d.node as day, coalesce(r4.node, r3.node, d.node << 40) & 1099511627775 as first_id,
			coalesce(r4.rank, r3.rank, d.rank) as rank, coalesce(r4.cash, r3.cash, d.cash) as cash, coalesce(r4.fine, r3.fine,
				d.fine) as fine` + found + `
		left join lateral (` + descend(s.nodes(3, `t.node >= d.node << 40 and t.node < (d.node + 1) << 40`), `d`) + `) r3 on true,
		lateral (select coalesce(r3.node, d.node << 40) as node, coalesce(r3.rank, d.rank) as rank, coalesce(r3.cash, d.cash) as cash, ` +
		`coalesce(r3.fine, d.fine) as fine) run
		left join lateral (` + descend(s.nodes(4, `t.node >= run.node and t.node < (d.node + 1) << 40`), `run`) + `) r4 on true`
}

// descend returns the SQL of the node with row a.rank among the nodes below a parent, with the totals before it. Nodes
// of the highest level have no parent.
func descend(nodes, parent string) string {
	rank, cash, fine := `0`, `0`, `0`
	if parent != `` {
		rank, cash, fine = parent+`.rank`, parent+`.cash`, parent+`.fine`
	}
	return `
			select n.node, ` + rank + ` + n.rank_upto - n.row_count as rank, ` + cash + ` + n.cash_upto - n.cash as cash, ` + fine +
		` + n.fine_upto - n.fine as fine
			from (
				select n.*, sum(n.row_count::int) over w as rank_upto, sum(n.cash) over w as cash_upto, sum(n.fine) over w as fine_upto
				from (` + nodes + `) n
				window w as (order by n.node rows unbounded preceding)
			) n
			where ` + rank + ` + n.rank_upto > a.rank
			order by n.node limit 1`
}
