package picture_test

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/image/webp"

	"bahi/domain/access/picture"
)

func mustMake(t testing.TB, upload []byte) (picture.Picture, image.Image) {
	t.Helper()
	p, err := picture.NewStudio().Make(t.Context(), bytes.NewReader(upload))
	require.NoError(t, err)
	return p, shown(t, p)
}

// shown decodes a result as its declared type.
func shown(t testing.TB, p picture.Picture) image.Image {
	t.Helper()
	decode := map[string]func(io.Reader) (image.Image, error){"image/jpeg": jpeg.Decode, "image/png": png.Decode}[p.Type]
	require.NotNil(t, decode, p.Type)
	m, err := decode(bytes.NewReader(p.Bytes))
	require.NoError(t, err)
	require.Equal(t, image.Pt(p.Width, p.Height), m.Bounds().Size())
	require.LessOrEqual(t, max(p.Width, p.Height), picture.Side)
	require.NotContains(t, string(p.Bytes), marker)
	return m
}

func refused(t testing.TB, upload []byte, why error) {
	t.Helper()
	_, err := picture.NewStudio().Make(t.Context(), bytes.NewReader(upload))
	require.ErrorIs(t, err, why)
}

// near reports whether two colours are similar.
func near(t testing.TB, want color.Color, got color.Color, where string) {
	t.Helper()
	wr, wg, wb, wa := want.RGBA()
	gr, gg, gb, ga := got.RGBA()
	for i, d := range []int{int(wr) - int(gr), int(wg) - int(gg), int(wb) - int(gb), int(wa) - int(ga)} {
		require.Less(t, max(d, -d), 24<<8, "%s: channel %d: want %v, got %v", where, i, want, got)
	}
}

func TestPicturesOfAllFormatsAreMade(t *testing.T) {
	t.Parallel()
	for name, decode := range map[string]func(io.Reader) (image.Image, error){
		"cmyk.jpeg": jpeg.Decode, "progressive.jpeg": jpeg.Decode,
		"lossy.webp": webp.Decode, "lossless.webp": webp.Decode, "alpha.webp": webp.Decode,
	} {
		upload := file(t, name)
		before, err := decode(bytes.NewReader(upload))
		require.NoError(t, err)
		p, after := mustMake(t, upload)
		size := before.Bounds().Size()
		require.Equal(t, size, after.Bounds().Size())
		if name == "alpha.webp" {
			require.Equal(t, "image/png", p.Type)
		} else {
			require.Equal(t, "image/jpeg", p.Type, name)
			continue
		}
		for y := 0; y < size.Y; y += 7 {
			for x := 0; x < size.X; x += 7 {
				near(t, before.At(x, y), after.At(x, y), name)
			}
		}
	}
}

func TestPicturesOfAllDepthsKeepTheirColours(t *testing.T) {
	t.Parallel()
	area := image.Rect(0, 0, 32, 32)
	half := color.NRGBA64{R: 0xffff, G: 0x8000, B: 0x4000, A: 0x8000}
	full := color.NRGBA64{R: 0xffff, G: 0x8000, B: 0x4000, A: 0xffff}
	fill := func(m interface {
		image.Image
		Set(x, y int, c color.Color)
	}, c color.Color) image.Image {
		for y := range 32 {
			for x := range 32 {
				m.Set(x, y, c)
			}
		}
		return m
	}
	for name, m := range map[string]image.Image{
		"16 bits":            fill(image.NewNRGBA64(area), full),
		"16 bits with alpha": fill(image.NewNRGBA64(area), half),
		"grey":               fill(image.NewGray(area), full),
		"16 bits of grey":    fill(image.NewGray16(area), full),
		"a palette":          fill(image.NewPaletted(area, color.Palette{full, half}), full),
	} {
		p, after := mustMake(t, asPNG(t, m))
		near(t, m.At(9, 9), after.At(9, 9), name)
		require.Equal(t, name == "16 bits with alpha", p.Type == "image/png", name)
	}
	_, after := mustMake(t, asJPEG(t, fill(image.NewGray(area), full)))
	near(t, color.GrayModel.Convert(full), after.At(9, 9), "grey JPEG")
	p, _ := mustMake(t, asPNG(t, image.NewGray(image.Rect(0, 0, 1, 1))))
	require.Equal(t, [2]int{1, 1}, [2]int{p.Width, p.Height})
}

