package pdf

import (
	"bytes"
	_ "embed"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/go-text/typesetting/di"
	"github.com/go-text/typesetting/font"
	"github.com/go-text/typesetting/language"
	"github.com/go-text/typesetting/shaping"
	"golang.org/x/text/unicode/norm"
)

var (
	//go:embed fonts/DejaVuSansCondensed.ttf
	regularTTF []byte
	//go:embed fonts/DejaVuSansCondensed-Bold.ttf
	boldTTF []byte
	//go:embed fonts/NotoSansDevanagari-Regular.ttf
	devanagariTTF []byte
	//go:embed fonts/NotoSansGujarati-Regular.ttf
	gujaratiTTF []byte
)

// fonts has the embedded fonts, parsed on first use. Goroutines may share a *font.Font but not a *font.Face.
var fonts = sync.OnceValue(func() (all [faceCount]*font.Font) {
	for f, ttf := range [faceCount][]byte{regularTTF, boldTTF, devanagariTTF, gujaratiTTF} {
		face, err := font.ParseTTF(bytes.NewReader(ttf))
		if err != nil {
			panic("pdf: embedded font: " + err.Error()) // a broken build; the package's first test finds it
		}
		all[f] = face.Font
	}
	return all
})

// Fonts returns the embedded fonts for ordinary text: Latin, Devanagari, Gujarati. Tests draw scanned pages with them.
func Fonts() [3]*font.Font {
	return [3]*font.Font{fonts()[regular], fonts()[devanagari], fonts()[gujarati]}
}

// face is an embedded font.
type face int

const (
	regular face = iota
	bold
	devanagari
	gujarati
	faceCount
)

func (f face) shaped() bool { return f >= devanagari }

// box is shown for a character that cannot be shown.
const box = '□'

const (
	zwnj = '\u200c'
	zwj  = '\u200d'
)

// run is text in one font. Widths and places are in ems, so they hold in every size.
type run struct {
	face   face
	text   string
	glyphs []glyph // only in shaped faces
	width  float64
}

// glyph is one shaped glyph. cluster is the index of its first rune; all glyphs of a cluster share it.
type glyph struct {
	id      font.GID
	dx, dy  float64 // from the pen
	advance float64
	cluster int
}

// line is the runs of one line.
type line struct {
	runs  []run
	width float64
}

// typesetter turns strings into lines. It belongs to one document: faces and shaper are not safe for concurrent use.
type typesetter struct {
	faces  [faceCount]*font.Face
	shaper shaping.HarfbuzzShaper
	words  map[string][]run // shaped words, since names recur from row to row
	ascii  [2][128]float64  // widths of ASCII in regular and bold
}

// shapedWords bounds the cache, in words. A full cache starts again.
const shapedWords = 20_000

func newTypesetter() *typesetter {
	t := &typesetter{words: map[string][]run{}}
	for f, parsed := range fonts() {
		t.faces[f] = font.NewFace(parsed)
	}
	for f := range t.ascii {
		for r := range t.ascii[f] {
			t.ascii[f][r] = t.advance(face(f), rune(r))
		}
	}
	return t
}

// advance returns a width rounded to thousandths of an em, as gofpdf rounds the widths in the file (utf8fontfile.go, parseHMTXTable).
func (t *typesetter) advance(f face, r rune) float64 {
	id, ok := t.faces[f].NominalGlyph(r)
	if !ok {
		return 0
	}
	return math.Round(float64(t.faces[f].HorizontalAdvance(id))*1000/float64(t.faces[f].Upem())) / 1000
}

// width returns the width of text without shaping: amounts, dates and our own labels.
func (t *typesetter) width(f face, text string) (ems float64) {
	for _, r := range text {
		if r < 128 {
			ems += t.ascii[f][r]
		} else {
			ems += t.advance(f, r)
		}
	}
	return ems
}

// faceOf returns the font for r and the rune to show: -1 for characters that are invisible by definition. before is the face
// of the character before it. Runes above the basic plane never reach gofpdf, whose tables end there.
func (t *typesetter) faceOf(r rune, before, base face) (f face, show rune) {
	switch script := language.LookupScript(r); {
	case r == zwj || r == zwnj:
		if before.shaped() {
			return before, r
		}
		return base, -1
	case r < 0x20 || r >= 0x7f && r < 0xa0 || r >= 0xffff && !unicode.In(r, unicode.Cf, unicode.Variation_Selector):
		return base, box
	case unicode.Is(unicode.Prepended_Concatenation_Mark, r):
		return base, box
	case unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector):
		return base, -1
	case script == language.Devanagari && t.has(devanagari, r):
		return devanagari, r
	case script == language.Gujarati && t.has(gujarati, r):
		return gujarati, r
	case r == '।' || r == '॥':
		if before.shaped() && t.has(before, r) {
			return before, r
		}
		return devanagari, r
	case script == language.Inherited && before.shaped() && t.has(before, r):
		return before, r
	case t.has(base, r) && (script == language.Latin || script == language.Greek || script == language.Cyrillic ||
		script == language.Common || script == language.Inherited):
		return base, r
	}
	return base, box
}

func (t *typesetter) has(f face, r rune) bool {
	_, ok := t.faces[f].NominalGlyph(r)
	return ok
}

