package esdbserver

import (
	"context"
	"errors"
	"net"
	"sync/atomic"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
)

// limiting is transport credentials. They close the connection of an unauthenticated client that sends too much.
type limiting struct {
	credentials.TransportCredentials
}

func (l limiting) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := l.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return conn, info, err
	}
	limited := &limitedConn{Conn: conn}
	return limited, guest{info, limited}, nil
}

// limitedConn is a connection with a limit until a call on it is authenticated.
type limitedConn struct {
	net.Conn

	known    atomic.Bool // a call on this connection had a valid key
	received int         // bytes received before that call
}

// maxStranger limits the bytes from an unauthenticated connection. gRPC reads up to maxMessage of each call before the key is checked, so
// without this limit unauthenticated clients could exhaust the memory. It leaves room for a client's calls while the first one is being
// authenticated.
const maxStranger = 64 << 20

// Read closes the connection of an unauthenticated client that sends too much.
func (c *limitedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if !c.known.Load() {
		if c.received += n; c.received > maxStranger {
			return 0, errStranger
		}
	}
	return n, err
}

var errStranger = errors.New("unauthenticated client sent too many bytes")

// guest links a call to its connection.
type guest struct {
	credentials.AuthInfo

	conn *limitedConn
}

// letIn marks a call's connection as authenticated.
func letIn(ctx context.Context) {
	if from, is := peer.FromContext(ctx); is {
		if g, is := from.AuthInfo.(guest); is {
			g.conn.known.Store(true)
		}
	}
}
