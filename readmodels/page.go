package readmodels

import (
	"cmp"
	"context"
	"maps"
	"math"

	"github.com/jackc/pgx/v5"
)

// Page is a part of a list.
type Page struct {
	Number int // from 1
	Size   int // rows of a page; 0: all rows
}

// Offset returns the number of rows on the pages before it.
func (p Page) Offset() int64 { return int64(p.Number-1) * int64(p.Size) }

// List is a view that is read by page. A separate statement counts the rows, because a window function is slower: Postgres counts rows
// without reading their columns, and reads the page by an index in its order.
type List[T any] struct {
	As    pgx.RowToFunc[T]
	SQL   string // without an order
	Order string // selected columns, the last of them unique; "": SQL has the order, limit @limit and offset @skip
	Count string // SQL of the number of rows on all pages; "": SQL's rows are counted
	Args  pgx.NamedArgs
}

// Page returns the rows of a page, and the number of rows on all pages.
func (l List[T]) Page(ctx context.Context, t Tables, page Page) (rows []T, total int64, err error) {
	return l.Skip(ctx, t, page.Offset(), page.Size)
}

// Skip is [List.Page] for at most limit rows after the first skip.
func (l List[T]) Skip(ctx context.Context, t Tables, skip int64, limit int) (rows []T, total int64, err error) {
	total, err = l.each(ctx, t, skip, limit, func(row T) error {
		rows = append(rows, row)
		return nil
	})
	return rows, total, err
}

// Each is [List.Page] for more rows than fit in memory: it calls take for each.
func (l List[T]) Each(ctx context.Context, t Tables, page Page, take func(T) error) (total int64, err error) {
	return l.each(ctx, t, page.Offset(), page.Size, take)
}

func (l List[T]) each(ctx context.Context, t Tables, skip int64, limit int, take func(T) error) (total int64, err error) {
	if l.Count == "" {
		l.Count = `select count(*) from (` + l.SQL + `) every`
	}
	if l.Order != "" {
		l.SQL = `select page.* from (` + l.SQL + `) page order by ` + l.Order + ` limit @limit offset @skip`
	}
	args := pgx.NamedArgs{"limit": cmp.Or(int64(limit), math.MaxInt64), "skip": skip}
	maps.Copy(args, l.Args)
	err = t.read(ctx, query{l.Count, []any{args}, func(rows pgx.Rows) (err error) {
		total, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64])
		return err
	}}, query{l.SQL, []any{args}, each(l.As, take)})
	return total, err
}

// Tally returns SQL that counts rows by a projection's tally (projections.Tally). as is the table's name in the condition.
func Tally(table, as, where string) string {
	return `select coalesce(sum(` + as + `.rows), 0)::bigint from ` + table + `_tally ` + as + ` where ` + where
}
