package api

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// string reads a string. The bytes are good until the next one is read.
func (d *decoder) string() ([]byte, error) {
	d.pos++ // "
	from := d.pos
	ascii := true
	for d.pos < len(d.data) {
		switch c := d.data[d.pos]; {
		case c == '"':
			s := d.data[from:d.pos]
			if !ascii && !utf8.Valid(s) {
				return nil, d.malformed("it is not UTF-8")
			}
			d.pos++
			return s, nil
		case c == '\\':
			return d.escaped(from)
		case c < ' ':
			return nil, d.malformed("a control character must be escaped")
		case c >= utf8.RuneSelf:
			ascii = false
		}
		d.pos++
	}
	return nil, d.malformed("a string does not end")
}

// escaped reads a string on from its first backslash.
func (d *decoder) escaped(from int) ([]byte, error) {
	b := d.buffer[:0]
	b = append(b, d.data[from:d.pos]...)
	defer func() { d.buffer = b }()
	for d.pos < len(d.data) {
		c := d.data[d.pos]
		switch {
		case c == '"':
			if !utf8.Valid(b) {
				return nil, d.malformed("it is not UTF-8")
			}
			d.pos++
			return b, nil
		case c < ' ':
			return nil, d.malformed("a control character must be escaped")
		case c != '\\':
			b = append(b, c)
			d.pos++
		default:
			r, err := d.escape()
			if err != nil {
				return nil, err
			}
			b = utf8.AppendRune(b, r)
		}
	}
	return nil, d.malformed("a string does not end")
}

func (d *decoder) escape() (rune, error) {
	d.pos++ // backslash
	if d.pos == len(d.data) {
		return 0, d.malformed("a string does not end")
	}
	c := d.data[d.pos]
	d.pos++
	switch c {
	case '"', '\\', '/':
		return rune(c), nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'u':
		return d.unicode()
	default:
		return 0, d.malformed("no such escape")
	}
}

func (d *decoder) unicode() (rune, error) {
	r, err := d.hex()
	if err != nil || !utf16.IsSurrogate(r) {
		return r, err
	}
	if len(d.data)-d.pos >= 2 && d.data[d.pos] == '\\' && d.data[d.pos+1] == 'u' {
		d.pos += 2
		low, err := d.hex()
		if err != nil {
			return 0, err
		}
		if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
			return r, nil
		}
	}
	return 0, d.malformed("half of a surrogate pair")
}

func (d *decoder) hex() (rune, error) {
	if len(d.data)-d.pos < 4 {
		return 0, d.malformed("no such escape")
	}
	n, err := strconv.ParseUint(string(d.data[d.pos:d.pos+4]), 16, 16)
	if err != nil {
		return 0, d.malformed("no such escape")
	}
	d.pos += 4
	return rune(n), nil
}