func TestALargePictureIsMadeSmaller(t *testing.T) {
	t.Parallel()
	for _, size := range []struct{ width, height, wantWidth, wantHeight int }{
		{1024, 1024, 1024, 1024}, {1025, 100, 1024, 100}, {2048, 1024, 1024, 512}, {1500, 3000, 512, 1024}, {6000, 1, 1024, 1},
	} {
		p, m := mustMake(t, asPNG(t, corners(size.width, size.height)))
		require.Equal(t, [2]int{size.wantWidth, size.wantHeight}, [2]int{p.Width, p.Height})
		near(t, color.RGBA{255, 0, 0, 255}, m.At(0, 0), "the corner")
	}
}

func TestAPictureStandsUpright(t *testing.T) {
	t.Parallel()
	m := corners(64, 32)
	red, green, blue, white := m.At(0, 0), m.At(0, 31), m.At(63, 0), m.At(63, 31)
	// These are the corners, row by row, of the upright picture. EXIF's orientation states which side of the scene the stored first row and
	// column are (CIPA DC-008, 4.6.5).
	for orientation, want := range [][4]color.Color{
		1: {red, blue, green, white}, 2: {blue, red, white, green}, 3: {white, green, blue, red}, 4: {green, white, red, blue},
		5: {red, green, blue, white}, 6: {green, red, white, blue}, 7: {white, blue, green, red}, 8: {blue, white, red, green},
		9: {red, blue, green, white}, 0: {red, blue, green, white},
	} {
		for name, upload := range map[string][]byte{
			"JPEG": withSegments(asJPEG(t, m), segment(0xe1, "Exif\x00\x00"+string(exif(orientation)))),
			"PNG":  withChunks(asPNG(t, m), chunk("eXIf", string(exif(orientation)))),
		} {
			require.Contains(t, string(upload), marker)
			p, got := mustMake(t, upload)
			width, height := 64, 32
			if orientation >= 5 && orientation <= 8 {
				width, height = 32, 64
			}
			require.Equal(t, [2]int{width, height}, [2]int{p.Width, p.Height}, "%s %d", name, orientation)
			for i, at := range []image.Point{{2, 2}, {width - 3, 2}, {2, height - 3}, {width - 3, height - 3}} {
				near(t, want[i], got.At(at.X, at.Y), name)
			}
		}
	}
}

func TestNothingButColoursComesThrough(t *testing.T) {
	t.Parallel()
	photo, drawing := asJPEG(t, corners(64, 32)), asPNG(t, corners(64, 32))
	still := file(t, "lossy.webp")
	zip := "PK\x03\x04" + marker + "PK\x05\x06" + strings.Repeat("\x00", 18)
	for name, upload := range map[string][]byte{
		"GPS":              withSegments(photo, segment(0xe1, "Exif\x00\x00"+string(exif(1)))),
		"XMP":              withSegments(photo, segment(0xe1, "http://ns.adobe.com/xap/1.0/\x00"+marker)),
		"ICC in a JPEG":    withSegments(photo, segment(0xe2, "ICC_PROFILE\x00\x01\x01"+marker)),
		"IPTC":             withSegments(photo, segment(0xed, "Photoshop 3.0\x00"+marker)),
		"a JPEG's comment": withSegments(photo, segment(0xfe, marker)),
		"HTML behind":      append(bytes.Clone(photo), "<html>"+marker+"</html>"...),
		"broken EXIF":      withSegments(photo, segment(0xe1, "Exif\x00\x00II*\x00\xff\xff\xff\xff"+marker)),
		"a text":           withChunks(drawing, chunk("tEXt", "Comment\x00"+marker)),
		"ICC in a PNG":     withChunks(drawing, chunk("iCCP", marker)),
		"a ZIP behind":     append(bytes.Clone(drawing), zip...),
		"an APNG":          withChunks(drawing, chunk("acTL", "\x00\x00\x00\x02\x00\x00\x00\x00"), chunk("fcTL", marker)),
		"a WebP's EXIF":    riff(still[12:], riffChunk("EXIF", []byte(marker))),
		"behind a WebP":    append(bytes.Clone(still), marker...),
	} {
		require.Contains(t, string(upload), marker)
		p, _ := mustMake(t, upload)
		require.Equal(t, "image/jpeg", p.Type, name)
		for _, left := range []string{"Exif", "ICC", "PK\x03\x04", "http", "<"} {
			require.NotContains(t, string(p.Bytes[:min(len(p.Bytes), 600)]), left, name)
		}
	}
	hidden := image.NewNRGBA(image.Rect(0, 0, 8, 8))
	for i := range hidden.Pix {
		if i%4 != 3 {
			hidden.Pix[i] = marker[i%len(marker)]
		}
	}
	_, got := mustMake(t, asPNG(t, hidden))
	require.Equal(t, color.NRGBA{}, got.At(3, 3), "the colours of what is transparent")
}

