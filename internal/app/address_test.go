package app_test

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/app"
	"bahi/internal/pgcluster"
)

// The kernel takes a while to close the files and the port of a killed process. A start right after the kill waits for that.
func TestAStartWaitsForAProcessThatWasKilled(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	lock, err := pgcluster.Lock(data)
	require.NoError(t, err)
	before, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := before.Addr().String()
	time.AfterFunc(50*time.Millisecond, func() { _ = lock.Release() })
	time.AfterFunc(100*time.Millisecond, func() { _ = before.Close() })
	listener, done, err := app.TakePlace(t.Context(), data, addr)
	require.NoError(t, err)
	defer done()
	require.Equal(t, addr, listener.Addr().String())
	found, err := app.ServerAddr(data, "")
	require.NoError(t, err)
	require.Equal(t, addr, found)
}
