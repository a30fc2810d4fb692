package pgcluster

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCrashInInitdbLeavesNothingBroken(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	cmd, _ := bahi(t, dir)
	unfinished := filepath.Join(dir, "postgres", "init-*")
	require.Eventually(t, func() bool {
		found, err := filepath.Glob(filepath.Join(unfinished, "PG_VERSION"))
		return err == nil && len(found) == 1
	}, time.Minute, time.Millisecond)
	require.NoError(t, cmd.Process.Kill())
	require.NoDirExists(t, filepath.Join(dir, "postgres", "data"))

	c := start(t, options(t, dir))
	require.Equal(t, "up", ask(t, c, `select 'up'`))
}

// An initdb whose Bahi was killed continues to write until it notices.
func TestUnfinishedClusterIsRemovedThoughItIsStillWritten(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "init-1")
	require.NoError(t, os.Mkdir(dir, 0o700))
	writing := make(chan struct{})
	go func() {
		defer close(writing)
		for i, end := 0, time.Now().Add(200*time.Millisecond); time.Now().Before(end); i++ {
			_ = os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), nil, 0o600) // it fails once the folder is gone
		}
	}()
	time.Sleep(20 * time.Millisecond)
	require.NoError(t, removeUnfinished(t.Context(), dir))
	<-writing
	require.NoDirExists(t, dir)
}

// Postgres continues to create the database after its Bahi was killed.
func TestDatabaseThatAnotherCreatesIsNotCreatedTwice(t *testing.T) {
	t.Parallel()
	c := start(t, options(t, dataDir(t)))
	admin, err := c.connect(t.Context(), "postgres")
	require.NoError(t, err)
	defer admin.Close(t.Context())
	_, err = admin.Exec(t.Context(), `drop database bahi`)
	require.NoError(t, err)
	results := make(chan error)
	for range 4 {
		go func() {
			conn, err := c.connect(t.Context(), "postgres")
			if err == nil {
				err = errors.Join(c.createDatabase(t.Context(), conn), conn.Close(t.Context()))
			}
			results <- err
		}()
	}
	for range 4 {
		require.NoError(t, <-results)
	}
}
