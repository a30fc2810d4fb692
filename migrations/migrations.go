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
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing is left to lose
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
	if err := m.Migrate(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}