func TestWhatIsNoPictureIsRefused(t *testing.T) {
	t.Parallel()
	photo, drawing, still := asJPEG(t, corners(64, 32)), asPNG(t, corners(64, 32)), file(t, "lossy.webp")
	var moving bytes.Buffer
	require.NoError(t, gif.Encode(&moving, corners(8, 8), nil))
	frame := riffChunk("ANMF", append(make([]byte, 16), still[12:]...))
	for name, upload := range map[string][]byte{
		"nothing":           {},
		"a text":            []byte("photo.png"),
		"GIF":               moving.Bytes(),
		"SVG":               []byte(`<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`),
		"HTML":              []byte("<!DOCTYPE html>" + marker),
		"GIF and JPEG":      append([]byte("GIF89a"), photo...),
		"only the name":     []byte("\x89PNG\r\n\x1a\n"),
		"no pixels":         bytes.Join([][]byte{pngHead(0, 5), chunk("IDAT", ""), chunk("IEND", "")}, nil),
		"a broken checksum": bytes.Replace(drawing, []byte("IDAT"), []byte("IDAX"), 1),
		"half a JPEG":       photo[:len(photo)/2],
		"half a PNG":        drawing[:len(drawing)/2],
		"half a WebP":       still[:len(still)/2],
		"an animated WebP":  riff(canvas(1<<1, 16, 16), riffChunk("ANIM", make([]byte, 6)), frame),
		"RIFF that is WAVE": []byte("RIFF\x04\x00\x00\x00WAVE"),
	} {
		_, err := picture.NewStudio().Make(t.Context(), bytes.NewReader(upload))
		require.EqualError(t, err, "File must be an image", name)
	}
}

func TestWhatIsTooLargeIsRefused(t *testing.T) {
	t.Parallel()
	photo := asJPEG(t, corners(64, 32))
	exact := bytes.Join([][]byte{photo, make([]byte, picture.MaxBytes-len(photo))}, nil)
	mustMake(t, exact)
	refused(t, append(exact, 0), picture.ErrTooLarge)
	mustMake(t, pngBomb(t, 6000, 1))
	refused(t, pngBomb(t, 6001, 1), picture.ErrTooLarge)
	refused(t, pngBomb(t, 1, 6001), picture.ErrTooLarge)
	require.EqualError(t, picture.ErrTooLarge, "The picture is too large: at most 5 MB and 6000 x 6000 pixels")
}

// Cameras make large pictures, but none of the kinds that take three times the memory.
func TestALargeJPEGIsAPlainOne(t *testing.T) {
	t.Parallel()
	const three, four = "\x03\x01\x22\x00\x02\x11\x01\x03\x11\x01", "\x04\x01\x22\x00\x02\x11\x01\x03\x11\x01\x04\x22\x00"
	jpeg := func(frame byte, size, colours string) []byte {
		return bytes.Join([][]byte{[]byte("\xff\xd8"), segment(frame, "\x08"+size+colours), segment(0xda, "\x01\x01\x00\x00\x3f\x00")}, nil)
	}
	const large, small = "\x17\x70\x17\x70", "\x07\xd0\x17\x70" // 6000 x 6000, 6000 x 2000
	refused(t, jpeg(0xc2, large, three), picture.ErrTooLarge)
	refused(t, jpeg(0xc0, large, four), picture.ErrTooLarge)
	for _, broken := range [][]byte{jpeg(0xc0, large, three), jpeg(0xc2, small, three), jpeg(0xc0, small, four)} {
		refused(t, broken, picture.ErrNotImage) // for its declared pixels, which are missing
	}
}

