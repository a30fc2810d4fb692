package esdbserver

import (
	"bytes"
	"math/rand/v2"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
)

// kept is a connection that collects what is written.
type kept struct {
	net.Conn

	wire bytes.Buffer
}

func (k *kept) Write(p []byte) (int, error) { return k.wire.Write(p) }

// frame is a frame as a client receives it, without the end of its data.
type frame struct {
	kind   http2.FrameType
	flags  http2.Flags
	stream uint32
	data   string
}

// readFrames returns the frames, with adjacent DATA frames joined, and the original number.
func readFrames(t *testing.T, wire *bytes.Buffer) (frames []frame, count int) {
	t.Helper()
	framer := http2.NewFramer(nil, wire)
	framer.SetMaxReadFrameSize(maxFrame)
	for ; wire.Len() > 0; count++ {
		f, err := framer.ReadFrame()
		require.NoError(t, err)
		read := frame{kind: f.Header().Type, flags: f.Header().Flags, stream: f.Header().StreamID}
		switch f := f.(type) {
		case *http2.DataFrame:
			read.data = string(f.Data())
			if n := len(frames); n > 0 && read.flags == 0 && frames[n-1].kind == http2.FrameData && frames[n-1].flags == 0 &&
				frames[n-1].stream == read.stream {
				frames[n-1].data += read.data
				continue
			}
		case *http2.HeadersFrame:
			read.data = string(f.HeaderBlockFragment())
		case *http2.PingFrame:
			read.data = string(f.Data[:])
		}
		frames = append(frames, read)
	}
	return frames, count
}

func TestFramesAreJoined(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(2, 2))
	for range 200 {
		var wire bytes.Buffer
		framer := http2.NewFramer(&wire, nil)
		for range 1 + random.IntN(40) {
			stream, data := uint32(1+2*random.IntN(2)), make([]byte, random.IntN(600))
			if random.IntN(10) == 0 {
				data = make([]byte, maxFrame-random.IntN(2))
			}
			for i := range data {
				data[i] = byte(random.Uint32())
			}
			var err error
			switch random.IntN(12) {
			case 0:
				err = framer.WritePing(false, [8]byte{1, 2, 3})
			case 1:
				err = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: data, EndHeaders: true, EndStream: true})
			case 2:
				err = framer.WriteData(stream, true, data)
			case 3:
				err = framer.WriteDataPadded(stream, false, data[:len(data)/2], make([]byte, 7))
			default:
				err = framer.WriteData(stream, false, data)
			}
			require.NoError(t, err)
		}
		written := wire.Bytes()
		want, before := readFrames(t, bytes.NewBuffer(written))
		var joined kept
		c := &joinedConn{Conn: &joined}
		for len(written) > 0 { // in any pieces
			n := min(1+random.IntN(1<<random.IntN(16)), len(written))
			done, err := c.Write(written[:n])
			require.NoError(t, err)
			require.Equal(t, n, done)
			written = written[n:]
		}
		got, after := readFrames(t, &joined.wire)
		require.Equal(t, want, got)
		require.LessOrEqual(t, after, before)
	}
}
