package khatapages

import "slices"

// Photo returns a JPEG with the camera's orientation, 1 to 8, in EXIF's form (CIPA DC-008, 4.6.5).
func Photo(file []byte, orientation byte) []byte {
	exif := append([]byte("\xff\xe1\x00\x22Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00"),
		orientation, 0, 0, 0, 0, 0, 0)
	return slices.Insert(slices.Clone(file), 2, exif...) // after the mark that begins a JPEG
}
