package pdf

import (
	"fmt"
	"io"
	"strings"
)

// These are the sizes of the page, in points.
const (
	pageWidth  = 595.28
	pageHeight = 841.89
	margin     = 30.0
	right      = pageWidth - margin
	footerTop  = pageHeight - 44.0
)

const (
	titleSize   = 12.0
	accountSize = 10.5
	kindSize    = 9.0
	headSize    = 8.0
	textSize    = 7.5
	footerSize  = 6.5

	kindWidth = 130 // width of the right end of the head
)

// leading returns the distance between baselines. It is wide, since Devanagari has marks over and under its letters.
func leading(size float64) float64 { return size * 1.45 }

// report is the layout that all documents share: a head and a footer on every page, with text and lines between them.
type report struct {
	*canvas

	kind            string // "Audit trail"
	title           string
	account, ledger string   // under the title; "": none
	scope           []string // under them
	drawn           Drawn
	under           func() // draws the heads of the current table on a new page
	y               float64
}

func newReport(w io.Writer, kind, title string, scope []string, drawn Drawn) *report {
	d := &report{canvas: newCanvas(w, drawn.RecordedAt), kind: kind, title: title, scope: scope, drawn: drawn, under: func() {}}
	d.pdf.SetTitle(d.types.shown(kind+", "+title), true)
	d.pdf.SetSubject(d.types.shown(strings.Join(scope, "; ")), true)
	d.pdf.SetCreator("Bahi", true)
	return d
}

// page begins a page with its head and the heads of the columns.
func (d *report) page() {
	d.endPage()
	d.y = margin
	const wide = right - margin - kindWidth
	t := d.types
	d.right(right, d.y+titleSize, bold, kindSize, kindWidth, d.kind)
	d.block(margin, bold, titleSize, t.first(t.lines(d.title, bold, wide/titleSize-1), 2, bold))
	if d.account != "" {
		ledger := t.first(t.lines(d.ledger, regular, (kindWidth-10)/kindSize), 1, regular)[0]
		d.line(right-ledger.width*kindSize, d.y+accountSize, regular, kindSize, ledger)
		d.block(margin, bold, accountSize, t.first(t.lines(d.account, bold, wide/accountSize-1), 3, bold))
	}
	var under []line
	for _, text := range d.scope {
		under = append(under, t.lines(text, regular, (right-margin)/headSize-1)...)
	}
	d.ink(dim)
	d.block(margin, regular, headSize, t.first(under, 6, regular))
	d.ink(black)
	d.y += 4
	d.under()
}

// block draws lines of text below each other.
func (d *report) block(x float64, f face, size float64, lines []line) {
	for _, l := range lines {
		d.line(x, d.y+size, f, size, l)
		d.y += leading(size)
	}
}

// band draws the heads of columns on a grey band between two rules. draw gets their baseline.
func (d *report) band(draw func(y float64)) {
	height := leading(textSize) + pad
	d.fill(d.y, height)
	d.horizontal(d.y, 0.7, black)
	draw(d.y + textSize + pad/2)
	d.y += height
	d.horizontal(d.y, 0.7, black)
}

// end draws the thin rule below an item.
func (d *report) end(space float64) {
	d.y += space
	d.horizontal(d.y, 0.25, faint)
}

// need begins another page unless height fits on this one.
func (d *report) need(height float64) bool {
	if d.y+height <= footerTop-6 {
		return false
	}
	d.page()
	return true
}

func (d *report) sentence(text string) {
	d.need(leading(textSize) + 4)
	d.text(fieldLeft, d.y+textSize+4, regular, textSize, text)
	d.y += leading(textSize) + 4
}

// check ends the document with the instructions for checking it.
func (d *report) check(what string, more ...string) error {
	d.under = func() {}
	texts := append([]string{fmt.Sprintf("Drawn from store %s at log %s.", d.drawn.StoreID, drawnAt(d.drawn))}, more...)
	if d.drawn.Checkpoint != "" {
		texts = append(texts, "Signed checkpoint of the log:")
		texts = append(texts, strings.Split(strings.TrimRight(d.drawn.Checkpoint, "\n"), "\n")...)
	}
	texts = append(texts, d.types.notes()...)
	if !d.need(leading(headSize) + leading(textSize)*float64(len(texts)+2)) {
		d.y += 2 * pad
	}
	d.text(margin, d.y+headSize, bold, headSize, "How to check this "+what)
	d.y += leading(headSize)
	for _, text := range texts {
		for _, l := range d.types.lines(text, regular, (right-margin-12)/textSize) {
			d.need(leading(textSize))
			d.block(margin+12, regular, textSize, []line{l})
		}
	}
	return d.finish(d.footer)
}

// footer draws the source of the figures and the page's number.
func (d *report) footer(n, of int) {
	d.horizontal(footerTop, 0.5, rule)
	d.ink(dim)
	y := footerTop + leading(footerSize)
	d.right(right, y, regular, footerSize+0.5, 100, fmt.Sprintf("Page %d of %d", n, of))
	d.fit(margin, y, right-margin-100, fmt.Sprintf("Drawn from store %s at %s", d.drawn.StoreID, drawnAt(d.drawn)))
	if d.drawn.Checkpoint != "" {
		d.fit(margin, y+leading(footerSize), right-margin, summary(d.drawn.Checkpoint))
	}
	d.ink(black)
}

// fit writes one line of the footer. A long line gets a smaller size, down to half, before it is shortened.
func (d *report) fit(x, y, width float64, s string) {
	l := d.types.lines(s, regular, 1e9)[0]
	size := footerSize
	if l.width*size > width {
		size = max(width/l.width, footerSize/2)
		l = d.types.first(d.types.lines(s, regular, width/size), 1, regular)[0]
	}
	d.line(x, y, regular, size, l)
}

func drawnAt(from Drawn) string {
	if from.Position == 0 {
		return "position 0, before the first event"
	}
	return fmt.Sprintf("position %d, recorded %s", from.Position, from.RecordedAt.Format("02 Jan 2006 15:04:05.000000 -07:00"))
}

// summary returns a checkpoint's three signed lines: origin, size and root hash (C2SP tlog-checkpoint).
func summary(checkpoint string) string {
	lines := strings.SplitN(checkpoint, "\n", 4)
	if len(lines) < 3 {
		return "Checkpoint " + checkpoint
	}
	return fmt.Sprintf("Checkpoint %s, size %s, root hash %s", lines[0], lines[1], lines[2])
}
