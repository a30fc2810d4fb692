package app_test

import (
	"context"
	"fmt"
	"net"
	"os"
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
	found, err := app.ServerAddr(t.Context(), data, "")
	require.NoError(t, err)
	require.Equal(t, addr, found)
}

func TestAStartIsRefusedWhileAnotherProcessServes(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	listener, done, err := app.TakePlace(t.Context(), data, "127.0.0.1:0")
	require.NoError(t, err)
	defer done()
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = app.TakePlace(cancelled, data, "127.0.0.1:0")
	require.EqualError(t, err, fmt.Sprintf("the data folder %s is in use by another bahi (pid %d): stop it, "+
		"or name another folder in BAHI_DATA", data, os.Getpid()))
	_, _, err = app.TakePlace(cancelled, t.TempDir(), listener.Addr().String())
	require.ErrorContains(t, err, "BAHI_ADDR: listen tcp "+listener.Addr().String()+": bind: address already in use")
}

func TestAServersAddressIsTheSettingOrTheRecordOrTheDefault(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	for setting, want := range map[string]string{"": app.DefaultAddr, "127.0.0.1:0": app.DefaultAddr, "0.0.0.0:99": "127.0.0.1:99",
		":99": "127.0.0.1:99", "[::]:99": "127.0.0.1:99", "[::1]:99": "[::1]:99", "[::ffff:0.0.0.0]:99": "127.0.0.1:99", "localhost:http": "localhost:80"} {
		addr, err := app.ServerAddr(t.Context(), data, setting)
		require.NoError(t, err)
		require.Equal(t, want, addr, setting)
	}
	for _, setting := range []string{"nowhere", "127.0.0.1:no-such-port"} {
		_, err := app.ServerAddr(t.Context(), data, setting)
		require.ErrorContains(t, err, "BAHI_ADDR", setting)
	}
}
