package picture_test

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"testing"

	"bahi/internal/test/worktest"

	"github.com/stretchr/testify/require"
)

// marker is a text that must not survive.
const marker = "<script>alert('28.6139N 77.2090E')</script>"

// corners is a picture whose orientation is visible: red above green at the left, blue above white at the right.
func corners(width, height int) *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			c := [2][2]color.RGBA{{{255, 0, 0, 255}, {0, 0, 255, 255}}, {{0, 255, 0, 255}, {255, 255, 255, 255}}}
			m.SetRGBA(x, y, c[y*2/height][x*2/width])
		}
	}
	return m
}

func asJPEG(t testing.TB, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, jpeg.Encode(&b, m, &jpeg.Options{Quality: 95}))
	return b.Bytes()
}

func asPNG(t testing.TB, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, m))
	return b.Bytes()
}

func file(t testing.TB, name string) []byte {
	t.Helper()
	return worktest.File(t, "testdata/"+name)
}

// segment is a segment of a JPEG.
func segment(kind byte, content string) []byte {
	length := len(content) + 2
	return append([]byte{0xff, kind, byte(length >> 8), byte(length)}, content...)
}

// withSegments puts segments behind a JPEG's first two bytes.
func withSegments(jpeg []byte, segments ...[]byte) []byte {
	return bytes.Join([][]byte{jpeg[:2], bytes.Join(segments, nil), jpeg[2:]}, nil)
}

// exif is a camera's metadata: its orientation and, in a folder of its own, its location (CIPA DC-008).
func exif(orientation int) []byte {
	le := binary.LittleEndian
	b := append([]byte("II*\x00"), 8, 0, 0, 0)
	entry := func(tag, kind uint16, count, value uint32) {
		b = le.AppendUint16(b, tag)
		b = le.AppendUint16(b, kind)
		b = le.AppendUint32(b, count)
		b = le.AppendUint32(b, value)
	}
	b = le.AppendUint16(b, 2)
	entry(0x0112, 3, 1, uint32(orientation))
	entry(0x8825, 4, 1, 38)
	b = le.AppendUint32(b, 0)
	b = le.AppendUint16(b, 1)
	entry(0x001d, 2, uint32(len(marker)+1), 56) // GPSDateStamp, a text
	b = le.AppendUint32(b, 0)
	return append(append(b, marker...), 0)
}

// withChunks puts chunks behind a PNG's first one.
func withChunks(png []byte, chunks ...[]byte) []byte {
	const first = 8 + 4 + 4 + 13 + 4
	return bytes.Join([][]byte{png[:first], bytes.Join(chunks, nil), png[first:]}, nil)
}

func chunk(kind, content string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(content)))
	b = append(append(b, kind...), content...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}

// pngHead is a PNG up to its picture: grey, of one bit a pixel.
func pngHead(width, height uint32) []byte {
	be := binary.BigEndian
	size := be.AppendUint32(be.AppendUint32(nil, width), height)
	return append([]byte("\x89PNG\r\n\x1a\n"), chunk("IHDR", string(size)+"\x01\x00\x00\x00\x00")...)
}

// pngBomb is a PNG of few bytes with many pixels.
func pngBomb(t testing.TB, width, height uint32) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	line := make([]byte, 1+(width+7)/8)
	for range height {
		_, err := w.Write(line)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return bytes.Join([][]byte{pngHead(width, height), chunk("IDAT", packed.String()), chunk("IEND", "")}, nil)
}

// riff is a WebP of chunks.
func riff(chunks ...[]byte) []byte {
	content := append([]byte("WEBP"), bytes.Join(chunks, nil)...)
	return append(binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(len(content))), content...)
}

func riffChunk(kind string, content []byte) []byte {
	b := append(binary.LittleEndian.AppendUint32([]byte(kind), uint32(len(content))), content...)
	if len(content)%2 == 1 {
		b = append(b, 0)
	}
	return b
}

// canvas is a WebP's chunk VP8X.
func canvas(flags byte, width, height int) []byte {
	w, h := width-1, height-1
	return riffChunk("VP8X", []byte{flags, 0, 0, 0, byte(w), byte(w >> 8), byte(w >> 16), byte(h), byte(h >> 8), byte(h >> 16)})
}
