package esdbserver

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync/atomic"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
)

// joining is transport credentials. They join frames to clients, and close the connection of an unauthenticated client that sends too much.
type joining struct {
	credentials.TransportCredentials
}

func (j joining) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := j.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return conn, info, err
	}
	joined := &joinedConn{Conn: conn}
	return joined, guest{info, joined}, nil
}

// The sizes of frames in RFC 9113, sections 4.1 and 6.1.
const (
	frameHeader = 9       // bytes: three of the length, then type, flags, and four of the stream
	maxFrame    = 1 << 14 // bytes after the header that every client accepts
	plainData   = 0       // type and flags of a DATA frame without padding that does not end its stream
)

// joinedConn is a connection on which gRPC writes HTTP/2 frames. gRPC makes a DATA frame of each message. With small events, frames are
// much of a client's work. joinedConn joins adjacent frames of one write, which the protocol allows: messages and frames need not end
// together.
type joinedConn struct {
	net.Conn

	header [frameHeader]byte
	begun  int    // bytes of the header written so far
	left   int    // bytes of the current frame still to be written after its header
	out    []byte // reused

	known    atomic.Bool // a call on this connection had a valid key
	received int         // bytes received before that call
}

// maxStranger limits the bytes from an unauthenticated connection. gRPC reads up to maxMessage of each call before the key is checked, so
// without this limit unauthenticated clients could exhaust the memory. It leaves room for a client's calls while the first one is being
// authenticated.
const maxStranger = 64 << 20

// Read closes the connection of an unauthenticated client that sends too much.
func (c *joinedConn) Read(p []byte) (int, error) {
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

	conn *joinedConn
}

// letIn marks a call's connection as authenticated.
func letIn(ctx context.Context) {
	if from, is := peer.FromContext(ctx); is {
		if g, is := from.AuthInfo.(guest); is {
			g.conn.known.Store(true)
		}
	}
}

// Write accepts any part of a sequence of frames. It holds back an incomplete header until the rest follows.
func (c *joinedConn) Write(p []byte) (int, error) {
	c.out = c.out[:0]
	last := -1 // offset of the last frame's header in out
	for rest := p; len(rest) > 0; {
		if c.left > 0 {
			n := min(c.left, len(rest))
			c.out, rest = append(c.out, rest[:n]...), rest[n:]
			c.left -= n
			continue
		}
		n := copy(c.header[c.begun:], rest)
		c.begun, rest = c.begun+n, rest[n:]
		if c.begun < frameHeader {
			break
		}
		c.begun, c.left = 0, frameLength(c.header[:])
		if last >= 0 && c.joins(c.out[last:]) {
			setFrameLength(c.out[last:], frameLength(c.out[last:])+c.left)
			continue
		}
		last = len(c.out)
		c.out = append(c.out, c.header[:]...)
	}
	if _, err := c.Conn.Write(c.out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// joins reports whether the current frame can be joined to the previous one.
func (c *joinedConn) joins(before []byte) bool {
	isData := c.header[3] == plainData && c.header[4] == plainData
	return isData && [6]byte(before[3:frameHeader]) == [6]byte(c.header[3:]) && frameLength(before)+c.left <= maxFrame
}

func frameLength(header []byte) int {
	return int(header[0])<<16 | int(binary.BigEndian.Uint16(header[1:]))
}

func setFrameLength(header []byte, n int) {
	header[0] = byte(n >> 16)
	binary.BigEndian.PutUint16(header[1:], uint16(n))
}
