package readmodels

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Page is a part of a list.
type Page struct {
	Number int // from 1
	Size   int // rows of a page
}

// Paged returns the rows of a page of a view, and how many rows there are on all pages. The SQL has no order of its own: order names
// columns that it selects, the last of them unique. It takes its parameters from $1 on.
func Paged[T any](ctx context.Context, r *Reader, page Page, as pgx.RowToFunc[T], order, sql string, args ...any) (rows []T,
	total int64, err error) {
	return PagedAtOffset(ctx, r, page.Offset(), page.Size, as, order, sql, args...)
}

// Offset is how many rows are on the pages before it.
func (p Page) Offset() int64 { return int64(p.Number-1) * int64(p.Size) }

// PagedAtOffset is [Paged] for at most limit rows after the first skip. The rows are counted apart from the page, which costs less than to
// make them all: Postgres counts without their columns, and reads a page by an index that has its order.
func PagedAtOffset[T any](ctx context.Context, r *Reader, skip int64, limit int, as pgx.RowToFunc[T], order, sql string,
	args ...any) (rows []T, total int64, err error) {
	return paged(ctx, r, skip, limit, as, order, `select count(*) from (`+sql+`) every`, sql, args)
}

// PagedWithCount is [Paged] for a view whose rows are counted as they change: count is the SQL of their number.
func PagedWithCount[T any](ctx context.Context, r *Reader, page Page, as pgx.RowToFunc[T], order, count, sql string,
	args ...any) (rows []T, total int64, err error) {
	return paged(ctx, r, page.Offset(), page.Size, as, order, count, sql, args)
}

func paged[T any](ctx context.Context, r *Reader, skip int64, limit int, as pgx.RowToFunc[T], order, count, sql string,
	args []any) (rows []T, total int64, err error) {
	return Counted(ctx, r, skip, limit, as,
		fmt.Sprintf(`select (%s), page.* from (%s) page order by %s limit $%d offset $%d`, count, sql, order, len(args)+1, len(args)+2), args...)
}

// Tally returns the SQL of the number of rows that fit, where a projection's tally (projections.Tally) has them. The condition calls the
// table as.
func Tally(table, as, where string) string {
	return `select coalesce(sum(` + as + `.rows), 0)::bigint from ` + table + `_tally ` + as + ` where ` + where
}

// Counted returns the rows of a view whose first column is how many rows there are on all pages. Its last two parameters are limit and
// skip.
func Counted[T any](ctx context.Context, r *Reader, skip int64, limit int, as pgx.RowToFunc[T], sql string, args ...any) (rows []T,
	total int64, err error) {
	read := func(skip int64) error {
		rows, err = Rows(ctx, r, func(row pgx.CollectableRow) (T, error) { return as(counted{row, &total}) }, sql,
			append(slices.Clip(args), int64(limit), skip)...)
		return err
	}
	if err := read(skip); err != nil || len(rows) > 0 || skip == 0 {
		return rows, total, err
	}
	err = read(0) // a page beyond the end has no row that could count the others
	return nil, total, err
}

// counted is a row without its first column, which is the number of rows.
type counted struct {
	pgx.CollectableRow

	total *int64
}

// FieldDescriptions implements [pgx.CollectableRow].
func (c counted) FieldDescriptions() []pgconn.FieldDescription {
	return c.CollectableRow.FieldDescriptions()[1:]
}

// Scan implements [pgx.CollectableRow].
func (c counted) Scan(into ...any) error {
	return c.CollectableRow.Scan(append([]any{c.total}, into...)...)
}

// Values implements [pgx.CollectableRow].
func (c counted) Values() ([]any, error) {
	all, err := c.CollectableRow.Values()
	if err != nil {
		return nil, err
	}
	return all[1:], nil
}

// RawValues implements [pgx.CollectableRow].
func (c counted) RawValues() [][]byte { return c.CollectableRow.RawValues()[1:] }
