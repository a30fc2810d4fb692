package ocr

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"

	"github.com/bep/imagemeta"
	"golang.org/x/image/tiff"
	"golang.org/x/image/webp"

	"bahi/domain/access/picture"
)

// maxDecoded limits the memory of one decoded picture, in bytes.
const maxDecoded = 512 << 20

// format has the decoders of one type of pictures. They are fixed here, because any package can add to the registry of package image.
type format struct {
	config func(io.Reader) (image.Config, error)
	decode func(io.Reader) (image.Image, error)
	meta   imagemeta.ImageFormat
}

var formats = map[string]format{
	JPEG: {jpeg.DecodeConfig, jpeg.Decode, imagemeta.JPEG},
	PNG:  {png.DecodeConfig, png.Decode, imagemeta.PNG},
	WebP: {webp.DecodeConfig, webp.Decode, imagemeta.WebP},
	TIFF: {tiff.DecodeConfig, tiff.Decode, imagemeta.TIFF},
}

// pictures reads a picture, or each of a TIFF.
func (s *session) pictures(ctx context.Context, kind string, file []byte) error {
	pages := [][]byte{file}
	if kind == TIFF {
		var err error
		if pages, err = directories(file); err != nil {
			return err
		}
	}
	for i, page := range pages {
		if err := size(kind, page); err != nil {
			return err
		}
		if i == 0 && s.tools.Tesseract == "" {
			return s.missing("tesseract")
		}
	}
	for i, page := range pages {
		// One at a time, because decoding takes much memory.
		if err := decoding.Acquire(ctx, 1); err != nil {
			return err
		}
		from, err := decode(kind, page)
		decoding.Release(1)
		if err != nil {
			return err
		}
		if err := s.recognise(ctx, Page{Number: i + 1, Of: len(pages)}, from); err != nil {
			return err
		}
	}
	return nil
}

// size refuses a picture that is too large, before it is decoded.
func size(kind string, file []byte) error {
	c, err := formats[kind].config(bytes.NewReader(file))
	switch {
	case err != nil || c.Width < 1 || c.Height < 1:
		return ErrBroken
	case c.Width > maxSide || c.Height > maxSide || c.Width*c.Height > maxPixels:
		return ErrPixels
	}
	bytes := 4
	switch c.ColorModel {
	case color.GrayModel:
		bytes = 1
	case color.YCbCrModel:
		bytes = 3
	case color.RGBA64Model, color.NRGBA64Model:
		bytes = 8
	}
	if c.Width*c.Height*bytes > maxDecoded {
		return ErrDecoded
	}
	return nil
}

// decode returns a picture in grey, upright, in the size that suits tesseract best.
func decode(kind string, file []byte) (*scan, error) {
	if err := size(kind, file); err != nil {
		return nil, err
	}
	decoded, err := formats[kind].decode(bytes.NewReader(file))
	if err != nil || decoded.Bounds().Empty() {
		return nil, ErrBroken
	}
	orientation := 1
	if kind != TIFF {
		orientation = picture.Orientation(file, formats[kind].meta)
	}
	return newScan(decoded, orientation), nil
}

// directories returns one TIFF per picture. The header of each copy points to the picture's directory (TIFF 6.0, section 2).
func directories(file []byte) (pages [][]byte, err error) {
	var order binary.ByteOrder = binary.LittleEndian
	if file[0] == 'M' {
		order = binary.BigEndian
	}
	seen := map[uint32]bool{}
	if len(file) < 8 {
		return nil, ErrBroken
	}
	for at := order.Uint32(file[4:]); at != 0; {
		if seen[at] || int64(at)+2 > int64(len(file)) {
			return nil, ErrBroken
		}
		seen[at] = true
		if len(pages) == maxPages {
			return nil, ErrPages
		}
		page := file
		if len(pages) > 0 {
			page = bytes.Clone(file)
			order.PutUint32(page[4:], at)
		}
		pages = append(pages, page)
		next := int64(at) + 2 + 12*int64(order.Uint16(file[at:]))
		if next+4 > int64(len(file)) {
			return nil, ErrBroken
		}
		at = order.Uint32(file[next:])
	}
	if len(pages) == 0 {
		return nil, errors.Join(ErrBroken)
	}
	return pages, nil
}
