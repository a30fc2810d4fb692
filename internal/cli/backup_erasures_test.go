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

// erasedAt returns the time of a list's first entry.
func erasedAt(t *testing.T, file string) time.Time {
	t.Helper()
	list, err := backup.ErasureList{File: file}.Read()
	require.NoError(t, err)
	require.NotEmpty(t, list)
	return list[0].At
}

func TestAListOfErasuresThatCannotBeReadIsRefused(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	list := filepath.Join(t.TempDir(), "erasures.json")
	o.Denied(t, "bahi: read the list of erasures: open "+list, "vault", "erasures", "apply", list)
	require.NoError(t, os.WriteFile(list, []byte(`[{"subject":"user-`), 0o600))
	for _, verb := range []string{"apply", "export"} {
		o.Denied(t, "bahi: read the list of erasures: ", "vault", "erasures", verb, list)
	}
	require.NoError(t, os.WriteFile(list, []byte(`[{"subject":"user-0f0e0d0c-0b0a-4908-8706-050403020100","at":"2026-01-02T03:04:05Z"}]`),
		0o600))
	o.Denied(t, "apply it first", "vault", "erasures", "export", list) // it would lose the list
	out := o.Done(t, "vault", "erasures", "apply", list)
	require.Equal(t, "1 of 1 were erased once more\n", out)
	require.Equal(t, "0 of 1 were erased once more\n", o.Done(t, "vault", "erasures", "apply", list))
	require.NoError(t, os.Remove(list))
	out = o.Done(t, "vault", "erasures", "export", list)
	require.Equal(t, "1 erased\n", out)
	require.WithinDuration(t, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), erasedAt(t, list), 0, "the first erasure's time")
}
