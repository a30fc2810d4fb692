package pdf

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

// printed is a statement parsed from its bytes.
type printed struct {
	t     testing.TB
	raw   []byte
	pages [][]placed
}

// placed is a string on a page; y counts from the bottom.
type placed struct {
	x, y float64
	text string
}

func write(t testing.TB, s sample) printed {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, Write(&b, s.whole()))
	return read(t, b.Bytes())
}

var (
	objectAt = regexp.MustCompile(`(?m)^(\d{10}) 00000 [nf] $`)
	contents = regexp.MustCompile(`/Contents \[(\d+) 0 R (\d+) 0 R\]`)
	shows    = regexp.MustCompile(`BT (-?[\d.]+) (-?[\d.]+) Td \(`)
)

// read parses a document by gofpdf: it follows the cross-reference table, inflates the pages and decodes their strings,
// which are UTF-16 according to the ToUnicode maps. So the tests need no other program.
func read(t testing.TB, raw []byte) printed {
	t.Helper()
	p := printed{t: t, raw: raw}
	require.True(t, bytes.HasPrefix(raw, []byte("%PDF-1.")), "not a PDF")
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
		var page []placed
		for _, digits := range m[1:] {
			n, err := strconv.Atoi(string(digits))
			require.NoError(t, err)
			page = append(page, strs(t, inflate(t, objects[n]))...)
		}
		p.pages = append(p.pages, page)
	}
	require.NotEmpty(t, p.pages)
	return p
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

func strs(t testing.TB, content []byte) (all []placed) {
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
		all = append(all, placed{x, y, string(utf16.Decode(text))})
		content = content[i:]
	}
}

// lines returns the lines of a page from top to bottom, with strings from left to right and " | " between them.
func (p printed) lines(page int) (lines []string) {
	all := slices.Clone(p.pages[page])
	slices.SortStableFunc(all, func(a, b placed) int {
		if a.y != b.y {
			return int((b.y - a.y) * 100)
		}
		return int((a.x - b.x) * 100)
	})
	for i, s := range all {
		if i > 0 && s.y == all[i-1].y {
			lines[len(lines)-1] += " | " + s.text
		} else {
			lines = append(lines, s.text)
		}
	}
	return lines
}

// starting returns the lines of all pages with a prefix.
func (p printed) starting(with string) (found []string) {
	for i := range p.pages {
		for _, l := range p.lines(i) {
			if strings.HasPrefix(l, with) {
				found = append(found, l)
			}
		}
	}
	return found
}

// one returns the only line with a prefix.
func (p printed) one(with string) string {
	p.t.Helper()
	found := p.starting(with)
	require.Len(p.t, found, 1, with)
	return found[0]
}
