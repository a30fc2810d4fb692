package gateway

import (
	"encoding/binary"
	"net"

	"google.golang.org/grpc/credentials"
)

// joining is credentials whose connections to clients join frames.
type joining struct {
	credentials.TransportCredentials
}

func (j joining) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := j.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return conn, info, err
	}
	return &joinedConn{Conn: conn}, info, nil
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
