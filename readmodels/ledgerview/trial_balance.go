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
	rows, args := as.trialRows(workspace, of.Metal)
	type named struct {
		Account    int64
		Own, Name  string
		Fine, Loss unit.Sum
	}
	// An index has the few rows that name a metal.
	others, err := readmodels.Rows(ctx, v.Reader.From(as.reading(at), "books"), pgx.RowToStructByPos[named], rows+`
		select r.account, r.own, r.of, sum(r.fine + r.loss)::text, coalesce(sum(r.loss) filter (where x.row_id is null), 0)::text
		from r left join books.row_version x on x.row_id = r.reversed_by and `+strings.ReplaceAll(as.sources().current, "v.", "x.")+`
			and x.date <= `+day0+` + @day::int
		where r.named is not null and r.named <> r.own group by 1, 2, 3`, args)
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
		t.add(o.Own, negative(o.Fine))
		t.add(o.Name, o.Fine)
		b.Loss.add(o.Own, negative(o.Loss))
		b.Loss.add(o.Name, o.Loss)
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

// trialRows returns SQL that begins with a table r of the rows of a view, and the SQL's arguments. Cash, fine and loss are above 0 for a
// debit; fine excludes loss. Column of is the metal of a row, own the metal of its account.
func (a As) trialRows(workspace uuid.UUID, of string) (string, pgx.NamedArgs) {
	s := a.sources()
	args := pgx.NamedArgs{"known": a.known(), "workspace": workspace, "metal": of, "day": int64(400000), "held": held()}
	if a.Of != nil {
		args["day"] = min(int64(*a.Of), 400000)
	}
	return `
		with a as materialized (
			select a.id, a.ledger, ` + s.name + ` as name, coalesce(` + s.metal + `, @metal) as metal,
				case when a.ledger = any(@held::text[]) then 1 else -1 end as sign
			from books.account a where a.workspace_id = @workspace and ` + s.account + `
		), r as (
			select v.row_id, v.date, v.paired_with, v.reverses, v.reversed_by, a.id as account, a.metal as own,
				v.metal as named, coalesce(v.metal, a.metal) as of,
				a.sign * (v.in_cash - v.out_cash) as cash, a.sign * (v.in_fine - v.out_fine - v.loss) as fine, a.sign * v.loss as loss
			from a join books.row_version v on v.account_id = a.id
			where not v.deleted and ` + s.current + ` and v.date <= ` + day0 + ` + @day::int
		)`, args
}

// counted adds a table c of the rows of r without pairs of a row and its reversal. A row is unpaired if the other row of its pair is not in
// the view, or has another metal.
const counted = `, c as (
			select r.*, p.row_id is null as unpaired
			from r left join r p on p.row_id = r.paired_with and (r.fine = 0 or p.of = r.of)
				left join r x on x.row_id = case when r.reverses is null then r.reversed_by else r.reverses end
					and (r.reverses is null or x.reverses is null)
			where x.row_id is null
		)`

// held returns the names of the ledgers in which positive balances are debits.
func held() (names []string) {
	for _, l := range ledger.All {
		if l.Held {
			names = append(names, l.Name)
		}
	}
	return names
}

// Unpaired returns a page of the unpaired rows of a trial balance, by date and id.
func (v *Views) Unpaired(ctx context.Context, at *readmodels.At, workspace uuid.UUID, page readmodels.Page, as As) ([]Entered, int64,
	error) {
	of, _, err := v.Metal(ctx, at, workspace, as)
	if err != nil {
		return nil, 0, err
	}
	rows, args := as.trialRows(workspace, of.Metal)
	rows += counted
	const unpaired = ` from c where unpaired and (cash <> 0 or fine <> 0)`
	return readmodels.List[Entered]{
		As: toEntered, Count: rows + ` select count(*)` + unpaired, Args: args,
		SQL: rows + enteredSQL(sources{name: `a.name`}) + `
			from (select row_id, account, date` + unpaired + ` order by date, row_id limit @limit offset @skip) c
			join a on a.id = c.account join books.row_version v on v.row_id = c.row_id and ` + as.sources().current + `
			order by c.date, c.row_id`,
	}.Page(ctx, v.Reader.From(as.reading(at), "books"), page)
}
