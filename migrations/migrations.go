// Package migrations creates the tables that are not projections: the log, the vault, the registry of
// projections, and River's queue of jobs. A projection's tables are in its own DDL and can be dropped.
package migrations

import (
	"context"
	"embed"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/tern/v2/migrate"
)

//go:embed *.sql
var files embed.FS

// Up migrates the database at url to the newest version. Of concurrent processes one works and the others wait.
func Up(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("connect to migrate: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the connection is discarded
	// The lock ends with the connection. Tern's own lock ends before River's migrations begin.
	if _, err := conn.Exec(ctx, `select pg_advisory_lock(8241005)`); err != nil {
		return fmt.Errorf("wait for other migrations: %w", err)
	}
	if err := mayRead(ctx, conn); err != nil {
		return err
	}
	if err := ours(ctx, conn); err != nil {
		return err
	}
	return jobs(ctx, url)
}

// Format is the format of the logs that this program reads and writes. 0001_event_log.sql sets it in a new log.
const Format = 3

// mayRead returns an error if the database has a log of another format.
func mayRead(ctx context.Context, conn *pgx.Conn) error {
	var there bool
	if err := conn.QueryRow(ctx, `select to_regclass('log.identity') is not null`).Scan(&there); err != nil {
		return fmt.Errorf("find the log: %w", err)
	}
	if !there {
		return nil
	}
	var format int // format 1 does not always have the column
	if err := conn.QueryRow(ctx, `select coalesce((to_jsonb(i)->>'format')::int, 1) from log.identity i`).Scan(&format); err != nil {
		return fmt.Errorf("read the log's format: %w", err)
	}
	if format != Format {
		return fmt.Errorf("the data are in format %d, and this program reads format %d: start the program that wrote them", format, Format)
	}
	return nil
}

func ours(ctx context.Context, conn *pgx.Conn) error {
	m, err := migrate.NewMigrator(ctx, conn, "public.bahi_schema")
	if err != nil {
		return fmt.Errorf("prepare migrations: %w", err)
	}
	if err := m.LoadMigrations(files); err != nil {
		return fmt.Errorf("load migrations: %w", err)
	}
	done, err := m.GetCurrentVersion(ctx)
	if err != nil {
		return fmt.Errorf("read the version of the schema: %w", err)
	}
	newest := int32(len(m.Migrations)) // does not overflow
	if done <= newest {
		if err := m.Migrate(ctx); err != nil {
			return fmt.Errorf("migrate: %w", err)
		}
		done = newest
	}
	return mayServe(ctx, conn, newest, done)
}

// mayServe returns an error if a newer program's migration excludes this program.
// Most migrations only add, which harms no older program. Any other migration names the oldest program that may still serve:
//
//	comment on table public.bahi_schema is 'oldest: 12'; -- programs that have 12 migrations
func mayServe(ctx context.Context, conn *pgx.Conn, newest, done int32) error {
	var oldest int32
	err := conn.QueryRow(ctx, `
		select coalesce(substring(obj_description('public.bahi_schema'::regclass, 'pg_class') from '^oldest: (\d+)$')::int, 0)`).Scan(&oldest)
	if err != nil {
		return fmt.Errorf("read the oldest version that may serve the database: %w", err)
	}
	if newest < oldest {
		return fmt.Errorf("a newer program has migrated this database to version %d, and this one, of version %d, cannot serve it: "+
			"start a program of version %d or newer, or restore a backup from before", done, newest, oldest)
	}
	return nil
}
