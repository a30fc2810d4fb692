package cli_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/cli/backup"
	"bahi/internal/test/apptest"
)

func TestAListOfErasuresThatCannotBeReadIsRefused(t *testing.T) {
	t.Parallel()
	database, file := apptest.Database(t), filepath.Join(t.TempDir(), "erasures.json")
	apptest.Denied(t, database, "bahi: read the list of erasures: open "+file, "vault", "erasures", "apply", file)
	require.NoError(t, os.WriteFile(file, []byte(`[{"subject":"user-`), 0o600))
	for _, verb := range []string{"apply", "export"} {
		apptest.Denied(t, database, "bahi: read the list of erasures: ", "vault", "erasures", verb, file)
	}
	require.NoError(t, os.WriteFile(file, []byte(`[{"subject":"user-0f0e0d0c-0b0a-4908-8706-050403020100","at":"2026-01-02T03:04:05Z"}]`),
		0o600))
	apptest.Denied(t, database, "apply it first", "vault", "erasures", "export", file) // it would lose the list
	for _, erased := range []string{"1", "0"} {
		out, _ := apptest.Done(t, database, "vault", "erasures", "apply", file)
		require.Equal(t, erased+" of 1 were erased again\n", out)
	}
	require.NoError(t, os.Remove(file))
	out, _ := apptest.Done(t, database, "vault", "erasures", "export", file)
	require.Equal(t, "1 erased\n", out)
	list, err := backup.ErasureList{File: file}.Read()
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.WithinDuration(t, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), list[0].At, 0, "the first erasure's time")
}
