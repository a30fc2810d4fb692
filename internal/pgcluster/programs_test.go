package pgcluster

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bahi/internal/test/worktest"

	"github.com/stretchr/testify/require"
)

// programFolder returns a folder with scripts that print a version of Postgres.
func programFolder(t *testing.T, version string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"postgres", "initdb"} {
		script := "#!/bin/sh\necho '" + name + " (PostgreSQL) " + version + "'\n"
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700))
	}
	return dir
}

func TestProgramsAreTakenFromTheNamedFolderOrNowhere(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	t.Setenv("BAHI_PG_BIN", programFolder(t, "17.2 (Debian 17.2-1)"))
	p, err := Find(t.Context(), log, 0)
	require.NoError(t, err)
	require.Equal(t, "17.2", p.Version)
	require.Equal(t, 17, p.Major)

	_, err = Find(t.Context(), log, 16)
	require.ErrorContains(t, err, "it is Postgres 17.2, but the required version is 16, which made the cluster in the data folder")

	t.Setenv("BAHI_PG_BIN", programFolder(t, "14.9"))
	_, err = Find(t.Context(), log, 0)
	require.ErrorContains(t, err, "it is Postgres 14.9, but the required version is 15 or newer")

	t.Setenv("BAHI_PG_BIN", t.TempDir())
	_, err = Find(t.Context(), log, 0)
	require.ErrorContains(t, err, "no program initdb")

	t.Setenv("BAHI_PG_BIN", "")
	t.Setenv("PATH", programFolder(t, "99beta1")+":"+os.Getenv("PATH"))
	p, err = Find(t.Context(), log, 0)
	require.NoError(t, err)
	require.Equal(t, "99beta1", p.Version, "the newest must be taken")
}

func TestCancelledSearchInstallsNothing(t *testing.T) {
	t.Setenv("BAHI_PG_BIN", "")
	t.Setenv("PATH", programFolder(t, "99beta1")+":"+os.Getenv("PATH"))
	var log strings.Builder
	stopped, stop := context.WithCancelCause(t.Context())
	stop(errStopping)
	_, err := Find(stopped, slog.New(slog.NewTextHandler(&log, nil)), 0)
	require.ErrorIs(t, err, errStopping)
	_, err = install(stopped, slog.New(slog.NewTextHandler(&log, nil)), 0)
	require.ErrorIs(t, err, errStopping, "a cancelled installation does not try the next way")
	require.Empty(t, log.String())
}

func TestNewestFittingVersionIsTaken(t *testing.T) {
	t.Parallel()
	found := []*Programs{{Dir: "a", Major: 14}, {Dir: "b", Major: 15}, {Dir: "c", Major: 16}, {Dir: "d", Major: 16}}
	require.Equal(t, "c", newest(found, 0).Dir)
	require.Equal(t, "b", newest(found, 15).Dir)
	require.Nil(t, newest(found, 14))
	require.Nil(t, newest(nil, 0))
}

func TestProgramsRunWithoutTheVariablesOfOtherServers(t *testing.T) {
	t.Setenv("PGHOST", "elsewhere")
	t.Setenv("PGDATA", "/elsewhere")
	t.Setenv("LANG", "xx_XX")
	for _, v := range (&Programs{}).env() {
		require.NotContains(t, v, "elsewhere")
		require.NotContains(t, v, "xx_XX")
	}
}

// Two scripts that claim to be Postgres 18.3, packed like the builds on Maven Central: tar -cJf with bin/ at the top.
//
//go:embed testdata/postgres.txz
var packed []byte

func TestDownloadedBuildIsUnpackedAndNeverStarted(t *testing.T) {
	t.Parallel()
	var jar bytes.Buffer
	z := zip.NewWriter(&jar)
	w, err := z.Create("postgres-linux-x86_64.txz")
	require.NoError(t, err)
	_, err = w.Write(packed)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	sum := sha256.Sum256(jar.Bytes())
	repository := worktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := jar.Bytes()
		if strings.HasSuffix(r.URL.Path, ".sha256") {
			body = []byte(hex.EncodeToString(sum[:]))
		}
		_, _ = w.Write(body)
	}))

	cache := t.TempDir()
	p, err := download(t.Context(), cache, 0, repository.URL)
	require.NoError(t, err)
	require.Equal(t, "18.3", p.Version)
	require.Equal(t, filepath.Join(cache, "embedded-18.3.0", "bin"), p.Dir)
	require.NoFileExists(t, filepath.Join(p.Dir, "started"), "the script pg_ctl leaves this file when it is told to start a cluster with "+
		"its files in place")
	left, err := filepath.Glob(filepath.Join(cache, ".new-*"))
	require.NoError(t, err)
	require.Empty(t, left)

	_, err = download(t.Context(), cache, 14, repository.URL)
	require.EqualError(t, err, "embedded-postgres has no build of Postgres 14")
	repository.Close()
	_, err = download(t.Context(), t.TempDir(), 0, repository.URL)
	require.ErrorContains(t, err, "download Postgres: unable to connect")
}
