package pdf

import (
	"strconv"

	"github.com/shopspring/decimal"
)

// entry is a Line with its layout.
type entry struct {
	side    Side
	lines   []line
	amounts []decimal.Decimal
}

// together is the number of lines of a row that always stay on one page. A longer row breaks, between its entries if possible.
const together = 12

// row draws one row: its entries below each other, IN before OUT. The balance is beside the last entry.
func (d *document) row(row *Row) {
	entries, lines := d.entries(row)
	if len(entries) == 0 {
		return
	}
	fits := func(n int) bool { return d.y+float64(n)*d.table.height+pad/2 <= d.bottom() }
	d.y += pad / 2
	if lines <= together && !fits(lines) || !fits(min(lines, 2)) {
		d.y -= pad / 2
		d.breakPage()
		d.y += pad / 2
	}
	named := false // on this page
	for i, e := range entries {
		if n := len(e.lines); i > 0 && n <= together && !fits(n) {
			d.tear()
			named = false
		}
		for j, l := range e.lines {
			if j > 0 && !fits(1) {
				d.tear()
				named = false
			}
			baseline := d.y + d.table.height*0.8
			if !named {
				d.name(row, baseline, i+j > 0)
				named = true
			}
			x := d.table.details.left()
			if j > 0 {
				x += hanging
			}
			d.line(x, baseline, regular, d.table.size, l)
			if j == 0 {
				d.entryAmounts(e, baseline)
				if i == len(entries)-1 {
					d.amounts(Both, baseline, regular, row.Balance, d.s.Owed.balance)
				}
			}
			d.y += d.table.height
		}
	}
	d.end(pad / 2)
}

// tear continues a row on the next page.
func (d *document) tear() {
	d.end(pad / 2)
	d.breakPage()
	d.y += pad / 2
}

// entries lays out the shown entries of a row. A row without entries still has one line.
func (d *document) entries(row *Row) (entries []entry, lines int) {
	t := &d.table
	for _, side := range []Side{In, Out} {
		if d.s.Side != Both && d.s.Side != side {
			continue
		}
		for _, l := range row.of(side) {
			e := entry{side: side, lines: d.types.lines(l.Text, regular, (t.details.width-hanging)/t.size), amounts: l.Amounts}
			entries = append(entries, e)
			lines += len(e.lines)
		}
	}
	if len(entries) == 0 && d.s.Side == Both {
		return []entry{{lines: make([]line, 1)}}, 1
	}
	return entries, lines
}

// name writes a row's date and number, once per page.
func (d *document) name(row *Row, y float64, continued bool) {
	t := &d.table
	d.text(t.dates.left(), y, regular, t.size, day(row.Date))
	d.right(t.numbers.right, y, regular, t.size, t.numbers.width, strconv.FormatInt(row.ID, 10))
	if continued {
		d.text(t.dates.left(), y+t.size*0.9, regular, t.size*0.75, "(continued)")
	}
}

func (d *document) entryAmounts(e entry, y float64) {
	if e.amounts == nil {
		return
	}
	d.amounts(e.side, y, regular, e.amounts, Unit.blank)
	d.sums.add(e.side, e.amounts)
}
