package pdf

import (
	"io"
	"strings"

	"github.com/jung-kurt/gofpdf"
	"github.com/shopspring/decimal"
	"rsc.io/qr"
)

// document is the layout of one statement.
type document struct {
	*report

	s     Statement
	sums  running // sums of the rows on paper so far
	table table
	top   float64 // top of the table on this page
}

// kinds are the titles of the papers.
var kinds = [...]string{Both: "Statement of account", In: "Statement of IN (jama)", Out: "Statement of OUT (naame)"}

func newDocument(w io.Writer, s Statement) *document {
	kind := kinds[s.Side]
	scope := append([]string{"Period: " + period(s.From, s.To)}, s.Notes...)
	d := &document{report: newReport(w, kind, s.Title, scope, s.Drawn), s: s, sums: newRunning(s.Opening)}
	d.account, d.ledger, d.under, d.table = s.Account, s.Ledger, d.heads, newTable(d.types, &s)
	d.pdf.SetTitle(strings.TrimSpace(d.types.shown(s.Account)+", "+kind), true)
	d.pdf.SetAuthor(d.types.shown(s.Title), true)
	return d
}

// codeSize is the size of the QR code: large enough for each camera, and for a print at 300 dots per inch.
const codeSize = 110.0

// code draws the QR code, and its purpose beside it.
func (d *document) code() {
	if d.s.Code == "" {
		return
	}
	c, err := qr.Encode(d.s.Code, qr.L)
	if err != nil { // the text is too long for a code
		return
	}
	d.y += 10
	d.need(codeSize)
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
		d.block(margin+codeSize+12, []face{bold, regular}[i], textSize, d.types.lines(text, regular, (right-margin-codeSize-12)/textSize))
	}
	d.y = y + codeSize
}

// amounts writes one amount per unit into the columns of a side, or of the balance.
func (d *document) amounts(side Side, y float64, f face, amounts []decimal.Decimal, show func(Unit, decimal.Decimal) string) {
	for i, c := range d.table.groups[side] {
		d.right(c.right, y, f, d.table.size, c.width, show(d.s.Units[i], amounts[i]))
	}
}
