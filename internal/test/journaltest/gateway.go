package journaltest

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/eventstore"
	"bahi/eventstore/esdbserver"
)

// Served returns the connection string of a gateway to a log.
func Served(t testing.TB, log eventstore.Store) string {
	t.Helper()
	dir := t.TempDir()
	ca, err := esdbserver.OpenCA(dir, []string{"127.0.0.1"}, time.Now)
	require.NoError(t, err)
	g := esdbserver.New(esdbserver.Config{
		Store: log, Writable: true, TLS: ca.TLS(), Log: slog.New(slog.DiscardHandler),
		Authenticate: func(context.Context, string) error { return nil },
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- g.Serve(ctx, listener) }()
	t.Cleanup(func() { stop(); require.NoError(t, <-ended) })
	return "esdb://bahi:key@" + listener.Addr().String() + "?tlsCAFile=" + filepath.Join(dir, "ca.crt")
}
