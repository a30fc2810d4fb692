//go:build soak

package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
	"bahi/internal/test/pgtest"
	"bahi/readmodels/opsview"
)

// smallDisk mounts a disk of a size over the folder, which needs root.
func smallDisk(t *testing.T, dir, size string) {
	t.Helper()
	err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=0711,size="+size)
	require.NoError(t, err, "this test mounts a small disk: run make soak as root, in a container that may mount (--cap-add SYS_ADMIN)")
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
}

// fillDisk fills the disk of the file.
func fillDisk(file string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err = io.Copy(f, zeros{}); errors.Is(err, syscall.ENOSPC) {
		return nil
	}
	return err
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func TestFullDiskGets503AndLosesNothing(t *testing.T) {
	t.Parallel()
	data := pgtest.Dir(t)
	smallDisk(t, data, "400m")
	apptest.EndCluster(t, data)
	random := rand.New(rand.NewPCG(4, 9))
	p := apptest.Serve(t, apptest.Command(t, data, "serve"))
	p.Ready()
	l := apptest.NewLoad(t, p.URL, 4)
	ballast := filepath.Join(data, "ballast")
	for range apptest.Rounds(t, 2) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		go l.After(ctx, 20+random.Int64N(300), func() {
			before := l.Away.Load()
			for l.Away.Load() < before+100 && ctx.Err() == nil { // Postgres frees space; fill it again
				if err := fillDisk(ballast); err != nil {
					t.Error(err)
				}
				select {
				case <-ctx.Done():
				case <-time.After(20 * time.Millisecond):
				}
			}
			if err := os.Remove(ballast); err != nil {
				t.Error(err)
			}
			l.After(ctx, 200, cancel)
		})
		l.Run(ctx)
		require.ErrorIs(t, ctx.Err(), context.Canceled, "the server recovered under load")
		cancel()
		p.Ready()
		l.Verify()
	}
	t.Logf("%d writes were acknowledged, the server was unavailable %d times", l.Answered.Load(), l.Away.Load())
	require.NotContains(t, p.Text(), "status=500")
	apptest.Healthy(t, apptest.Command(t, data, "doctor"))
	p.Stop()
}

func TestRebuildOnAFullDiskFailsAndResumes(t *testing.T) {
	t.Parallel()
	data := pgtest.Dir(t)
	smallDisk(t, data, "400m")
	apptest.EndCluster(t, data)
	p := apptest.Serve(t, apptest.Command(t, data, "serve"))
	p.Ready()
	account := apptest.Open(p.Client(), "HDFC")
	rows := make([]json.RawMessage, 1000)
	for i := range rows {
		rows[i] = json.RawMessage(apptest.Deposit("2025-03-01", "1"))
	}
	const bulks = 20
	for range bulks {
		p.Client().POST(apptest.Ledger(account, "/rows"), map[string]any{"rows": rows}).Status(201)
	}
	ballast := filepath.Join(data, "ballast")
	books := func() (now opsview.Projection) {
		if a := p.Client().GET("/ops/projections/books"); a.Response.StatusCode == http.StatusOK {
			a.JSON(&now)
		}
		return now
	}
	for round := range apptest.Rounds(t, 2) {
		shell := apptest.Launch(t, apptest.Command(t, data, "projections", "rebuild", "books", "--throttle", "5000", "--keep", "0s"))
		var now opsview.Projection
		require.Eventually(t, func() bool { now = books(); return now.Build != nil && now.Build.Done > 1000 }, time.Minute, 5*time.Millisecond)
		for ended := false; !ended; { // Postgres frees space; fill it again
			require.NoError(t, fillDisk(ballast))
			select {
			case <-shell.Done:
				ended = true
			case <-time.After(20 * time.Millisecond):
			}
		}
		require.Equal(t, 1, shell.Status, shell.Text())
		require.Contains(t, shell.Text(), "the build so far remains: a serving process continues it, or this command, when repeated")
		require.NoError(t, os.Remove(ballast))
		require.Eventually(t, func() bool { return books().Generation == now.Build.Generation }, time.Minute, 10*time.Millisecond,
			"the same build continues")
		require.Equal(t, strconv.Itoa(bulks*1000), apptest.ClerkBanks(p.Client().GET("/banks").Status(200))[0].Balance.String(), "round %d",
			round)
	}
	apptest.Healthy(t, apptest.Command(t, data, "doctor"))
	p.Stop()
}
