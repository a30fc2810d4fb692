// Package khatapages draws khata pages with known entries, to measure the recognition, for tests.
package khatapages

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/go-text/typesetting/di"
	"github.com/go-text/typesetting/font"
	"github.com/go-text/typesetting/font/opentype"
	"github.com/go-text/typesetting/language"
	"github.com/go-text/typesetting/shaping"
	"golang.org/x/image/font/gofont/goitalic"
	"golang.org/x/image/font/gofont/gomono"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"

	"bahi/http/pdf"
)

// The scripts of a page.
const (
	Latin = iota
	Devanagari
	Gujarati
)

// Style is the look of a page.
type Style struct {
	Script  int
	Digits  bool // of the script; else ASCII
	Sides   int  // 1: OUT alone; 2: IN at the left, OUT at the right
	Headers bool // names of the sides and columns
	Ditto   bool // repeated dates and items have marks
	Skew    float64
	Noise   int  // maximum change of a pixel, in levels
	Speckle int  // dark and light dots in 10,000 pixels
	Close   bool // headings of numbers touch
	Font    int  // of Latin text: 0 to 3
	Quality int  // of a JPEG; 0: PNG
	Shadow  bool
	Rows    int // of a side
	Party   string
}

// Row is a line of a page, with its numbers in the form of the books; "" for none.
type Row struct {
	Side, Date, Item, Weight, Touch, Fine, Amount string
}

const (
	width, height = 1654, 2339 // A4 at 200 dots per inch
	size          = 27
	leading       = 56
)

var (
	items = [3][]string{
		{"silver", "payal", "bangle", "chain", "ring", "kada", "tops", "cash", "labour"},
		{"चांदी", "पायल", "कंगन", "चेन", "अंगूठी", "कड़ा", "नकद", "मजदूरी"},
		{"ચાંદી", "પાયલ", "બંગડી", "ચેન", "વીંટી", "કડું", "રોકડ", "મજૂરી"},
	}
	names = [3]map[string]string{
		{"khata": "Khata", "party": "Party:", "in": "IN", "out": "OUT", "date": "Date", "item": "Item", "weight": "Wt", "touch": "Touch",
			"fine": "Fine", "amount": "Rs"},
		{"khata": "खाता", "party": "पार्टी:", "in": "जमा", "out": "नाम", "date": "तारीख", "item": "विवरण", "weight": "वजन", "touch": "टंच",
			"fine": "फाइन", "amount": "रकम"},
		{"khata": "ખાતું", "party": "પાર્ટી:", "in": "જમા", "out": "ઉધાર", "date": "તારીખ", "item": "વિગત", "weight": "વજન", "touch": "ટચ",
			"fine": "ફાઇન", "amount": "રકમ"},
	}
)

// Page draws a page. The same seed and style give the same page.
func Page(seed uint64, s Style) (file []byte, rows []Row) {
	r := rand.New(rand.NewPCG(seed, 14)) // pages of a seed are equal
	p := &page{img: image.NewGray(image.Rect(0, 0, width, height)), Style: s}
	for i := range p.img.Pix {
		p.img.Pix[i] = 245
	}
	for i, f := range pdf.Fonts() {
		p.faces[i] = font.NewFace(f)
	}
	if s.Font > 0 {
		face, err := font.ParseTTF(bytes.NewReader([][]byte{goregular.TTF, gomono.TTF, goitalic.TTF}[s.Font-1]))
		if err != nil {
			panic(err) // it is part of the program
		}
		p.faces[Latin] = face
	}
	p.text(width/2-160, 130, 38, names[s.Script]["khata"]+" "+p.digits("2025-26"))
	if s.Party != "" {
		p.text(120, 200, 30, names[s.Script]["party"]+" "+s.Party)
	}
	for side := range s.Sides {
		rows = append(rows, p.side(r, side)...)
	}
	img := p.img
	if s.Skew != 0 {
		img = turned(img, s.Skew)
	}
	if s.Shadow {
		for y := range height {
			for x := range width {
				at := y*img.Stride + x
				img.Pix[at] = byte(int(img.Pix[at]) * (55 + 45*x/width) / 100)
			}
		}
	}
	if s.Noise > 0 {
		for i, v := range img.Pix {
			img.Pix[i] = byte(min(255, max(0, int(v)+r.IntN(2*s.Noise+1)-s.Noise)))
		}
	}
	for range s.Speckle * width * height / 10_000 {
		at, ink := r.IntN(height-1)*img.Stride+r.IntN(width-1), byte(40+190*r.IntN(2))
		for _, dot := range []int{at, at + 1, at + img.Stride}[:1+r.IntN(3)] {
			img.Pix[dot] = ink
		}
	}
	var b bytes.Buffer
	if s.Quality > 0 {
		_ = jpeg.Encode(&b, img, &jpeg.Options{Quality: s.Quality}) // into memory
	} else {
		_ = png.Encode(&b, img)
	}
	return b.Bytes(), rows
}

