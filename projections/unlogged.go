package projections

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// SetUnlogged makes the tables of all generations unlogged, or logged again, and reports whether that changed them. Postgres writes no WAL
// for an unlogged table, and empties it after a crash. The registry is unlogged with the tables: a crash that empties a table empties the
// registry too, so no read takes an empty table for the books, and the runners fold the log again. A change rewrites all tables.
func SetUnlogged(ctx context.Context, pool *pgxpool.Pool, unlogged bool) (changed bool, err error) {
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if err := lockRegistry(ctx, tx); err != nil {
			return err
		}
		is, err := registryUnlogged(ctx, tx)
		if changed = is != unlogged; err != nil || !changed {
			return err
		}
		word, tables := "logged", []string{"projection.generation", "projection.partition"} // in this order: the second refers to the first
		if unlogged {
			word, tables = "unlogged", []string{"projection.partition", "projection.generation"}
		}
		if err := alterTables(ctx, tx, word, tables); err != nil {
			return err
		}
		all, err := generations(ctx, tx, `true`)
		if err != nil {
			return err
		}
		for _, g := range all {
			if err := alterSchema(ctx, tx, word, g.schema()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("make the tables of projections logged or unlogged: %w", err)
	}
	return changed, nil
}

func registryUnlogged(ctx context.Context, tx pgx.Tx) (is bool, err error) {
	err = tx.QueryRow(ctx, `select relpersistence = 'u' from pg_class where oid = 'projection.generation'::regclass`).Scan(&is)
	return is, err
}

// alterSchema makes the tables of a schema logged or unlogged.
func alterSchema(ctx context.Context, tx pgx.Tx, word, schema string) error {
	rows, _ := tx.Query(ctx, `select oid::regclass::text from pg_class where relnamespace = to_regnamespace($1) and relkind = 'r'`, schema)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	return alterTables(ctx, tx, word, tables)
}

func alterTables(ctx context.Context, tx pgx.Tx, word string, tables []string) error {
	for _, table := range tables {
		if _, err := tx.Exec(ctx, `alter table `+table+` set `+word); err != nil {
			return err
		}
	}
	return nil
}
