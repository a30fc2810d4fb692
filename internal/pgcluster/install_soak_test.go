//go:build soak

package pgcluster

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// This test fetches 20 MB from the distribution, so make test leaves it out.
func TestUnpackedPackagesRunACluster(t *testing.T) {
	if _, err := exec.LookPath("apt-get"); err != nil {
		t.Log("this machine has no packages of Debian's kind, so the test checks nothing")
		return
	}
	cache := dataDir(t)
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	p, err := aptUnpack(t.Context(), log, cache, 0)
	require.NoError(t, err)
	require.Contains(t, p.Dir, cache)
	require.NotEmpty(t, p.libraries)

	t.Setenv("BAHI_PG_BIN", p.Dir)
	c := start(t, options(t, dataDir(t)))
	require.Equal(t, p.Dir, c.Programs().Dir)
	require.Equal(t, "up", ask(t, c, `select 'up'`))
	out, err := p.Command(t.Context(), "pg_dump", "--version").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, c.Stop(context.WithoutCancel(t.Context())))
	require.DirExists(t, p.Dir)
	_, err = os.Stat(p.path("pg_dump"))
	require.NoError(t, err)
}
