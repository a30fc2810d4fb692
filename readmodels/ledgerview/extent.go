package ledgerview

import (
	"context"

	"github.com/jackc/pgx/v5"

	"bahi/domain/unit"
	"bahi/readmodels"
)

// Extent has the maximum values of a document of rows, which determine its columns.
type Extent struct {
	Last     int64   // the greatest id of a row
	Turnover         // sums of all rows
	Lowest   Balance // the lowest balance after a row, without the opening balance
	Highest  Balance // the highest balance
}

// Extent returns the extent of the whole selection. It is zero without rows or without the account. It sums days instead of rows: the
// balances on a day are between the previous balance less the day's OUT and the previous balance plus the day's IN.
func (v *Views) Extent(ctx context.Context, at *readmodels.At, of AccountKey, sel Selection) (Extent, error) {
	s, days := sel.sources(), ``
	low, high := sel.days()
	if sel.From != nil {
		days += ` and v.date >= ` + day0 + ` + @low::int`
	}
	if sel.To != nil || sel.Of != nil {
		days += ` and v.date <= ` + day0 + ` + least(@high::bigint, 400000)::int`
	}
	sql, args := `
		select coalesce(max(d.row_id), 0), `+turnoverColumns+`,
			coalesce(min(d.cash - d.in_cash), 0)::text, coalesce(min(d.fine - d.in_fine), 0)::text,
			coalesce(max(d.cash + d.out_cash), 0)::text, coalesce(max(d.fine + d.out_fine), 0)::text
		from (
			select max(v.row_id) as row_id, sum(v.in_cash) as in_cash, sum(v.out_cash) as out_cash, sum(v.in_fine) as in_fine, sum(v.out_fine) `+
		`as out_fine,
				sum(sum(v.in_cash - v.out_cash)) over w as cash, sum(sum(v.in_fine - v.out_fine)) over w as fine
			from books.account a join books.row_version v on v.account_id = a.id
			where a.workspace_id = @workspace and a.ledger = @ledger and a.id = @account and `+s.account+` and not v.deleted and `+s.current+days+`
			group by v.date
			window w as (order by v.date rows unbounded preceding)
		) d`,
		pgx.NamedArgs{"known": sel.known(), "workspace": of.Workspace, "ledger": of.Ledger.Name, "account": of.ID, "low": low, "high": high}
	return readmodels.Row(ctx, v.Reader.From(sel.reading(at), "books"), nil, func(row pgx.CollectableRow) (e Extent, err error) {
		err = row.Scan(&e.Last, &e.CashIn, &e.CashOut, &e.FineIn, &e.FineOut, &e.Lowest.Cash, &e.Lowest.Fine, &e.Highest.Cash, &e.Highest.Fine)
		return e, err
	}, sql, args)
}

// Above returns the sum of the balance and a previous one.
func (b Balance) Above(before Balance) Balance {
	return Balance{unit.Sum{Decimal: b.Cash.Add(before.Cash.Decimal)}, unit.Sum{Decimal: b.Fine.Add(before.Fine.Decimal)}}
}
