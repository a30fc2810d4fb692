package migrations

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// jobs migrates River's schema to the version of this program's River. Its migrations need
// separate transactions: one uses a value that an earlier one adds to a type.
func jobs(ctx context.Context, url string) error {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return fmt.Errorf("connect to migrate jobs: %w", err)
	}
	config.MaxConns = 1
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("connect to migrate jobs: %w", err)
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, `create schema if not exists river`); err != nil {
		return fmt.Errorf("create the schema of jobs: %w", err)
	}
	m, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Schema: "river", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return fmt.Errorf("prepare migrations of jobs: %w", err)
	}
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("migrate jobs: %w", err)
	}
	// No query uses these indexes, and updating them takes most of the time of an insert.
	if _, err := pool.Exec(ctx, `drop index if exists river.river_job_args_index, river.river_job_metadata_index`); err != nil {
		return fmt.Errorf("drop indexes of jobs: %w", err)
	}
	return nil
}
