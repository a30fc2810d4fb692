package ledgerview

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/ledger"
	"bahi/domain/ledger/metal"
	"bahi/domain/unit"
	"bahi/readmodels"
)

// Metal is the metal of a workspace's books.
type Metal struct {
	Metal string `json:"metal" doc:"Metal of the accounts and entries that name none"`
}

// Metal returns the metal of a workspace's books and the revision of its stream, -1 before the first change.
func (v *Views) Metal(ctx context.Context, at *readmodels.At, workspace uuid.UUID, as As) (Metal, int64, error) {
	type line struct {
		Metal    string
		Revision int64
	}
	errNever := errors.New("never set")
	l, err := readmodels.Row(ctx, v.Reader.From(as.reading(at), "books"), errNever, pgx.RowToStructByPos[line], `
		select metal, revision from books.books_metal where workspace_id = $1 and from_position <= coalesce($2::bigint, 9223372036854775807)
		order by from_position desc limit 1`, workspace, as.known())
	if errors.Is(err, errNever) {
		return Metal{metal.Default}, -1, nil
	}
	return Metal{l.Metal}, l.Revision, err
}

// Trial is a sum in money and in each metal. A debit is above 0.
type Trial struct {
	Cash unit.Sum
	Fine map[string]unit.Sum
}

// add adds a sum of metal, unless it is 0.
func (t *Trial) add(metal string, fine unit.Sum) {
	if sum := add(t.Fine[metal], fine); sum.IsZero() {
		delete(t.Fine, metal)
	} else {
		t.Fine[metal] = sum
	}
}

// TrialAccount is an account of a trial balance.
type TrialAccount struct {
	Ledger string
	Account
}

// TrialBalance has the balance of each account, and the two parts of the sum of all balances.
type TrialBalance struct {
	Accounts []TrialAccount
	Of       []Trial // by account

	// Unpaired is the sum of the unpaired rows without wastage. It equals the sum of all accounts without wastage, because the rows of a
	// pair cancel each other, as do a row and its reversal.
	Unpaired Trial
	Loss     Trial // wastage
}

// TrialBalance returns the trial balance as known at the position of the view, which must be set.
func (v *Views) TrialBalance(ctx context.Context, at *readmodels.At, workspace uuid.UUID, as As) (b TrialBalance, err error) {
	of, _, err := v.Metal(ctx, at, workspace, as)
	if err != nil {
		return b, err
	}
	sql, accountArgs := as.accounts(workspace, "", nil, nil)
	b.Accounts, err = readmodels.Rows(ctx, v.Reader.From(as.reading(at), "books"), pgx.RowToStructByPos[TrialAccount],
		`select o.ledger, a.* from (`+sql+`) a join books.account o on o.id = a.id order by o.name_folded, o.id`, accountArgs)
	if err != nil {
		return b, err
	}
	type named struct {
		Account    int64
		Own, Name  string
		Fine, Loss unit.Sum
	}
	accounts, args := as.trialAccounts(workspace, of.Metal)
	// An index has the few rows that name a metal.
	others, err := readmodels.Rows(ctx, v.Reader.From(as.reading(at), "books"), pgx.RowToStructByPos[named], accounts+`
		select a.id, a.metal, v.metal, sum(v.in_fine - v.out_fine)::text, coalesce(sum(v.loss) filter (where x.row_id is null), 0)::text
		from a join books.row_version v on v.account_id = a.id and `+as.has("v")+`
			left join books.row_version x on x.row_id = v.reversed_by and `+as.has("x")+`
		where v.metal <> a.metal group by 1, 2, 3`, args)
	if err != nil {
		return b, err
	}
	b.Unpaired.Fine, b.Loss.Fine = map[string]unit.Sum{}, map[string]unit.Sum{}
	place := map[int64]int{}
	for i, a := range b.Accounts {
		t := Trial{a.Cash, map[string]unit.Sum{}}
		l := ledger.Named(a.Ledger)
		if place[a.ID] = i; !l.Held {
			t.Cash = negative(t.Cash)
		}
		if l.Metal {
			own := cmp.Or(a.Metal, of.Metal)
			t.add(own, negative(a.Fine))
			b.Loss.add(own, negative(a.Loss))
		}
		b.Of = append(b.Of, t)
	}
	for _, o := range others {
		t := &b.Of[place[o.Account]]
		t.add(o.Own, o.Fine)
		t.add(o.Name, negative(o.Fine))
		b.Loss.add(o.Own, o.Loss)
		b.Loss.add(o.Name, negative(o.Loss))
	}
	for _, t := range b.Of {
		b.Unpaired.Cash = add(b.Unpaired.Cash, t.Cash)
		for name, fine := range t.Fine {
			b.Unpaired.add(name, fine)
		}
	}
	for name, lost := range b.Loss.Fine {
		b.Unpaired.add(name, negative(lost))
	}
	return b, nil
}

