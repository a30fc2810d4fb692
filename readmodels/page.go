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

// Paged returns the rows of a page of a view, and how many rows there are on all pages. The SQL has no order of its own: order names columns that it
// selects, the last of them unique. It takes its parameters from $1 on.
func Paged[T any](ctx context.Context, r *Reader, page Page, as pgx.RowToFunc[T], order, sql string, args ...any) (rows []T, total int64, err error) {
	return Skipped(ctx, r, int64(page.Number-1)*int64(page.Size), page.Size, as, order, sql, args...)
}

// Skipped is [Paged] for at most limit rows after the first skip.
func Skipped[T any](ctx context.Context, r *Reader, skip int64, limit int, as pgx.RowToFunc[T], order, sql string, args ...any) (rows []T, total int64, err error) {
	read := func(skip int64) error {
		rows, err = Rows(ctx, r, func(row pgx.CollectableRow) (T, error) { return as(counted{row, &total}) },
			fmt.Sprintf(`select count(*) over (), page.* from (%s) page order by %s limit $%d offset $%d`, sql, order, len(args)+1, len(args)+2),
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
