package history

import (
	"bufio"
	"net"
	"net/http"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// net/http repeats the second request, since it has an Idempotency-Key, and cannot connect.
func TestARequestThatBreaksOffMayHaveBeenSent(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close() //nolint:errcheck // it is closed before
	served := make(chan error, 1)
	go func() {
		served <- func() error {
			conn, err := listener.Accept()
			if err != nil {
				return err
			}
			defer conn.Close() //nolint:errcheck // it was only read
			requests := bufio.NewReader(conn)
			if _, err = http.ReadRequest(requests); err == nil {
				_, err = conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
			}
			if err == nil {
				_, err = http.ReadRequest(requests)
			}
			if err == nil {
				err = listener.Close()
			}
			return err
		}()
	}()
	node := &process{address: "http://" + listener.Addr().String()}
	l := newLoad(&system{nodes: []*process{node}})
	r := request{method: http.MethodPost, path: "/rows", header: map[string]string{"Idempotency-Key": "once"}}
	a, err := l.send(t.Context(), 0, r)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.status)
	a, err = l.send(t.Context(), 0, r)
	require.NoError(t, <-served)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.True(t, a.connected)
	a, err = l.send(t.Context(), 0, r)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.False(t, a.connected)
}
