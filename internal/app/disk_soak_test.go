//go:build soak

package app_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
	"bahi/internal/test/pgtest"
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
