// Package python finds the Python that runs the tests of docs/replay.py.
package python

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/distro"
)

// Need fails the test if the machine has no python3. As root it installs python3 first.
func Need(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("python3"); err == nil {
		return
	}
	require.True(t, os.Geteuid() == 0 && distro.Available(), "python3 is missing: apt-get install python3")
	require.NoError(t, distro.Alone(func() error {
		return distro.Install(t.Context(), slog.Default(), func(ctx context.Context, options []string) ([]string, error) {
			_, err := distro.Run(ctx, "apt-cache", append(options, "show", "python3")...)
			return []string{"python3"}, err
		})
	}))
}
