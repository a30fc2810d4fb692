package picture

import (
	"bytes"
	"image"

	"github.com/bep/imagemeta"
)

// orientation returns how the camera was held: EXIF's tag 0x0112 (CIPA DC-008, 4.6.5), 1 to 8. It is 1
// where nothing is said, and where what is said cannot be read.
func (f *format) orientation(data []byte) int {
	found := 1
	_, err := imagemeta.Decode(imagemeta.Options{
		R: bytes.NewReader(data), ImageFormat: f.meta, Sources: imagemeta.EXIF,
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

// upright turns and mirrors a picture so that it needs no orientation any more.
func upright(from *image.RGBA, orientation int) *image.RGBA {
	if orientation == 1 {
		return from
	}
	width, height := from.Rect.Dx(), from.Rect.Dy()
	right, bottom := width-1, height-1
	if orientation >= 5 {
		width, height = height, width
	}
	to := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			fromX, fromY := x, y
			switch orientation {
			case 2:
				fromX = right - x
			case 3:
				fromX, fromY = right-x, bottom-y
			case 4:
				fromY = bottom - y
			case 5:
				fromX, fromY = y, x
			case 6:
				fromX, fromY = y, bottom-x
			case 7:
				fromX, fromY = right-y, bottom-x
			case 8:
				fromX, fromY = right-y, x
			}
			to.SetRGBA(x, y, from.RGBAAt(fromX, fromY))
		}
	}
	return to
}
