// Package pdftest reads the documents of package pdf back, for tests.
package pdftest

import (
	"bytes"
	"compress/zlib"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"
)

// Document has the texts that were read back.
type Document struct {
	Raw   []byte
	Pages [][]Placed
	t     testing.TB
}

// Placed is a string on a page, with Y from the bottom.
type Placed struct {
	X, Y float64
	Text string
}

var (
	objectAt = regexp.MustCompile(`(?m)^(\d{10}) 00000 [nf] $`)
	contents = regexp.MustCompile(`/Contents \[(\d+) 0 R (\d+) 0 R\]`)
	shows    = regexp.MustCompile(`BT (-?[\d.]+) (-?[\d.]+) Td \(`)
)

// Read returns the strings of gofpdf's output. It follows the cross-reference table, inflates the pages and decodes their strings, which
// are UTF-16 by the ToUnicode maps. So the tests need no other program.
func Read(t testing.TB, raw []byte) Document {
	t.Helper()
	d := Document{t: t, Raw: raw}
	require.True(t, bytes.HasPrefix(raw, []byte("%PDF-1.")), "no PDF")
	_, tail, ok := bytes.Cut(raw[bytes.LastIndex(raw, []byte("startxref")):], []byte("\n"))
	require.True(t, ok)
	start, err := strconv.Atoi(strings.Fields(string(tail))[0])
	require.NoError(t, err)
	require.True(t, bytes.HasPrefix(raw[start:], []byte("xref\n")), "startxref points elsewhere")

	objects := map[int][]byte{}
	for i, m := range objectAt.FindAllSubmatch(raw[start:], -1) {
		at, err := strconv.Atoi(string(m[1]))
		require.NoError(t, err)
		if at == 0 {
			continue
		}
		name := strconv.Itoa(i+1) + " 0 obj\n"
		require.True(t, bytes.HasPrefix(raw[at:], []byte(name)), "object %d is not at its offset", i+1)
		objects[i+1] = raw[at:]
	}
	for _, i := range slices.Sorted(maps.Keys(objects)) {
		if !bytes.HasPrefix(objects[i], []byte(strconv.Itoa(i)+" 0 obj\n<</Type /Page\n")) {
			continue
		}
		m := contents.FindSubmatch(objects[i])
		require.NotNil(t, m)
		var page []Placed
		for _, digits := range m[1:] {
			n, err := strconv.Atoi(string(digits))
			require.NoError(t, err)
			page = append(page, strs(t, inflate(t, objects[n]))...)
		}
		d.Pages = append(d.Pages, page)
	}
	require.NotEmpty(t, d.Pages)
	return d
}

func inflate(t testing.TB, object []byte) []byte {
	t.Helper()
	_, stream, ok := bytes.Cut(object, []byte("stream\n"))
	require.True(t, ok)
	z, err := zlib.NewReader(bytes.NewReader(stream))
	require.NoError(t, err)
	content, err := io.ReadAll(z)
	require.NoError(t, err)
	return content
}

func strs(t testing.TB, content []byte) (all []Placed) {
	t.Helper()
	for {
		m := shows.FindSubmatchIndex(content)
		if m == nil {
			return all
		}
		x, err := strconv.ParseFloat(string(content[m[2]:m[3]]), 64)
		require.NoError(t, err)
		y, err := strconv.ParseFloat(string(content[m[4]:m[5]]), 64)
		require.NoError(t, err)
		var units []byte
		i := m[1]
		for ; content[i] != ')'; i++ {
			if content[i] == '\\' {
				i++
				if content[i] == 'r' {
					units = append(units, '\r')
					continue
				}
			}
			units = append(units, content[i])
		}
		require.True(t, bytes.HasPrefix(content[i:], []byte(") Tj")), "no operator shows the string")
		require.Zero(t, len(units)%2)
		text := make([]uint16, len(units)/2)
		for j := range text {
			text[j] = uint16(units[2*j])<<8 | uint16(units[2*j+1])
		}
		all = append(all, Placed{x, y, string(utf16.Decode(text))})
		content = content[i:]
	}
}

// Lines returns the lines of a page from top to bottom, strings from left to right with " | " between them.
func (d Document) Lines(page int) (lines []string) {
	all := slices.Clone(d.Pages[page])
	slices.SortStableFunc(all, func(a, b Placed) int {
		if a.Y != b.Y {
			return int((b.Y - a.Y) * 100)
		}
		return int((a.X - b.X) * 100)
	})
	for i, s := range all {
		if i > 0 && s.Y == all[i-1].Y {
			lines[len(lines)-1] += " | " + s.Text
		} else {
			lines = append(lines, s.Text)
		}
	}
	return lines
}

// Starting returns the lines of all pages that begin with a text.
func (d Document) Starting(with string) (found []string) {
	for i := range d.Pages {
		for _, l := range d.Lines(i) {
			if strings.HasPrefix(l, with) {
				found = append(found, l)
			}
		}
	}
	return found
}

// One returns the only line that begins with a text.
func (d Document) One(with string) string {
	d.t.Helper()
	found := d.Starting(with)
	require.Len(d.t, found, 1, with)
	return found[0]
}

// Words returns all lines with single spaces.
func (d Document) Words() string {
	var words []string
	for i := range d.Pages {
		for _, line := range d.Lines(i) {
			words = append(words, strings.Fields(strings.ReplaceAll(line, " | ", " "))...)
		}
	}
	return strings.Join(words, " ")
}
