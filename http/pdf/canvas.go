package pdf

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/go-text/typesetting/font"
	"github.com/go-text/typesetting/font/opentype"
	"github.com/jung-kurt/gofpdf"
)

// canvas draws lines of text and rules on pages, in points from the top left corner. It writes a page when the page
// ends, and then frees its memory.
type canvas struct {
	pdf      *gofpdf.Fpdf // shared by the pages
	file     *file
	types    *typesetter
	drawing  []func(*gofpdf.Fpdf) // drawing steps of the current page
	face     face
	size     float64
	outlines map[outlineKey]*outline
}

const family = "dejavu"

// styles are gofpdf's names of the faces for ordinary text.
var styles = [...]string{regular: "", bold: "B"}

func newCanvas(w io.Writer, recorded time.Time) *canvas {
	pdf := gofpdf.New("P", "pt", "A4", "")
	pdf.SetCatalogSort(true)
	pdf.SetAutoPageBreak(false, 0)
	// gofpdf appends to the given slices (utf8fontfile.go, generateChecksum), so it gets copies.
	pdf.AddUTF8FontFromBytes(family, styles[regular], bytes.Clone(ttf(regular)))
	pdf.AddUTF8FontFromBytes(family, styles[bold], bytes.Clone(ttf(bold)))
	c := &canvas{pdf: pdf, file: newFile(w), types: newTypesetter(), outlines: map[outlineKey]*outline{}}
	c.recorded(recorded)
	return c
}

// recorded sets the document's dates.
func (c *canvas) recorded(at time.Time) {
	c.pdf.SetCreationDate(at.UTC())
	c.pdf.SetModificationDate(at.UTC())
}

func (c *canvas) draw(it func(*gofpdf.Fpdf)) { c.drawing = append(c.drawing, it) }

// endPage writes the page. It is drawn as a template of gofpdf, which uses the document's fonts and returns its content.
func (c *canvas) endPage() {
	if len(c.drawing) == 0 {
		return
	}
	page := c.pdf.CreateTemplate(func(t *gofpdf.Tpl) {
		c.size = 0
		ink(&t.Fpdf, black)
		for _, draw := range c.drawing {
			draw(&t.Fpdf)
		}
		if t.Err() {
			c.pdf.SetError(t.Error())
		}
	})
	clear(c.drawing)
	c.drawing = c.drawing[:0]
	c.file.content(page.Bytes())
}

// finish writes the last page, the content that footer draws on each page, and the objects that the pages share.
func (c *canvas) finish(footer func(n, of int)) error {
	c.endPage()
	pages := len(c.file.offsets)
	for n := range pages {
		footer(n+1, pages)
		c.endPage()
	}
	c.pdf.AddPage() // never shown: gofpdf writes the outlines only if one of its own pages uses them
	for _, o := range c.outlines {
		if o != nil {
			c.pdf.UseTemplate(o)
		}
	}
	var shared bytes.Buffer
	if err := c.pdf.Output(&shared); err != nil {
		return err
	}
	return c.file.finish(shared.Bytes(), pages)
}

// These are grey levels; 0 is black.
const (
	black = 0
	dim   = 90
	rule  = 150
	faint = 215
	band  = 240
)

// ink sets the colour of text and of outlines.
func (c *canvas) ink(level int) {
	c.draw(func(p *gofpdf.Fpdf) { ink(p, level) })
}

func ink(p *gofpdf.Fpdf, level int) {
	p.SetTextColor(level, level, level)
	p.SetFillColor(level, level, level)
	p.SetDrawColor(level, level, level)
}

func (c *canvas) font(p *gofpdf.Fpdf, f face, size float64) {
	if f != c.face || size != c.size {
		c.face, c.size = f, size
		p.SetFont(family, styles[f], size)
	}
}

// text writes a string that needs no shaping, from x on the baseline y.
func (c *canvas) text(x, y float64, f face, size float64, s string) {
	if s != "" {
		c.draw(func(p *gofpdf.Fpdf) {
			c.font(p, f, size)
			p.Text(x, y, s)
		})
	}
}

// right writes a string that ends at x. It shrinks a string that is wider than its column, so that no digit is cut off.
func (c *canvas) right(x, y float64, f face, size, column float64, s string) {
	width := c.types.width(f, s)
	if width*size > column {
		size = column / width
	}
	c.text(x-width*size, y, f, size, s)
}

// line writes a line of text. base is the face in which it was measured.
func (c *canvas) line(x, y float64, base face, size float64, l line) {
	for _, r := range leftToRight(l.runs) {
		if from := x; r.face.shaped() {
			c.draw(func(p *gofpdf.Fpdf) { c.shaped(p, from, y, base, size, r) })
		} else {
			c.text(x, y, r.face, size, r.text)
		}
		x += r.width * size
	}
}