type page struct {
	Style

	img    *image.Gray
	faces  [3]*font.Face
	shaper shaping.HarfbuzzShaper
}

// side draws one side of the page.
func (p *page) side(r *rand.Rand, nth int) (rows []Row) {
	left, span := 90, width-180
	if p.Sides == 2 {
		span = width/2 - 110
		left = 70 + nth*(width/2)
	}
	side := []string{"in", "out"}[nth]
	if p.Sides == 1 && p.Headers {
		side = "out"
	}
	part := func(hundredths int) int { return left + span*hundredths/100 }
	// right edges of numbers, left edges of texts
	at := map[string]int{"date": part(0), "item": part(17), "weight": part(50), "touch": part(64), "fine": part(80), "amount": part(100)}
	if p.Sides == 2 { // a long date takes more of a narrow side
		at["item"], at["weight"], at["touch"], at["fine"] = part(22), part(55), part(66), part(82)
	}
	y := 280
	if p.Headers {
		p.text(part(45), y, size, names[p.Script][side])
		y += leading
		for _, name := range []string{"date", "item"} {
			p.text(at[name], y, size-3, names[p.Script][name])
		}
		before, high := 0, size-3
		if p.Close {
			high = size + 4
		}
		for _, name := range []string{"weight", "touch", "fine", "amount"} {
			from := max(before, at[name]-p.draw(0, 0, high, names[p.Script][name], false))
			before = from + p.draw(from, y, high, names[p.Script][name], true)
		}
		y += leading
	}
	day, month, item := 1+r.IntN(3), 4+r.IntN(6), ""
	for i := range p.Rows {
		row := Row{Side: side}
		again := p.Ditto && i > 0 && r.IntN(4) == 0
		if !again && i > 0 {
			day = min(28, day+r.IntN(3))
		}
		row.Date = fmt.Sprintf("2025-%02d-%02d", month, day)
		if again {
			p.text(at["date"]+20, y, size, `"`)
		} else {
			p.text(at["date"], y, size, p.digits(fmt.Sprintf([]string{"%d/%d", "%d-%d-25", "%02d.%02d.2025"}[day%3], day, month)))
		}
		if repeated := p.Ditto && i > 0 && r.IntN(4) == 0; repeated {
			p.text(at["item"]+30, y, size, `"`)
		} else {
			item = items[p.Script][r.IntN(len(items[p.Script]))]
			p.text(at["item"], y, size, item)
		}
		row.Item = item
		if r.IntN(3) == 0 {
			paise := r.Int64N(2_000_000_00)
			whole := r.IntN(2) == 0
			if whole {
				paise -= paise % 100
			}
			paise = max(paise, 100_00)
			row.Amount = trimmed(paise, 2)
			shown := Grouped(paise / 100)
			switch {
			case !whole:
				shown += fmt.Sprintf(".%02d", paise%100)
			case r.IntN(2) == 0:
				shown += "/-"
			}
			p.right(at["amount"], y, size, p.digits(shown))
		} else {
			weight := 1000 + r.Int64N(999_000)
			weight -= weight % []int64{1, 10, 500}[r.IntN(3)]
			touch := []int64{99500, 92000, 92500, 75000, 80000}[r.IntN(5)]
			fine := (weight*touch + 50_000) / 100_000
			row.Weight, row.Touch, row.Fine = trimmed(weight, 3), trimmed(touch, 3), trimmed(fine, 3)
			p.right(at["weight"], y, size, p.digits(row.Weight))
			p.right(at["touch"], y, size, p.digits(row.Touch))
			p.right(at["fine"], y, size, p.digits(row.Fine))
		}
		rows = append(rows, row)
		y += leading
	}
	return rows
}

// trimmed returns a number with places, without zeros at its end.
func trimmed(n int64, places int) string {
	unit := int64(math.Pow10(places))
	text := fmt.Sprintf("%d.%0*d", n/unit, places, n%unit)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// Grouped returns a number with Indian grouping: 1,25,000.
func Grouped(n int64) string {
	text := fmt.Sprint(n)
	if len(text) <= 3 {
		return text
	}
	head, tail := text[:len(text)-3], text[len(text)-3:]
	for len(head) > 2 {
		head, tail = head[:len(head)-2], head[len(head)-2:]+","+tail
	}
	return head + "," + tail
}

// digits returns a text with the digits of the page.
func (p *page) digits(text string) string {
	if !p.Digits || p.Script == Latin {
		return text
	}
	zero := []rune{'0', '०', '૦'}[p.Script]
	return strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' {
			return zero + c - '0'
		}
		return c
	}, text)
}

func (p *page) right(x, y, size int, text string) {
	p.text(x-p.draw(0, 0, size, text, false), y, size, text)
}

func (p *page) text(x, y, size int, text string) { p.draw(x, y, size, text, true) }

