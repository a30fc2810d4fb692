// Package picture converts an uploaded picture into a picture that is safe to show to others. It decodes the upload and draws it again, so
// that only the colours remain: no location, no script after the end, no second file inside.
//
// It ignores the upload's name and declared type. The first bytes determine the type. An animated PNG becomes its still picture. An
// animated WebP has no still picture and is refused. The package drops colour profiles with the other metadata, because they are untrusted,
// and treats the colours as sRGB. So a photo in a wider colour space becomes a little paler.
package picture

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"

	"golang.org/x/image/draw"
	"golang.org/x/image/webp"
	"golang.org/x/sync/semaphore"

	"github.com/bep/imagemeta"

	"bahi/domain/fault"
)

// Limits of an upload (D49 of the contract).
const (
	MaxBytes = 5 << 20
	maxSide  = 6000 // pixels per side
)

// Side is the maximum side of a result, in pixels. Smaller pictures keep their size.
const Side = 1024

const (
	quality = 85 // quality of a JPEG without visible loss

	// maxScans limits the decoding time of a JPEG. The decoder processes the whole picture for each scan of a progressive JPEG. A scan may
	// have as few as twenty bytes. Encoders create about ten scans. The limit is that of libjpeg-turbo's fuzzers (TJPARAM_SCANLIMIT).
	maxScans = 500

	// maxConcurrent is the maximum number of concurrent conversions. Of pictures with at least manyPixels pixels, one is converted at a time.
	// Decoding takes 3 to 8 bytes per pixel. A progressive or four-colour JPEG takes up to 24, so a large one is refused: cameras do not
	// create such files.
	maxConcurrent = 2
	manyPixels    = 12_000_000
)

var (
	// ErrNotImage reports a file that is not a JPEG, PNG or WebP, or is damaged.
	ErrNotImage = fault.New(fault.Malformed, "File must be an image")

	// ErrTooLarge reports a file with more bytes than [MaxBytes] or more pixels per side than [maxSide].
	ErrTooLarge = tooLarge(MaxBytes)
)

func tooLarge(most int64) *fault.Error {
	return fault.Newf(fault.TooLarge, "The picture is too large: at most %d MB and %d x %d pixels", most>>20, maxSide, maxSide)
}

// Picture is a converted picture.
type Picture struct {
	Type          string // image/jpeg, or image/png if it has transparent parts
	Bytes         []byte
	Width, Height int
}

// Studio converts pictures, a few at a time, because each needs much memory.
type Studio struct{ places, large *semaphore.Weighted }

// NewStudio creates a Studio.
func NewStudio() *Studio {
	return &Studio{places: semaphore.NewWeighted(maxConcurrent), large: semaphore.NewWeighted(1)}
}

// Make converts an upload. The result is upright, and its sides have at most [Side] pixels. Make returns [ErrNotImage], [ErrTooLarge], an
// error of reading, or the context's error if the context ends during the wait or the decoding.
func (s *Studio) Make(ctx context.Context, upload io.Reader) (Picture, error) {
	return s.Draw(ctx, upload, MaxBytes, Side)
}

// Draw is [Studio.Make] with limits for the upload's bytes and the result's sides.
func (s *Studio) Draw(ctx context.Context, upload io.Reader, most int64, side int) (Picture, error) {
	large := ErrTooLarge
	if most != MaxBytes {
		large = tooLarge(most)
	}
	if err := s.places.Acquire(ctx, 1); err != nil {
		return Picture{}, fmt.Errorf("wait to decode a picture: %w", err)
	}
	defer s.places.Release(1)
	data, err := io.ReadAll(io.LimitReader(upload, most+1))
	switch {
	case err != nil:
		return Picture{}, fmt.Errorf("read a picture: %w", err)
	case int64(len(data)) > most:
		return Picture{}, large
	}
	f := sniff(data)
	if f == nil {
		return Picture{}, ErrNotImage
	}
	size, err := f.config(bytes.NewReader(data))
	switch {
	case err != nil || size.Width < 1 || size.Height < 1:
		return Picture{}, ErrNotImage
	case size.Width > maxSide || size.Height > maxSide:
		return Picture{}, large
	case f.meta == imagemeta.JPEG && bytes.Count(data, []byte{0xff, 0xda}) > maxScans:
		return Picture{}, ErrNotImage
	}
	if size.Width*size.Height > manyPixels {
		if f.meta == imagemeta.JPEG && (size.ColorModel == color.CMYKModel || progressive(data)) {
			return Picture{}, large
		}
		if err := s.large.Acquire(ctx, 1); err != nil {
			return Picture{}, fmt.Errorf("wait to decode a large picture: %w", err)
		}
		defer s.large.Release(1)
	}
	return f.make(ctx, data, side)
}

