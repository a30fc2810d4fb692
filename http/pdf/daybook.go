package pdf

import (
	"io"
	"strconv"
	"time"

	"github.com/shopspring/decimal"
)

// Daybook draws the rows of all ledgers day by day. Its methods are called in the order of the document. It holds one
// page in memory.
type Daybook struct {
	*report

	day string // day of the current rows; "" between days
	any bool
}

// These are the columns of a daybook, in points. The amounts are cash IN and OUT, then metal IN and OUT.
const (
	numberRight = margin + 36
	detailsLeft = numberRight + cellGap
	amountWidth = 68.0
	amountStep  = amountWidth + 6
	amountsLeft = right - 4*amountStep
)

// NewDaybook begins a daybook on w. The same calls give the same bytes.
func NewDaybook(w io.Writer, title string, scope []string, drawn Drawn) *Daybook {
	d := &Daybook{report: newReport(w, "Daybook (rojmel)", title, scope, drawn)}
	d.under = d.heads
	d.page()
	return d
}

func (d *Daybook) heads() {
	d.band(func(y float64) {
		d.right(numberRight, y, bold, textSize, numberRight-margin, "No.")
		d.text(detailsLeft, y, bold, textSize, "Account and entry")
		d.columns(func(i int, x float64) {
			d.right(x, y, bold, textSize, amountWidth, []string{"Cash IN ₹", "Cash OUT ₹", "Metal IN g", "Metal OUT g"}[i])
		})
	})
	if d.day != "" {
		d.heading(d.day+" (continued)", "")
	}
}

// columns calls do with the right edge of each column of amounts.
func (d *Daybook) columns(do func(i int, x float64)) {
	for i := range 4 {
		do(i, amountsLeft+float64(i+1)*amountStep)
	}
}

// heading draws a text at each margin, and a rule below them.
func (d *Daybook) heading(left, text string) {
	d.y += pad
	d.text(margin, d.y+headSize, bold, headSize, left)
	d.right(right, d.y+headSize, bold, headSize, 300, text)
	d.y += leading(headSize)
	d.horizontal(d.y, 0.4, rule)
}

// Day begins a day.
func (d *Daybook) Day(date time.Time, cash decimal.Decimal) error {
	d.any = true
	d.need(4 * leading(headSize)) // the heading must not be alone at the foot of a page
	d.y += pad
	d.heading(day(date), "Opening cash "+Rupees.words(cash))
	d.day = day(date)
	return d.file.err
}

// Row draws a row below the name of its account. Its amounts are cash and grams. A short row is never split. A long row
// repeats the account's name on each further page.
func (d *Daybook) Row(account string, row Row) error {
	name := d.types.lines(account, bold, (right-detailsLeft)/textSize-1)
	lines := len(name)
	var entries []entry
	for _, side := range []Side{In, Out} {
		for _, l := range row.of(side) {
			e := entry{side: side, lines: d.details(regular, l.Text), amounts: l.Amounts}
			entries = append(entries, e)
			lines += len(e.lines)
		}
	}
	d.need(leading(textSize)*float64(min(lines, together)) + pad)
	d.y += pad / 2
	named := func() {
		d.right(numberRight, d.y+textSize, regular, textSize, numberRight-margin, strconv.FormatInt(row.ID, 10))
		d.block(detailsLeft, bold, textSize, name)
	}
	named()
	for _, e := range entries {
		if d.need(leading(textSize) * float64(min(len(e.lines), together))) {
			named()
		}
		d.entry(regular, e)
	}
	d.end(pad / 2)
	return d.file.err
}

func (d *Daybook) details(f face, text string) []line {
	return d.types.lines(text, f, (amountsLeft-detailsLeft-cellGap)/textSize)
}

// entry draws a text, and on its first line the amounts of its side.
func (d *Daybook) entry(f face, e entry) {
	for i, l := range e.lines {
		d.need(leading(textSize))
		if i == 0 {
			d.amountsOf(f, e.side, e.amounts)
		}
		d.block(detailsLeft, f, textSize, []line{l})
	}
}

func (d *Daybook) amountsOf(f face, side Side, amounts []decimal.Decimal) {
	d.columns(func(i int, x float64) {
		if n := i / 2; n < len(amounts) && (i%2 == 0) == (side == In) {
			d.right(x, d.y+textSize, f, textSize, amountWidth, []Unit{Rupees, FineGrams}[n].blank(amounts[n]))
		}
	})
}

// Total draws the turnover of a ledger on a day.
func (d *Daybook) Total(ledger string, in, out []decimal.Decimal) error {
	d.need(leading(textSize))
	d.amountsOf(bold, Out, out)
	d.entry(bold, entry{side: In, lines: d.details(bold, "Total "+ledger), amounts: in})
	return d.file.err
}

// Close ends a day.
func (d *Daybook) Close(cash decimal.Decimal) error {
	d.need(leading(headSize) + pad)
	d.day = ""
	d.heading("", "Closing cash "+Rupees.words(cash))
	return d.file.err
}

// Finish ends the daybook.
func (d *Daybook) Finish(opening, closing decimal.Decimal) error {
	if !d.any {
		d.sentence("There are no rows. Opening cash " + Rupees.words(opening) + ", closing cash " + Rupees.words(closing) + ".")
	}
	return d.check("daybook")
}
