package migrations_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"bahi/internal/pgtest"
	"bahi/migrations"
)

func TestProcessesThatStartAtOnceMigrateOnce(t *testing.T) {
	t.Parallel()
	url := pgtest.DB(t)
	done := make(chan error)
	const processes = 5
	for range processes {
		go func() { done <- migrations.Up(t.Context(), url) }()
	}
	for range processes {
		require.NoError(t, <-done)
	}
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	var log, jobs int
	require.NoError(t, conn.QueryRow(t.Context(), `select (select count(*) from log.event), (select count(*) from river.river_job)`).Scan(&log, &jobs))
	require.Zero(t, log+jobs)
}
