package pdf

import (
	"bytes"
	"embed"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/go-text/typesetting/di"
	"github.com/go-text/typesetting/font"
	"github.com/go-text/typesetting/language"
	"github.com/go-text/typesetting/shaping"
	"github.com/mozillazg/go-unidecode"
	"golang.org/x/text/unicode/norm"
	"golang.org/x/text/unicode/runenames"

	"bahi/domain/person"
)

//go:embed fonts/*.ttf
var fontFiles embed.FS

// face is an embedded font, or for numerals the numbers of one.
type face int

const (
	regular face = iota
	bold
	devanagari
	gujarati
	bengali
	gurmukhi
	odia
	tamil
	telugu
	kannada
	malayalam
	meetei
	santali
	perso
	numerals // digits of the Perso-Arabic script: they are written from left to right
	faceCount
)

// faces has the file of each font. Shaped faces have the script and language of most of their texts. Together they cover
// the languages in the Eighth Schedule of India's constitution.
var faces = [faceCount]struct {
	file     string
	script   language.Script
	language language.Language
}{
	regular:    {file: "DejaVuSansCondensed"},
	bold:       {file: "DejaVuSansCondensed-Bold"},
	devanagari: {"NotoSansDevanagari-Regular", language.Devanagari, "hi"},
	gujarati:   {"NotoSansGujarati-Regular", language.Gujarati, "gu"},
	bengali:    {"NotoSansBengali-Regular", language.Bengali, "bn"},
	gurmukhi:   {"NotoSansGurmukhi-Regular", language.Gurmukhi, "pa"},
	odia:       {"NotoSansOriya-Regular", language.Oriya, "or"},
	tamil:      {"NotoSansTamil-Regular", language.Tamil, "ta"},
	telugu:     {"NotoSansTelugu-Regular", language.Telugu, "te"},
	kannada:    {"NotoSansKannada-Regular", language.Kannada, "kn"},
	malayalam:  {"NotoSansMalayalam-Regular", language.Malayalam, "ml"},
	meetei:     {"NotoSansMeeteiMayek-Regular", language.Meetei_Mayek, "mni"},
	santali:    {"NotoSansOlChiki-Regular", language.Ol_Chiki, "sat"},
	perso:      {"NotoNaskhArabic-Regular", language.Arabic, "ur"},
	numerals:   {"NotoNaskhArabic-Regular", language.Arabic, "ur"},
}

// fonts has the embedded fonts, each parsed on first use. Goroutines may share a *font.Font but not a *font.Face.
var fonts = func() (all [faceCount]func() *font.Font) {
	for f := range all {
		all[f] = sync.OnceValue(func() *font.Font {
			parsed, err := font.ParseTTF(bytes.NewReader(ttf(face(f))))
			if err != nil {
				panic("pdf: embedded font: " + err.Error()) // a broken build; the package's first test finds it
			}
			return parsed.Font
		})
	}
	return all
}()

// ttf returns the file of a font.
func ttf(f face) []byte {
	file, err := fontFiles.ReadFile("fonts/" + faces[f].file + ".ttf")
	if err != nil {
		panic("pdf: embedded font: " + err.Error())
	}
	return file
}

// Fonts returns the embedded fonts for ordinary text: Latin, Devanagari, Gujarati. Tests draw scanned pages with them.
func Fonts() [3]*font.Font {
	return [3]*font.Font{fonts[regular](), fonts[devanagari](), fonts[gujarati]()}
}

func (f face) shaped() bool { return f >= devanagari }

// noGlyph is the rune to show for a character that no font has.
const noGlyph = 0

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

// glyph is one shaped glyph; a run has them from left to right. cluster is the index of its first rune; all glyphs of a cluster share it.
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
	faces  [faceCount]*font.Face // see face
	shaper shaping.HarfbuzzShaper
	words  map[string][]run // shaped words, since names recur from row to row
	ascii  [2][128]float64  // widths of ASCII in regular and bold

	replaced bool // some text is in Latin letters or left out, since no font has it
}

// shapedWords bounds the cache, in words. A full cache starts again.
const shapedWords = 20_000

func newTypesetter() *typesetter {
	t := &typesetter{words: map[string][]run{}}
	for f := range t.ascii {
		for r := range t.ascii[f] {
			t.ascii[f][r] = t.advance(face(f), rune(r))
		}
	}
	return t
}

func (t *typesetter) face(f face) *font.Face {
	if t.faces[f] == nil {
		t.faces[f] = font.NewFace(fonts[f]())
	}
	return t.faces[f]
}

