package pdf

import (
	"fmt"
	"strings"

	"github.com/jung-kurt/gofpdf"
	"github.com/shopspring/decimal"
	"rsc.io/qr"
)

// These are the sizes of the page, in points.
const (
	pageWidth  = 595.28
	pageHeight = 841.89
	margin     = 30.0
	right      = pageWidth - margin
	footerTop  = pageHeight - 44.0
)

// document is the layout of one statement.
type document struct {
	*canvas

	s     Statement
	sums  running // of the rows on paper so far
	table table
	head  head
	y     float64
}

// head is the head of every page.
type head struct {
	title, account []line
	under          []line // period and notes
	height         float64
}

const (
	titleSize   = 12.0
	accountSize = 10.5
	underSize   = 8.0
	footerSize  = 6.5
)

func newDocument(c *canvas, s Statement) *document {
	d := &document{canvas: c, s: s, sums: newRunning(s.Opening), table: newMeasured(c.types, &s).table()}
	const wide = right - margin - 130 // the right end of the head names the kind of paper
	t := d.types
	d.head.title = t.first(t.lines(s.Title, bold, wide/titleSize-1), 2, bold)
	d.head.account = t.first(t.lines(s.Account, bold, wide/accountSize-1), 3, bold)
	d.head.under = t.lines("Period: "+period(s.From, s.To), regular, (right-margin)/underSize)
	for _, note := range s.Notes {
		d.head.under = append(d.head.under, t.lines(note, regular, (right-margin)/underSize-1)...)
	}
	d.head.under = t.first(d.head.under, 6, regular)
	d.head.height = leading(titleSize)*float64(len(d.head.title)) + leading(accountSize)*float64(len(d.head.account)) +
		leading(underSize)*float64(len(d.head.under)) + 8

	title := t.shown(s.Title)
	account := t.shown(s.Account)
	d.pdf.SetTitle(strings.TrimSpace(account+", "+d.kind()), true)
	d.pdf.SetAuthor(title, true)
	d.pdf.SetSubject(period(s.From, s.To), true)
	d.pdf.SetCreator("Bahi", true)
	return d
}

// leading returns the distance between baselines. It is wide, since Devanagari has marks over and under its letters.
func leading(size float64) float64 { return size * 1.45 }

// kind returns the title of the paper.
func (d *document) kind() string {
	switch d.s.Side {
	case In:
		return "Statement of IN (jama)"
	case Out:
		return "Statement of OUT (naame)"
	case Both:
	}
	return "Statement of account"
}

// page begins a page with its head and the heads of the columns.
func (d *document) page() {
	d.blankPage()
	d.y = d.heads(d.y)
}

func (d *document) blankPage() {
	d.endPage()
	y := margin
	block := func(lines []line, base face, size float64) {
		for _, l := range lines {
			d.line(margin, y+size, base, size, l)
			y += leading(size)
		}
	}
	d.right(right, y+titleSize, bold, 9, 130, d.kind())
	ledger := d.types.first(d.types.lines(d.s.Ledger, regular, 120/9.0), 1, regular)[0]
	block(d.head.title, bold, titleSize)
	d.line(right-ledger.width*9, y+accountSize, regular, 9, ledger)
	block(d.head.account, bold, accountSize)
	d.ink(dim)
	block(d.head.under, regular, underSize)
	d.ink(black)
	d.y = margin + d.head.height
}

// footer draws the source of the figures and the page's number.
func (d *document) footer(n, of int) {
	d.horizontal(footerTop, 0.5, rule)
	d.ink(dim)
	from := d.s.Drawn
	y := footerTop + leading(footerSize)
	page := fmt.Sprintf("Page %d of %d", n, of)
	d.right(right, y, regular, footerSize+0.5, 100, page)
	d.fit(margin, y, right-margin-100, fmt.Sprintf("Drawn from store %s at %s", from.StoreID, drawnAt(from)))
	if from.Checkpoint != "" {
		d.fit(margin, y+leading(footerSize), right-margin, summary(from.Checkpoint))
	}
	d.ink(black)
}

// fit writes one line of the footer. A long line gets a smaller size, down to half, before it is shortened.
func (d *document) fit(x, y, width float64, s string) {
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

// evidence ends the statement with the instructions for checking it.
func (d *document) evidence() {
	const size = 7.5
	from := d.s.Drawn
	texts := []string{
		fmt.Sprintf("Drawn from store %s at log %s.", from.StoreID, drawnAt(from)),
		fmt.Sprintf("A request with known_at=%d returns the same statement.", from.Position),
	}
	if from.Checkpoint != "" {
		texts = append(texts, "Signed checkpoint of the log:")
		texts = append(texts, strings.Split(strings.TrimRight(from.Checkpoint, "\n"), "\n")...)
	}
	texts = append(texts, d.types.notes()...)
	var lines []line
	for _, text := range texts {
		lines = append(lines, d.types.lines(text, regular, (right-margin-12)/size)...)
	}
	d.code()
	d.y += 10
	if height := leading(size) * float64(len(lines)+1); d.y+min(height, 200) > footerTop {
		d.blankPage()
	}
	d.text(margin, d.y+size, bold, size, "How to check this statement")
	d.y += leading(size)
	for _, l := range lines {
		if d.y+leading(size) > footerTop {
			d.blankPage()
		}
		d.line(margin+12, d.y+size, regular, size, l)
		d.y += leading(size)
	}
}

// codeSize is the size of the QR code: large enough for each camera, and for a print at 300 dots per inch.
const codeSize = 110.0

// code draws the QR code, and its purpose beside it.
func (d *document) code() {
	const size = 7.5
	if d.s.Code == "" {
		return
	}
	c, err := qr.Encode(d.s.Code, qr.L)
	if err != nil { // the text is too long for a code
		return
	}
	if d.y += 10; d.y+codeSize > footerTop {
		d.blankPage()
	}
	x, y, module := margin, d.y, codeSize/float64(c.Size)
	d.draw(func(p *gofpdf.Fpdf) {
		for row := range c.Size {
			for from := 0; from < c.Size; from++ {
				end := from
				for end < c.Size && c.Black(end, row) {
					end++
				}
				if end > from {
					p.Rect(x+float64(from)*module, y+float64(row)*module, float64(end-from)*module, module, "F")
				}
				from = end
			}
		}
	})
	address, _, _ := strings.Cut(d.s.Code, "#")
	for i, text := range []string{"This code has the opening and closing balances, and names the signed log.",
		"The page " + address + " checks them, with the file statement.proof of this account."} {
		for _, l := range d.types.lines(text, regular, (right-margin-codeSize-12)/size) {
			d.line(margin+codeSize+12, d.y+size, []face{bold, regular}[i], size, l)
			d.y += leading(size)
		}
	}
	d.y = y + codeSize
}

// amounts writes one amount per unit into a group of columns.
func (d *document) amounts(columns []column, y float64, f face, amounts []decimal.Decimal, show func(Unit, decimal.Decimal) string) {
	for i, c := range columns {
		d.right(c.right, y, f, d.table.size, c.width, show(d.s.Units[i], amounts[i]))
	}
}
