package gateway

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync/atomic"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
)

// joining is credentials whose connections to clients join frames, and end those of strangers who say too much.
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

// What RFC 9113 says of frames in 4.1 and 6.1.
const (
	frameHeader = 9       // bytes: three of the length, then type, flags, and four of the stream
	maxFrame    = 1 << 14 // bytes after the header that every client takes
	plainData   = 0       // type and flags of a DATA frame that neither is padded nor ends its stream
)

// joinedConn is a connection on which gRPC writes HTTP/2 frames. gRPC makes a DATA frame of each message, and for a client that
// catches up on events of a few hundred bytes, frames are a good part of the work. Those that follow each other in one write
// become one here: where a message ends in a frame means nothing.
type joinedConn struct {
	net.Conn

	header [frameHeader]byte
	begun  int    // bytes of the header that were written so far
	left   int    // bytes of the frame that are still to be written after its header
	out    []byte // kept for its memory

	known atomic.Bool // a call that came this way had a key that opens something
	heard int         // bytes that came before
}

// maxStranger is how many bytes a connection may bring before a call of it is let in. gRPC reads what most calls say, up to maxMessage
// of each of them, before it asks for anybody's key: without this bound they could have all of the memory, and keep it. It leaves room
// for calls that a client makes at once while the first is looked at.
const maxStranger = 64 << 20

// Read ends the connection of a stranger who says too much.
func (c *joinedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if !c.known.Load() {
		if c.heard += n; c.heard > maxStranger {
			return 0, errStranger
		}
	}
	return n, err
}

var errStranger = errors.New("nobody who may come in has come this way, and too much was said")

// guest is what a call knows of the connection that it came by.
type guest struct {
	credentials.AuthInfo

	conn *joinedConn
}

// letIn notes that a call's connection is no stranger's.
func letIn(ctx context.Context) {
	if from, is := peer.FromContext(ctx); is {
		if g, is := from.AuthInfo.(guest); is {
			g.conn.known.Store(true)
		}
	}
}

// Write takes any piece of a sequence of frames. It holds back a header that is not whole, which its caller goes on with at once.
func (c *joinedConn) Write(p []byte) (int, error) {
	c.out = c.out[:0]
	last := -1 // where the header of the last frame is in out
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

// joins says whether the frame that begins can be a part of the one before.
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
