//go:build unix

package archive

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/eventstore/tlog"
)

// The reader refuses a pipe in place of a file: it would wait for the writer.
func TestPipesAmongAnArchivesFilesAreFaults(t *testing.T) {
	t.Parallel()
	l := logOf(10)
	key := keyOf(t, l, 1)
	o := l.options()
	o.Checkpoints, o.PublicKeys = l.checkpoints(t, key, 10), []string{key.Public()}
	for _, name := range []string{manifestName, segmentName(2, false), CheckpointsFile} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := createWith(t, l, o)
			path := filepath.Join(dir, name)
			require.NoError(t, os.Remove(path))
			require.NoError(t, syscall.Mkfifo(path, 0o600))
			found := name + ": it is not a regular file"
			a, err := Open(dir)
			if name == manifestName {
				require.ErrorContains(t, err, found)
				return
			}
			require.NoError(t, err)
			r, err := a.Verify(t.Context(), trust(t, key), nil, nil)
			require.NoError(t, err)
			require.Equal(t, tlog.Tampered, r.Verdict())
			require.Contains(t, r.Finding.String(), found)
		})
	}
}