// draw draws a text from x on the baseline y, and returns its width.
func (p *page) draw(x, y, size int, text string, ink bool) int {
	pen := float32(x)
	for _, run := range runs(text) {
		face := p.faces[run.script]
		scripts := [3]language.Script{language.Latin, language.Devanagari, language.Gujarati}
		out := p.shaper.Shape(shaping.Input{
			Text: run.text, RunEnd: len(run.text), Direction: di.DirectionLTR, Face: face, Size: fixed.I(size), Script: scripts[run.script],
			Language: "en",
		})
		scale := float32(size) / float32(face.Upem())
		for _, g := range out.Glyphs {
			if outline, ok := face.GlyphData(g.GlyphID).(font.GlyphOutline); ok && ink {
				p.fill(outline, pen+float32(g.XOffset)/64, float32(y)-float32(g.YOffset)/64, scale)
			}
			pen += float32(g.Advance) / 64
		}
	}
	return int(pen) - x
}

type scriptRun struct {
	script int
	text   []rune
}

// runs splits a text by script. A space belongs to the previous run.
func runs(text string) (all []scriptRun) {
	for _, c := range text {
		script := Latin
		switch {
		case c >= 0x900 && c <= 0x97f:
			script = Devanagari
		case c >= 0xa80 && c <= 0xaff:
			script = Gujarati
		}
		if len(all) == 0 || all[len(all)-1].script != script && c != ' ' {
			all = append(all, scriptRun{script: script})
		}
		last := &all[len(all)-1]
		last.text = append(last.text, c)
	}
	return all
}

// fill draws an outline in black.
func (p *page) fill(o font.GlyphOutline, x, y, scale float32) {
	const box = 160
	left, top := int(x)-box/4, int(y)-box*3/4
	z := vector.NewRasterizer(box, box)
	at := func(q opentype.SegmentPoint) (float32, float32) {
		return x + q.X*scale - float32(left), y - q.Y*scale - float32(top)
	}
	for _, s := range o.Segments {
		ax, ay := at(s.Args[0])
		bx, by := at(s.Args[1])
		cx, cy := at(s.Args[2])
		switch s.Op {
		case opentype.SegmentOpMoveTo:
			z.ClosePath()
			z.MoveTo(ax, ay)
		case opentype.SegmentOpLineTo:
			z.LineTo(ax, ay)
		case opentype.SegmentOpQuadTo:
			z.QuadTo(ax, ay, bx, by)
		case opentype.SegmentOpCubeTo:
			z.CubeTo(ax, ay, bx, by, cx, cy)
		}
	}
	z.ClosePath()
	z.Draw(p.img, image.Rect(left, top, left+box, top+box), image.NewUniform(color.Gray{25}), image.Point{})
}

// turned returns a picture rotated by some degrees around its middle.
func turned(from *image.Gray, degrees float64) *image.Gray {
	to := image.NewGray(from.Rect)
	sin, cos := math.Sincos(-degrees * math.Pi / 180)
	for y := range height {
		for x := range width {
			dx, dy := float64(x)-width/2, float64(y)-height/2
			fx, fy := width/2+dx*cos-dy*sin, height/2+dx*sin+dy*cos
			ix, iy := int(math.Floor(fx)), int(math.Floor(fy))
			value := func(u, v int) float64 {
				if u < 0 || v < 0 || u >= width || v >= height {
					return 245
				}
				return float64(from.Pix[v*from.Stride+u])
			}
			ax, ay := fx-float64(ix), fy-float64(iy)
			upper := value(ix, iy)*(1-ax) + value(ix+1, iy)*ax
			lower := value(ix, iy+1)*(1-ax) + value(ix+1, iy+1)*ax
			to.Pix[y*to.Stride+x] = byte(upper*(1-ay) + lower*ay)
		}
	}
	return to
}

// Shipped returns the page docs/khata-page.png, which the documentation reads.
func Shipped() (file []byte, rows []Row) {
	return Page(7, Style{Sides: 1, Headers: true, Rows: 4, Party: "Imran"})
}

// Photo returns a JPEG with the camera's orientation, 1 to 8, in EXIF's form (CIPA DC-008, 4.6.5).
func Photo(file []byte, orientation byte) []byte {
	exif := append([]byte("\xff\xe1\x00\x22Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00"),
		orientation, 0, 0, 0, 0, 0, 0)
	return slices.Insert(slices.Clone(file), 2, exif...) // after the mark that begins a JPEG
}

// Typed returns a PDF with a page of text.
func Typed(lines ...string) []byte {
	content := "BT /F 10 Tf 20 180 Td"
	for _, line := range lines {
		content += " (" + line + ") Tj 0 -20 Td"
	}
	content += " ET"
	return fmt.Appendf(nil, "%%PDF-1.1\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"+
		"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>endobj\n"+
		"4 0 obj<</Length %d>>stream\n%s\nendstream endobj\n5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj\ntrailer<</Root 1 0 "+
		"R>>\n", len(content), content)
}
