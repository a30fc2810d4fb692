package botsource

import (
	"bytes"
	"regexp"
	"slices"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"bahi/domain/fault"
)

// The types of files that a bot may have.
const (
	PDF  = "application/pdf"
	HTML = "text/html"
	Text = "text/plain"
)

// ErrNotText refuses a file of which no text can be made.
var ErrNotText = fault.New(fault.Unsupported, "File must be a PDF or text file")

var (
	markup = regexp.MustCompile(`(?i)^\s*(<!--[^>]*-->\s*)*<(!doctype html|html|head|body)\b`)

	// A PDF may have some bytes before its header (ISO 32000-1, annex H.3.4.1).
	pdfWithin = 1024
	pdfHeader = []byte("%PDF-")
)

// MediaType returns the type of a file by its content, or [ErrNotText].
func MediaType(data []byte) (string, error) {
	if bytes.Contains(data[:min(len(data), pdfWithin)], pdfHeader) {
		return PDF, nil
	}
	text, err := Decode(data)
	switch {
	case err != nil:
		return "", err
	case markup.MatchString(text):
		return HTML, nil
	default:
		return Text, nil
	}
}

// Decode returns a text in UTF-8 whose encoding is UTF-8, UTF-16 with a byte order mark, or windows-1252 (CONTRACT.md B12).
func Decode(data []byte) (string, error) {
	switch {
	case bytes.HasPrefix(data, []byte{0xff, 0xfe}):
		return wide(data[2:], 1, 0)
	case bytes.HasPrefix(data, []byte{0xfe, 0xff}):
		return wide(data[2:], 0, 1)
	case bytes.ContainsFunc(data, neverText):
		return "", ErrNotText
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if utf8.Valid(data) {
		return string(data), nil
	}
	for _, none := range []byte{0x81, 0x8d, 0x8f, 0x90, 0x9d} { // the code page has no characters for them
		if bytes.IndexByte(data, none) >= 0 {
			return "", ErrNotText
		}
	}
	text, err := charmap.Windows1252.NewDecoder().Bytes(data)
	if err != nil {
		return "", ErrNotText
	}
	return string(text), nil
}

// neverText reports whether a character is in no text.
func neverText(c rune) bool {
	return c < ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\f' && c != '\v' && c != 0x1b && c != 0x1a
}

// wide decodes UTF-16 whose units have their high byte at one place and the low one at another.
func wide(data []byte, high, low int) (string, error) {
	if len(data)%2 != 0 {
		return "", ErrNotText
	}
	units := make([]uint16, len(data)/2)
	for i := range units {
		units[i] = uint16(data[2*i+high])<<8 | uint16(data[2*i+low])
	}
	runes := utf16.Decode(units)
	if slices.ContainsFunc(runes, neverText) {
		return "", ErrNotText
	}
	return string(runes), nil
}
