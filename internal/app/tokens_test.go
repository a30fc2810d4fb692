package app_test

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
	"bahi/internal/test/pgtest"
	"bahi/internal/test/worktest"
	"bahi/migrations"
)

// The start that creates tokens of webhooks prints them. A later one, even of another node, stores them in its data folder and logs where.
func TestTokensOfWebhooksArePrintedOnce(t *testing.T) {
	t.Parallel()
	database := pgtest.Template(t, "migrated", migrations.Up) // no node has started on it
	start := func() (said string, token []byte) {
		var out bytes.Buffer
		with := apptest.Settings(t, database) // with a data folder of its own
		with.Shell.Err, with.LogLevel = &out, slog.LevelInfo
		sys, err := with.Open(t.Context(), true)
		require.NoError(t, err)
		defer sys.Close()
		sys.SayTokens()
		token = worktest.File(t, filepath.Join(with.Data, "keys", "social.token"))
		return out.String(), bytes.TrimSpace(token)
	}
	first, made := start()
	require.Equal(t, 4, strings.Count(first, "The token of the "))
	require.Contains(t, first, string(made))
	later, kept := start()
	require.Equal(t, made, kept)
	require.NotContains(t, later, string(kept))
	require.Contains(t, later, "webhook tokens of an earlier start")
	require.Contains(t, later, "social")
}