// shaped draws the outlines of a run, and over them the text in invisible mode for search and copy. It writes
// right-to-left text in visual order, as PDF readers expect.
func (c *canvas) shaped(p *gofpdf.Fpdf, x, y float64, base face, size float64, r run) {
	pen := x
	for _, g := range r.glyphs {
		if o := c.outline(outlineKey{r.face, base, g.id}); o != nil {
			scale := size * enlarge / perEm
			p.UseTemplateScaled(o,
				gofpdf.PointType{X: pen + g.dx*size + o.left*scale, Y: y - g.dy*size - o.top*scale},
				gofpdf.SizeType{Wd: o.size.Wd * scale, Ht: o.size.Ht * scale})
		}
		pen += g.advance * size
	}
	if r.face == perso {
		seen := []rune(r.text)
		slices.Reverse(seen)
		r.text = string(seen)
	}
	c.font(p, base, size)
	stretch := 100.0
	if natural := p.GetStringWidth(r.text); natural > 0 && r.width > 0 {
		stretch = 100 * r.width * size / natural
	}
	p.SetTextRenderingMode(3)
	p.RawWriteStr(fmt.Sprintf("%.2f Tz", stretch))
	p.Text(x, y, r.text)
	p.RawWriteStr("100 Tz")
	p.SetTextRenderingMode(0)
}

func (c *canvas) horizontal(y, thick float64, level int) { c.rule(margin, y, right, y, thick, level) }

func (c *canvas) vertical(x, y1, y2, thick float64, level int) { c.rule(x, y1, x, y2, thick, level) }

func (c *canvas) rule(x1, y1, x2, y2, thick float64, level int) {
	c.draw(func(p *gofpdf.Fpdf) {
		p.SetDrawColor(level, level, level)
		p.SetLineWidth(thick)
		p.Line(x1, y1, x2, y2)
	})
}

func (c *canvas) fill(y, h float64) {
	c.draw(func(p *gofpdf.Fpdf) {
		p.SetFillColor(band, band, band)
		p.Rect(margin, y, right-margin, h, "F")
		ink(p, black)
	})
}

// perEm is the grid of outlines. gofpdf writes coordinates with two decimals and scales with four, so 100 gives a
// precision of a ten-thousandth of an em in both.
const perEm = 100

// embolden is the stroke around an outline in bold text, in units of the grid: only regular weights of these fonts are embedded.
const embolden = 3.0

type outlineKey struct {
	face, base face
	id         font.GID
}

// outline is a glyph as a form XObject. left and top place its box relative to the pen, in units of the grid, up being positive.
type outline struct {
	gofpdf.Template
	id        string
	size      gofpdf.SizeType
	left, top float64
}

// ID returns the name. gofpdf calls it several times per use, and its own implementation hashes the whole outline each
// time.
func (o *outline) ID() string { return o.id }

// outline returns nil for a glyph without ink.
func (c *canvas) outline(k outlineKey) *outline {
	if o, ok := c.outlines[k]; ok {
		return o
	}
	c.outlines[k] = nil
	f := c.types.face(k.face)
	data, ok := f.GlyphDataOutline(k.id)
	if !ok || len(data.Segments) == 0 {
		return nil
	}
	unit := perEm / float64(f.Upem())
	left, bottom, right, top := math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)
	for _, s := range data.Segments {
		for _, p := range s.ArgsSlice() {
			x, y := float64(p.X)*unit, float64(p.Y)*unit
			left, right = min(left, x), max(right, x)
			bottom, top = min(bottom, y), max(top, y)
		}
	}
	left, bottom, right, top = left-embolden, bottom-embolden, right+embolden, top+embolden
	o := &outline{
		id:   fmt.Sprintf("g%d-%d-%d", k.face, k.base, k.id),
		size: gofpdf.SizeType{Wd: right - left, Ht: top - bottom}, left: left, top: top,
	}
	o.Template = gofpdf.CreateTpl(gofpdf.PointType{}, o.size, "P", "pt", "", func(tpl *gofpdf.Tpl) {
		at := func(p opentype.SegmentPoint) (x, y float64) { return float64(p.X)*unit - left, top - float64(p.Y)*unit }
		path(tpl, data.Segments, at)
		if k.base == bold {
			tpl.SetLineJoinStyle("round")
			tpl.SetLineWidth(embolden)
			tpl.DrawPath("FD")
		} else {
			tpl.DrawPath("F")
		}
	})
	c.outlines[k] = o
	return o
}

// path draws the segments. TrueType's quadratic curves become the cubic ones of PDF; gofpdf's CurveTo is not quadratic but PDF's "v".
func path(tpl *gofpdf.Tpl, segments []opentype.Segment, at func(opentype.SegmentPoint) (x, y float64)) {
	var x, y float64
	open := false
	for _, s := range segments {
		switch s.Op {
		case opentype.SegmentOpMoveTo:
			if open {
				tpl.ClosePath()
			}
			open = true
			x, y = at(s.Args[0])
			tpl.MoveTo(x, y)
		case opentype.SegmentOpLineTo:
			x, y = at(s.Args[0])
			tpl.LineTo(x, y)
		case opentype.SegmentOpQuadTo:
			qx, qy := at(s.Args[0])
			ex, ey := at(s.Args[1])
			tpl.CurveBezierCubicTo(x+(qx-x)*2/3, y+(qy-y)*2/3, ex+(qx-ex)*2/3, ey+(qy-ey)*2/3, ex, ey)
			x, y = ex, ey
		case opentype.SegmentOpCubeTo:
			ax, ay := at(s.Args[0])
			bx, by := at(s.Args[1])
			x, y = at(s.Args[2])
			tpl.CurveBezierCubicTo(ax, ay, bx, by, x, y)
		}
	}
	if open {
		tpl.ClosePath()
	}
}
