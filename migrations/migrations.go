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

// firstRelease is the number of migrations of the first release (commit 6b1a895). It refuses a database on which public.bahi_schema_version counts
// more, so public.bahi_schema counts all of them.
const firstRelease = 7

func ours(ctx context.Context, conn *pgx.Conn) error {
	m, err := migrate.NewMigrator(ctx, conn, "public.bahi_schema")
	if err != nil {
		return fmt.Errorf("prepare migrations: %w", err)
	}
	if err := m.LoadMigrations(files); err != nil {
		return fmt.Errorf("load migrations: %w", err)
	}
	if err := carryOver(ctx, conn); err != nil {
		return err
	}
	done, err := m.GetCurrentVersion(ctx)
	if err != nil {
		return fmt.Errorf("read how far the database is migrated: %w", err)
	}
	newest := int32(len(m.Migrations)) // there are a few
	if done <= newest {
		if err := m.Migrate(ctx); err != nil {
			return fmt.Errorf("migrate: %w", err)
		}
		done = newest
	}
	return mayServe(ctx, conn, newest, done)
}

// carryOver counts the migrations of a database that only the first release, or a program before public.bahi_schema, has migrated.
func carryOver(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `create table if not exists public.bahi_schema_version (version int not null)`)
	if err == nil {
		_, err = conn.Exec(ctx, `
			update public.bahi_schema set version = before.version from public.bahi_schema_version before where bahi_schema.version = 0`)
	}
	if err != nil {
		return fmt.Errorf("count the migrations of the first release: %w", err)
	}
	return nil
}

// mayServe returns nil unless a newer program has migrated the database and one of its migrations leaves this program behind.
// Migrations only add, and what they add harms no older program. One that does more says which programs may still serve:
//
//	comment on table public.bahi_schema is 'oldest: 12'; -- programs that have 12 migrations
//
// mayServe tells the first release, too.
func mayServe(ctx context.Context, conn *pgx.Conn, newest, done int32) error {
	var oldest int32
	err := conn.QueryRow(ctx, `
		select coalesce(substring(obj_description('public.bahi_schema'::regclass, 'pg_class') from '^oldest: (\d+)$')::int, 0)`).Scan(&oldest)
	if err != nil {
		return fmt.Errorf("read which programs may serve the database: %w", err)
	}
	if newest < oldest {
		return fmt.Errorf("a newer program has migrated this database to version %d, and this one, of version %d, cannot serve it: "+
			"start a program of version %d or newer, or restore a backup from before", done, newest, oldest)
	}
	_, err = conn.Exec(ctx, `
		merge into public.bahi_schema_version using (select greatest($1::int, $2::int) as version) as told on true
		when matched and bahi_schema_version.version < told.version then update set version = told.version
		when not matched then insert values (told.version)`, firstRelease, oldest)
	if err != nil {
		return fmt.Errorf("tell the first release whether it may serve the database: %w", err)
	}
	return nil
}