// progressive reports whether a JPEG may be progressive: the frame of a progressive JPEG begins with the marker SOF2 (ITU-T T.81, B.1.1.3).
// Other data may resemble the marker, so one large picture in many thousands is refused wrongly.
func progressive(jpeg []byte) bool { return bytes.Contains(jpeg, []byte{0xff, 0xc2, 0x00}) }

// format has the decoders of one type. The registry of package image is not used, because any package can add decoders to it.
type format struct {
	config func(io.Reader) (image.Config, error)
	decode func(io.Reader) (image.Image, error)
	meta   imagemeta.ImageFormat
}

func sniff(data []byte) *format {
	switch {
	case bytes.HasPrefix(data, []byte("\xff\xd8\xff")):
		return &format{jpeg.DecodeConfig, jpeg.Decode, imagemeta.JPEG}
	case bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")):
		return &format{png.DecodeConfig, png.Decode, imagemeta.PNG}
	case len(data) >= 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP":
		return &format{webp.DecodeConfig, webp.Decode, imagemeta.WebP}
	}
	return nil
}

// whileWanted is a reader that fails after the context has ended. That also ends a decoder.
type whileWanted func([]byte) (int, error)

func (read whileWanted) Read(p []byte) (int, error) { return read(p) }

func (f *format) make(ctx context.Context, data []byte, side int) (Picture, error) {
	source := bytes.NewReader(data)
	decoded, err := f.decode(whileWanted(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return source.Read(p)
	}))
	if ctx.Err() != nil {
		return Picture{}, fmt.Errorf("decode a picture: %w", ctx.Err())
	}
	if err != nil || decoded.Bounds().Empty() {
		return Picture{}, ErrNotImage
	}
	drawn := Upright(scale(decoded, side), Orientation(data, f.meta))
	if ctx.Err() != nil {
		return Picture{}, fmt.Errorf("draw a picture: %w", ctx.Err())
	}
	return encode(drawn)
}

// scale draws the picture again, smaller if it is too large. Fully transparent pixels lose their hidden colours.
func scale(from image.Image, side int) *image.RGBA {
	size := from.Bounds().Size()
	longest := max(size.X, size.Y)
	if longest <= side {
		to := image.NewRGBA(image.Rectangle{Max: size})
		draw.Draw(to, to.Rect, from, from.Bounds().Min, draw.Src)
		return to
	}
	smaller := func(of int) int { return max(1, (of*side+longest/2)/longest) }
	to := image.NewRGBA(image.Rect(0, 0, smaller(size.X), smaller(size.Y)))
	draw.CatmullRom.Scale(to, to.Rect, from, from.Bounds(), draw.Src, nil)
	return to
}

func encode(drawn *image.RGBA) (Picture, error) {
	p := Picture{Type: "image/jpeg", Width: drawn.Rect.Dx(), Height: drawn.Rect.Dy()}
	var b bytes.Buffer
	var err error
	if drawn.Opaque() {
		err = jpeg.Encode(&b, drawn, &jpeg.Options{Quality: quality})
	} else {
		p.Type = "image/png"
		err = png.Encode(&b, drawn)
	}
	if err != nil {
		return Picture{}, fmt.Errorf("encode a picture: %w", err)
	}
	p.Bytes = b.Bytes()
	return p, nil
}
