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
		return fmt.Errorf("wait for others to migrate: %w", err)
	}
	if err := ours(ctx, conn); err != nil {
		return err
	}
	return jobs(ctx, url)
}

func ours(ctx context.Context, conn *pgx.Conn) error {
	m, err := migrate.NewMigrator(ctx, conn, "public.bahi_schema_version")
	if err != nil {
		return fmt.Errorf("prepare migrations: %w", err)
	}
	if err := m.LoadMigrations(files); err != nil {
		return fmt.Errorf("load migrations: %w", err)
	}
	done, err := m.GetCurrentVersion(ctx)
	if err != nil {
		return fmt.Errorf("read how far the database is migrated: %w", err)
	}
	if newest := int32(len(m.Migrations)); done > newest { //nolint:gosec // G115: there are a few
		return mayServe(ctx, conn, newest, done)
	}
	if err := m.Migrate(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

// mayServe returns nil for a database that a newer program has migrated, unless one of its migrations leaves this program behind.
// Migrations only add, and what they add harms no older program. One that does more says which programs may still serve:
//
//	comment on table public.bahi_schema_version is 'oldest: 12'; -- programs that have 12 migrations
func mayServe(ctx context.Context, conn *pgx.Conn, newest, done int32) error {
	var oldest int32
	err := conn.QueryRow(ctx, `
		select coalesce(substring(obj_description('public.bahi_schema_version'::regclass, 'pg_class') from '^oldest: (\d+)$')::int, 0)`).Scan(&oldest)
	switch {
	case err != nil:
		return fmt.Errorf("read which programs may serve the database: %w", err)
	case newest < oldest:
		return fmt.Errorf("a newer program has migrated this database to version %d, and this one, of version %d, cannot serve it: "+
			"start a program of version %d or newer, or restore a backup from before", done, newest, oldest)
	default:
		return nil
	}
}
