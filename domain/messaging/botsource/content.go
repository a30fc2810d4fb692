package botsource

import (
	"bytes"
	"mime"
	"regexp"
	"slices"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding/charmap"

	"bahi/domain/fault"
)

// The types of a bot's files.
const (
	PDF  = "application/pdf"
	HTML = "text/html"
	Text = "text/plain"
)

// ErrNotText reports a file that is not a text.
var ErrNotText = fault.New(fault.Unsupported, "File must be a PDF or text file")

var (
	markup = regexp.MustCompile(`(?i)^\s*(<!--[^>]*-->\s*)*<(!doctype html|html|head|body)\b`)

	// A PDF may have some bytes before its header (ISO 32000-1, annex H.3.4.1).
	pdfTimeout = 1024
	pdfHeader  = []byte("%PDF-")
)

// MediaType returns the type of a file by its content, or [ErrNotText].
func MediaType(data []byte) (string, error) {
	if bytes.Contains(data[:min(len(data), pdfTimeout)], pdfHeader) {
		return PDF, nil
	}
	text, err := Decode(data, "")
	switch {
	case err != nil:
		return "", err
	case markup.MatchString(text):
		return HTML, nil
	default:
		return Text, nil
	}
}

// Decode returns a text in UTF-8. The byte order mark determines the encoding, else the declaration in the server's content type or in the
// text, by the names of https://encoding.spec.whatwg.org. Without a declaration it is UTF-8 or windows-1252 (CONTRACT.md B12). Decode
// refuses a text with bytes that are invalid in its encoding.
func Decode(data []byte, contentType string) (string, error) {
	switch {
	case bytes.HasPrefix(data, []byte{0xff, 0xfe}):
		return wide(data[2:], 1, 0)
	case bytes.HasPrefix(data, []byte{0xfe, 0xff}):
		return wide(data[2:], 0, 1)
	}
	data, marked := bytes.CutPrefix(data, []byte("\ufeff"))
	if !marked && (!utf8.Valid(data) || utf8.RuneCount(data) > len(data)-sureUTF8) {
		for _, name := range declared(data, contentType) {
			encoding, known := charset.Lookup(name)
			if encoding == nil || known == "windows-1252" { // every byte is valid in windows-1252
				continue
			}
			text, err := encoding.NewDecoder().Bytes(data)
			if err == nil && readable(text) {
				return string(text), nil
			}
		}
	}
	switch {
	case bytes.ContainsFunc(data, neverText):
		return "", ErrNotText
	case utf8.Valid(data):
		return string(data), nil
	case marked || !western(data):
		return "", ErrNotText
	}
	text, err := charmap.Windows1252.NewDecoder().Bytes(data)
	if err != nil {
		return "", ErrNotText
	}
	return string(text), nil
}

const (
	sureUTF8  = 16  // minimum number of continuation bytes of a text that is certainly UTF-8
	maxBroken = 500 // minimum number of letters per invalid one
)

var xmlEncoding = regexp.MustCompile(`^\s*<\?xml[^>]*\sencoding\s*=\s*["']([A-Za-z0-9._:-]+)["']`)

// declared returns the names of encodings in the server's content type and in the text.
func declared(data []byte, contentType string) (names []string) {
	if _, parameters, err := mime.ParseMediaType(contentType); err == nil && parameters["charset"] != "" {
		names = append(names, parameters["charset"])
	}
	if m := xmlEncoding.FindSubmatch(data[:min(len(data), 1024)]); m != nil {
		names = append(names, string(m[1]))
	}
	_, name, _ := charset.DetermineEncoding(data, "text/html")
	return append(names, name)
}

// readable reports whether nearly all characters of a decoded text are readable.
func readable(text []byte) bool {
	return !bytes.ContainsFunc(text, neverText) && bytes.Count(text, []byte("\ufffd"))*maxBroken <= utf8.RuneCount(text)
}

// western reports whether bytes may be a text of windows-1252: all bytes are in the code page, and most characters beyond ASCII are next to
// characters of ASCII, the signs not within words. In Chinese, Japanese and Korean encodings, and in other alphabets, most are not.
func western(data []byte) bool {
	foreign := func(i int) bool {
		return i >= 0 && i < len(data) && data[i] >= utf8.RuneSelf && !slices.Contains(western1252, data[i])
	}
	letter := func(i int) bool {
		return i >= 0 && i < len(data) && unicode.IsLetter(charmap.Windows1252.DecodeByte(data[i]))
	}
	all, joined := 0, 0
	for i, c := range data {
		if slices.Contains([]byte{0x81, 0x8d, 0x8f, 0x90, 0x9d}, c) {
			return false
		}
		if foreign(i) {
			all++
			if foreign(i-1) || foreign(i+1) || !letter(i) && letter(i-1) && letter(i+1) {
				joined++
			}
		}
	}
	return 2*joined <= all
}

// western1252 are the quotes, dashes and spaces of windows-1252, which are next to letters:
// … ‘ ’ “ ” – —, a fixed space, « and ».
var western1252 = []byte{0x85, 0x91, 0x92, 0x93, 0x94, 0x96, 0x97, 0xa0, 0xab, 0xbb}

// neverText reports whether a character occurs in no text.
func neverText(c rune) bool {
	return c < ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\f' && c != '\v' && c != 0x1b && c != 0x1a
}

// wide decodes UTF-16. high and low are the indexes of a unit's high and low byte.
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

// Cell is a part of a line of a document: a cell of a table, or the whole line. From and To are its edges, in characters of average width.
type Cell struct {
	Text     string
	From, To int
}