// advance returns a width rounded to thousandths of an em, as gofpdf rounds the widths in the file (utf8fontfile.go, parseHMTXTable).
func (t *typesetter) advance(f face, r rune) float64 {
	id, ok := t.face(f).NominalGlyph(r)
	if !ok {
		return 0
	}
	return math.Round(float64(t.face(f).HorizontalAdvance(id))*1000/float64(t.face(f).Upem())) / 1000
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
	script := language.LookupScript(r)
	own := faceFor(r, script)
	switch {
	case r == zwj || r == zwnj:
		if before.shaped() {
			return before, r
		}
		return base, -1
	case r < 0x20 || r >= 0x7f && r < 0xa0 || r >= 0xffff && !unicode.In(r, unicode.Cf, unicode.Variation_Selector):
		return base, noGlyph
	case unicode.Is(unicode.Prepended_Concatenation_Mark, r):
		return base, noGlyph
	case unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector):
		return base, -1
	case own.shaped() && t.has(own, r):
		return own, r
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
	return base, noGlyph
}

func (t *typesetter) has(f face, r rune) bool {
	_, ok := t.face(f).NominalGlyph(r)
	return ok
}

// faceFor returns the shaped font for r, or regular if there is none.
func faceFor(r rune, script language.Script) face {
	if r >= 0x600 && r < 0x700 && script != language.Inherited { // its punctuation and numbers belong to several scripts
		if unicode.Is(unicode.Nd, r) {
			return numerals
		}
		return perso
	}
	for f := devanagari; f < numerals; f++ {
		if faces[f].script == script {
			return f
		}
	}
	return regular
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
	for _, r := range norm.NFC.String(word) {
		f, show := t.faceOf(r, current, base)
		if show < 0 {
			continue
		}
		if f != current {
			flush()
			current = f
		}
		if show == noGlyph {
			t.replaced = true
			text = append(text, []rune(latinOf(r))...)
			continue
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

// latinOf transliterates a character to Latin letters. A letter without a transliteration has the end of its name in Unicode, and another
// sign its name in parentheses. The result is empty for what has no sound or name, such as a sign that a consonant has no vowel.
func latinOf(r rune) string {
	latin := unidecode.Unidecode(norm.NFKC.String(string(person.Digit(r))))
	joined := strings.Join(strings.Fields(latin), "-")
	name := strings.ToLower(runenames.Name(r))
	switch {
	case joined != "" && plain(joined):
		return joined
	case joined == "" && latin != "": // a space
		return "-"
	case unicode.IsMark(r) && !strings.Contains(name, " vowel sign ") || unicode.Is(unicode.Sk, r) || strings.HasPrefix(name, "<"):
		return ""
	case unicode.In(r, unicode.L, unicode.M) || strings.HasPrefix(name, "regional indicator "):
		return name[strings.LastIndexByte(name, ' ')+1:]
	case name == "":
		return ""
	}
	return "(" + name + ")"
}

// notes returns the notes about the document's text.
func (t *typesetter) notes() []string {
	if !t.replaced {
		return nil
	}
	return []string{"This document has no font for some letters or signs. They are written in Latin letters, or left out."}
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

// enlarge makes Noto's letters larger to match DejaVu's, which have an unusually great x-height.
const enlarge = 1.12

// shape chooses and places the glyphs of one script by HarfBuzz.
func (t *typesetter) shape(f face, text []rune) run {
	const em, scale = 1000, enlarge / 64 / 1000
	direction := di.DirectionLTR
	if f == perso {
		direction = di.DirectionRTL
	}
	out := t.shaper.ShapeNoExtents(shaping.Input{
		Text: text, RunEnd: len(text), Direction: direction, Face: t.face(f), Size: em << 6, Script: faces[f].script, Language: faces[f].language,
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

// clusters cuts a run into the smallest parts that may be on different lines. A cluster wider than width, which no language has, is cut
// between glyphs; its text stays with the first part.
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
	text, read := []rune(r.text), r.glyphs
	if r.face == perso { // in reading order
		read = slices.Clone(read)
		slices.Reverse(read)
	}
	for i := 0; i < len(read); {
		part := run{face: r.face}
		first, end, whole := read[i].cluster, len(text), len(parts)
		for ; i < len(read); i++ {
			if read[i].cluster != first {
				end = read[i].cluster
				break
			}
			g := read[i]
			if part.width+g.advance > width && part.glyphs != nil {
				parts = append(parts, part)
				part = run{face: r.face}
			}
			g.cluster -= first
			part.add([]glyph{g}, 0)
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
		last.add(r.glyphs, len([]rune(last.text)))
		last.text, last.width = last.text+r.text, last.width+r.width
		return
	}
	l.runs = append(l.runs, r)
}

// add adds glyphs after those of the run, in reading order. count is the number of runes before them.
func (r *run) add(glyphs []glyph, count int) {
	behind := slices.Clone(glyphs) // the cache owns the original
	for i := range behind {
		behind[i].cluster += count
	}
	if r.face == perso {
		r.glyphs = append(behind, r.glyphs...)
	} else {
		r.glyphs = append(slices.Clip(r.glyphs), behind...)
	}
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
