package picture

import (
	"bytes"
	"image"

	"github.com/bep/imagemeta"
)

// Orientation returns the camera's orientation: EXIF's tag 0x0112 (CIPA DC-008, 4.6.5), 1 to 8. It is 1 if the tag is missing or
// unreadable.
func Orientation(data []byte, format imagemeta.ImageFormat) int {
	found := 1
	_, err := imagemeta.Decode(imagemeta.Options{
		R: bytes.NewReader(data), ImageFormat: format, Sources: imagemeta.EXIF,
		ShouldHandleTag: func(tag imagemeta.TagInfo) bool { return tag.Namespace == "IFD0" && tag.Tag == "Orientation" },
		HandleTag: func(tag imagemeta.TagInfo) error {
			if value, ok := tag.Value.(uint16); ok && value >= 1 && value <= 8 {
				found = int(value)
			}
			return imagemeta.ErrStopWalking
		},
	})
	if err != nil {
		return 1
	}
	return found
}

// Upright rotates and mirrors a picture so that its orientation becomes 1.
func Upright(from *image.RGBA, orientation int) *image.RGBA {
	if orientation == 1 {
		return from
	}
	width, height := from.Rect.Dx(), from.Rect.Dy()
	if orientation >= 5 {
		width, height = height, width
	}
	to := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			fromX, fromY := Source(orientation, x, y, from.Rect.Dx()-1, from.Rect.Dy()-1)
			to.SetRGBA(x, y, from.RGBAAt(fromX, fromY))
		}
	}
	return to
}

// Source returns where a pixel of the upright picture is in the picture with the orientation. right and bottom are the last column and row
// of the picture with the orientation.
func Source(orientation, x, y, right, bottom int) (fromX, fromY int) {
	switch orientation {
	case 2:
		return right - x, y
	case 3:
		return right - x, bottom - y
	case 4:
		return x, bottom - y
	case 5:
		return y, x
	case 6:
		return y, bottom - x
	case 7:
		return right - y, bottom - x
	case 8:
		return right - y, x
	default:
		return x, y
	}
}
