package llm

import (
	"bytes"
	"errors"
	"image"
	_ "image/gif" // decoders of the formats that people send
	"image/jpeg"
	_ "image/png" // as above

	"github.com/bep/imagemeta"
	"golang.org/x/image/draw"
	_ "golang.org/x/image/tiff" // as above
	_ "golang.org/x/image/webp"

	"bahi/domain/access/picture"
)

const (
	longestSide = 2_000       // pixels per side for a model
	maxPixels   = 100_000_000 // maximum number of decoded pixels
	quality     = 90
)

// ErrNoPicture is the error of a file that is not a picture, or one that is too large.
var ErrNoPicture = errors.New("the file is no picture that can be read")

// held are the file formats, by their names in package image, that store the camera's orientation.
var held = map[string]imagemeta.ImageFormat{"jpeg": imagemeta.JPEG, "png": imagemeta.PNG, "webp": imagemeta.WebP, "tiff": imagemeta.TIFF}

// Picture converts a JPEG, PNG, GIF, WebP or TIFF file for a model: upright, at most 2,000 pixels per side.
func Picture(data []byte) (Image, error) {
	size, kind, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil || size.Width <= 0 || size.Height <= 0 || size.Width > maxPixels/size.Height {
		return Image{}, ErrNoPicture
	}
	decoded, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return Image{}, ErrNoPicture
	}
	longest := max(size.Width, size.Height, longestSide)
	page := image.NewRGBA(image.Rect(0, 0, max(1, size.Width*longestSide/longest), max(1, size.Height*longestSide/longest)))
	draw.Draw(page, page.Bounds(), image.White, image.Point{}, draw.Src) // behind transparent parts
	draw.ApproxBiLinear.Scale(page, page.Bounds(), decoded, decoded.Bounds(), draw.Over, nil)
	if format, says := held[kind]; says {
		page = picture.Upright(page, picture.Orientation(data, format))
	}
	var file bytes.Buffer
	if err := jpeg.Encode(&file, page, &jpeg.Options{Quality: quality}); err != nil {
		return Image{}, err
	}
	return Image{Type: "image/jpeg", Data: file.Bytes()}, nil
}