func negative(s unit.Sum) unit.Sum { return unit.Sum{Decimal: s.Neg()} }

// trialAccounts returns SQL that begins with a table a of the accounts of a view with their metals, and the SQL's arguments.
func (a As) trialAccounts(workspace uuid.UUID, metal string) (string, pgx.NamedArgs) {
	s := a.sources()
	args := pgx.NamedArgs{"known": a.known(), "workspace": workspace, "metal": metal, "day": int64(400000)}
	if a.Of != nil {
		args["day"] = min(int64(*a.Of), 400000)
	}
	return `
		with a as materialized (
			select a.id, a.ledger, ` + s.name + ` as name, coalesce(` + s.metal + `, @metal) as metal
			from books.account a where a.workspace_id = @workspace and ` + s.account + `
		)`, args
}

// has returns the SQL condition that a version's row is in the view. The view's argument is @day.
func (a As) has(version string) string {
	return `not ` + version + `.deleted and ` + strings.ReplaceAll(a.sources().current, "v.", version+".") +
		` and ` + version + `.date <= ` + day0 + ` + @day::int`
}

// matched returns SQL that adds a table x to that of trialAccounts: the rows that need no counter entry, because they have no value, the
// view also has the other row of their pair with the same metal, or they and their reversal cancel each other. An index contains the
// few rows that may need none.
func (a As) matched() string {
	s := a.sources()
	return `, x as materialized (
			select v.date, v.row_id, v.from_position
			from a join books.row_version v on v.account_id = a.id left join lateral (
				select coalesce(w.metal, ` + s.metal + `, @metal) as metal
				from books.row_version w join books.account a on a.id = w.account_id
				where w.row_id = v.paired_with and ` + a.has("w") + ` and a.workspace_id = @workspace and ` + s.account + ` offset 0
			) p on true left join books.row_version w on w.row_id = coalesce(v.reverses, v.reversed_by) and ` + a.has("w") + `
			where ` + a.has("v") + `
				and (v.paired_with is not null or v.reverses is not null or v.reversed_by is not null
					or v.in_cash = v.out_cash and v.in_fine = v.out_fine + v.loss)
				and (v.in_cash = v.out_cash and v.in_fine = v.out_fine + v.loss
					or p.metal is not null and (v.in_fine = v.out_fine + v.loss or p.metal = coalesce(v.metal, a.metal))
					or w.row_id is not null and (v.reverses is null or w.reverses is null))
		)`
}

// Unpaired returns a page of the unpaired rows of a trial balance, by date and id. It finds the periods with the page's rows by the totals,
// and reads only the rows of these periods and the rows that are paired, reversed or void.
func (v *Views) Unpaired(ctx context.Context, at *readmodels.At, workspace uuid.UUID, page readmodels.Page, as As) ([]Entered, int64,
	error) {
	of, _, err := v.Metal(ctx, at, workspace, as)
	if err != nil {
		return nil, 0, err
	}
	sql, args := as.trialAccounts(workspace, of.Metal)
	sql += as.matched()
	return readmodels.List[Entered]{
		As: toEntered, Args: args,
		Count: sql + ` select coalesce(sum(b.row_count), 0)::bigint - (select count(*) from x)
			from a, lateral (` + as.amounts(pgx.NamedArgs{}) + `) b`,
		SQL: sql + `, period as (
				select n.node, sum(sum(n.row_count)) over (order by n.node) - sum(n.row_count) as before
				from (
					select t.node, t.row_count from a, lateral (` + as.sources().nodes(1, `t.node <= @day::bigint >> 6`) + `) t
					union all
					select (x.date - ` + day0 + `) >> 6, -1 from x
				) n group by n.node
			), bounds as materialized (
				select max(before) filter (where before <= @skip) as before,
					` + day0 + ` + (max(node) filter (where before <= @skip) << 6)::int as low,
					` + day0 + ` + (max(node) filter (where before < @skip + @limit) << 6)::int + 63 as high
				from period
			)` + enteredSQL(sources{name: `a.name`}) + `
			from (
				select v.date, v.row_id, v.from_position
				from bounds, a cross join lateral (
					select v.date, v.row_id, v.from_position from books.row_version v
					where v.account_id = a.id and ` + as.has("v") + ` and v.date between bounds.low and bounds.high offset 0
				) v
				except select * from x
				order by date, row_id limit @limit offset (select @skip - before from bounds)
			) c join books.row_version v on v.row_id = c.row_id and v.from_position = c.from_position join a on a.id = v.account_id
			order by v.date, v.row_id`,
	}.Page(ctx, v.Reader.From(as.reading(at), "books"), page)
}