// word splits one word into runs by script and shapes those that need it. base is regular or bold.
func (t *typesetter) word(word string, base face) []run {
	if plain(word) {
		return []run{{face: base, text: word, width: t.width(base, word)}}
	}
	key := string(rune('0'+base)) + word
	if runs, ok := t.words[key]; ok {
		return runs
	}
	var runs []run
	var text []rune
	current := base
	flush := func() {
		if len(text) == 0 {
			return
		}
		if current.shaped() {
			runs = append(runs, t.shape(current, text))
		} else {
			runs = append(runs, run{face: current, text: string(text), width: t.width(current, string(text))})
		}
		text = text[:0]
	}
	for _, r := range norm.NFC.String(strings.ToValidUTF8(word, string(box))) {
		f, show := t.faceOf(r, current, base)
		if show < 0 {
			continue
		}
		if f != current {
			flush()
			current = f
		}
		text = append(text, show)
	}
	flush()
	if len(t.words) >= shapedWords {
		clear(t.words)
	}
	t.words[key] = runs
	return runs
}

// plain reports whether a word is printable ASCII, as most are.
func plain(word string) bool {
	for i := range len(word) {
		if word[i] <= ' ' || word[i] >= 0x7f {
			return false
		}
	}
	return true
}

// enlarge makes Noto's letters larger to match those of DejaVu, whose x-height is unusually great.
const enlarge = 1.12

// shape lets HarfBuzz choose and place the glyphs of one script.
func (t *typesetter) shape(f face, text []rune) run {
	const em, scale = 1000, enlarge / 64 / 1000
	script, lang := language.Devanagari, language.Language("hi")
	if f == gujarati {
		script, lang = language.Gujarati, "gu"
	}
	out := t.shaper.ShapeNoExtents(shaping.Input{
		Text: text, RunEnd: len(text), Direction: di.DirectionLTR, Face: t.faces[f], Size: em << 6, Script: script, Language: lang,
	})
	r := run{face: f, text: string(text), glyphs: make([]glyph, len(out.Glyphs))}
	for i, g := range out.Glyphs {
		r.glyphs[i] = glyph{
			id: g.GlyphID, cluster: g.TextIndex(), advance: float64(g.Advance) * scale,
			dx: float64(g.XOffset) * scale, dy: float64(g.YOffset) * scale,
		}
		r.width += r.glyphs[i].advance
	}
	return r
}

// clusters cuts a run into the smallest parts that may be on different lines. No language has a word with a cluster wider than
// width; such a cluster is cut between glyphs, and its text stays with the first of them.
func (t *typesetter) clusters(r run, width float64) (parts []run) {
	if !r.face.shaped() {
		for _, c := range r.text {
			width := t.width(r.face, string(c))
			if n := len(parts); n > 0 && width == 0 && unicode.Is(unicode.M, c) {
				parts[n-1].text += string(c)
				continue
			}
			parts = append(parts, run{face: r.face, text: string(c), width: width})
		}
		return parts
	}
	text := []rune(r.text)
	for i := 0; i < len(r.glyphs); {
		part := run{face: r.face}
		first, end, whole := r.glyphs[i].cluster, len(text), len(parts)
		for ; i < len(r.glyphs); i++ {
			if r.glyphs[i].cluster != first {
				end = r.glyphs[i].cluster
				break
			}
			g := r.glyphs[i]
			if part.width+g.advance > width && part.glyphs != nil {
				parts = append(parts, part)
				part = run{face: r.face}
			}
			g.cluster -= first
			part.glyphs = append(part.glyphs, g)
			part.width += g.advance
		}
		parts = append(parts, part)
		parts[whole].text = string(text[first:end])
	}
	return parts
}

// lines wraps text to a width in ems. White space of any kind is one space. Text without a visible character gives one empty line.
func (t *typesetter) lines(text string, base face, width float64) []line {
	var done []line
	var current line
	space := t.width(base, " ")
	next := func() {
		done = append(done, current)
		current = line{}
	}
	for word := range strings.FieldsSeq(text) {
		runs := t.word(word, base)
		if len(runs) == 0 {
			continue
		}
		whole := widthOf(runs)
		if current.runs != nil && current.width+space+whole > width {
			next()
		}
		if current.runs != nil {
			current.append(run{face: base, text: " ", width: space})
		}
		if whole <= width {
			for _, r := range runs {
				current.append(r)
			}
			continue
		}
		for _, r := range runs {
			for _, part := range t.clusters(r, width) {
				if current.runs != nil && current.width+part.width > width {
					next()
				}
				current.append(part)
			}
		}
	}
	if current.runs != nil || done == nil {
		next()
	}
	return done
}

func widthOf(runs []run) (ems float64) {
	for _, r := range runs {
		ems += r.width
	}
	return ems
}

// append adds r at the end of the line, joined with the last run if both have one font.
func (l *line) append(r run) {
	l.width += r.width
	if n := len(l.runs); n > 0 && l.runs[n-1].face == r.face {
		last := &l.runs[n-1]
		count := len([]rune(last.text))
		glyphs := slices.Clip(last.glyphs) // the cache owns the original
		for _, g := range r.glyphs {
			g.cluster += count
			glyphs = append(glyphs, g)
		}
		last.text, last.glyphs, last.width = last.text+r.text, glyphs, last.width+r.width
		return
	}
	l.runs = append(l.runs, r)
}

// shown returns the text that lines would show.
func (t *typesetter) shown(text string) string {
	var b strings.Builder
	for _, r := range t.lines(text, regular, math.Inf(1))[0].runs {
		b.WriteString(r.text)
	}
	return b.String()
}

// first keeps at most n lines, and ends a cut text with an ellipsis.
func (t *typesetter) first(lines []line, n int, base face) []line {
	if len(lines) <= n {
		return lines
	}
	lines = lines[:n]
	lines[n-1].append(run{face: base, text: "…", width: t.width(base, "…")})
	return lines
}