// A test that is not parallel runs alone in its package, so it can count allocations.
func TestBombsAreRefusedBeforeTheyUnpack(t *testing.T) { //nolint:paralleltest // it measures the process
	scan := segment(0xda, "\x01\x01\x00\x00\x3f\x00")
	head := segment(0xc2, "\x08\x17\x70\x17\x70\x01\x01\x11\x00") // progressive, 6000 x 6000
	huge := riffChunk("VP8L", []byte{0x2f, 0xff, 0xff, 0xff, 0x0f, 0, 0})
	for name, upload := range map[string][]byte{
		"30000 x 30000 pixels":                  pngBomb(t, 30_000, 30_000),
		"the maximum that a PNG can declare":    append(pngHead(1<<31-1, 1<<31-1), chunk("IDAT", "")...),
		"the maximum that a JPEG can declare":   append([]byte{0xff, 0xd8}, segment(0xc0, "\x08\xff\xff\xff\xff\x01\x01\x11\x00")...),
		"a WebP with more pixels than declared": riff(canvas(0, 1, 1), huge),
		"16384 x 16384 in a WebP":               riff(huge),
		"a thousand scans":                      bytes.Join([][]byte{{0xff, 0xd8}, head, bytes.Repeat(scan, 1000)}, nil),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		_, err := picture.NewStudio().Make(t.Context(), bytes.NewReader(upload))
		took := time.Since(began)
		runtime.ReadMemStats(&after)
		require.Error(t, err, name)
		require.True(t, errors.Is(err, picture.ErrTooLarge) || errors.Is(err, picture.ErrNotImage), name)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4*len(upload)+1<<20), name)
		require.Less(t, took, 5*time.Second, name)
	}

	largest := pngBomb(t, 6000, 6000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	mustMake(t, largest)
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(300<<20))
}

// slowReader is an upload that reports its first read and then waits.
type slowReader struct {
	began chan<- struct{}
	wait  <-chan struct{}
	io.Reader
}

func (s *slowReader) Read(p []byte) (int, error) {
	if s.began != nil {
		s.began <- struct{}{}
		s.began = nil
		<-s.wait
	}
	return s.Reader.Read(p)
}

func TestTwoPicturesAreMadeAtOnce(t *testing.T) {
	t.Parallel()
	studio := picture.NewStudio()
	upload := asPNG(t, corners(8, 8))
	began, wait := make(chan struct{}, 3), make(chan struct{})
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			_, err := studio.Make(t.Context(), &slowReader{began, wait, bytes.NewReader(upload)})
			if err != nil {
				t.Error(err)
			}
		})
	}
	<-began
	<-began
	ctx, cancel := context.WithCancel(t.Context())
	third := make(chan error)
	go func() {
		_, err := studio.Make(ctx, &slowReader{began, wait, bytes.NewReader(upload)})
		third <- err
	}()
	cancel()
	require.ErrorIs(t, <-third, context.Canceled)
	require.Empty(t, began, "the third was not read")
	close(wait)
	all.Wait()
	_, err := studio.Make(t.Context(), bytes.NewReader(upload))
	require.NoError(t, err)
}

func TestItEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	upload := bytes.NewReader(asPNG(t, corners(64, 64)))
	studio := picture.NewStudio()
	_, err := studio.Make(ctx, readerFunc(func(p []byte) (int, error) {
		cancel()
		return upload.Read(p)
	}))
	require.ErrorIs(t, err, context.Canceled)
	away := errors.New("the disk is away")
	_, err = studio.Make(t.Context(), iotest.ErrReader(away))
	require.ErrorIs(t, err, away)
}

type readerFunc func([]byte) (int, error)

func (read readerFunc) Read(p []byte) (int, error) { return read(p) }

// FuzzPicture tries uploads. Every result is a picture of its type, and has nothing of the upload's other data.
func FuzzPicture(f *testing.F) {
	// The seeds are short: with long ones the fuzzer spends its time on shortening its finds.
	f.Add(file(f, "lossless.webp"))
	f.Add(asPNG(f, corners(16, 8)))
	f.Add(asPNG(f, image.NewNRGBA64(image.Rect(0, 0, 3, 3))))
	f.Add(withSegments(asJPEG(f, corners(16, 8)), segment(0xe1, "Exif\x00\x00"+string(exif(6)))))
	f.Add(withChunks(asPNG(f, corners(16, 8)), chunk("eXIf", string(exif(5)))))
	f.Add(pngBomb(f, 200, 200))
	f.Add(riff(canvas(1<<4, 16, 16), riffChunk("ALPH", make([]byte, 257)), riffChunk("VP8L", file(f, "lossless.webp")[20:])))
	studio := picture.NewStudio()
	f.Fuzz(func(t *testing.T, upload []byte) {
		if len(upload) > 64<<10 {
			return
		}
		p, err := studio.Make(t.Context(), bytes.NewReader(append(bytes.Clone(upload), marker...)))
		if err != nil {
			require.True(t, errors.Is(err, picture.ErrNotImage) || errors.Is(err, picture.ErrTooLarge), err)
			return
		}
		shown(t, p)
	})
}
