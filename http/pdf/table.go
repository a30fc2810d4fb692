package pdf

import (
	"strconv"
	"time"

	"github.com/shopspring/decimal"
)

// table is the grid of a statement: the contents determine the widths of the columns, and Details gets the remaining
// width.
type table struct {
	size           float64
	height         float64 // height of one line
	dates, numbers column
	details        column
	groups         groups[column]
}

// groups has the columns of each side, one per unit, and at [Both] those of the balance. A hidden group is nil.
type groups[T any] [3][]T

// The heads of the groups, and their order.
var (
	groupHeads = [...]string{Both: "Balance", In: "IN (jama)", Out: "OUT (naame)"}
	inOrder    = [...]Side{In, Out, Both}
)

// column has the right edge of its amounts, and the width for text.
type column struct{ right, width float64 }

func (c column) left() float64 { return c.right - c.width }

const (
	gutter     = 8.0  // between columns, half on each side of a rule
	wideGutter = 13.0 // between a number and its details: pdftotext joins words that are closer than 1.5 ems
	pad        = 3.4  // between rows
	minDetails = 150.0
	minAmount  = 4.5 // ems
	hanging    = 6.0 // indent of the further lines of an entry
)

// newTable measures the columns in ems and places them.
func newTable(t *typesetter, s *Statement) table {
	dates := t.width(bold, "Date")
	for month := range 12 { // all digits are equally wide
		dates = max(dates, t.width(regular, day(time.Date(2000, time.Month(month+1), 1, 0, 0, 0, 0, time.UTC))))
	}
	numbers := max(t.width(bold, "No."), t.width(regular, strconv.FormatInt(s.Extent.ID, 10)))
	total := s.total(running{In: s.Extent.In, Out: s.Extent.Out})
	held := groups[[]decimal.Decimal]{
		Both: {s.Opening, s.Extent.Lowest, s.Extent.Highest}, In: {s.Extent.In, total[In]}, Out: {s.Extent.Out, total[Out]},
	}
	var widths groups[float64]
	for _, side := range inOrder {
		if s.Side != Both && s.Side != side {
			continue
		}
		head := t.width(bold, groupHeads[side]) / float64(len(s.Units)) // it may need more width than the amounts
		for i, u := range s.Units {
			width := max(minAmount, head, t.width(regular, u.Heading))
			for _, amounts := range held[side] {
				width = max(width, t.width(bold, u.number(amounts[i])))
				for sign := int64(-1); side == Both && sign <= 1; sign++ { // a balance between the two may have other words
					width = max(width, t.width(bold, s.Owed.balance(u, amounts[i].Abs().Mul(decimal.NewFromInt(sign)))))
				}
			}
			widths[side] = append(widths[side], width)
		}
	}
	return place(dates, numbers, widths)
}

// place returns the table in the largest font size that leaves enough width for Details. If none does, the amounts share
// the width, and each amount that does not fit gets a smaller size.
func place(dates, numbers float64, widths groups[float64]) table {
	var ems float64
	room := right - margin - 2*gutter - wideGutter
	for _, g := range widths {
		for _, w := range g {
			ems += w
			room -= gutter
		}
	}
	size := 8.0
	for size > 6 && room-size*(dates+numbers+ems) < minDetails {
		size -= 0.5
	}
	squeeze := 1.0
	if least := room - size*(dates+numbers) - minDetails*0.7; size*ems > least {
		squeeze = least / (size * ems)
	}
	tab := table{size: size, height: leading(size)}
	x := right - gutter/2
	for _, side := range [...]Side{Both, Out, In} { // from right to left
		g := widths[side]
		if g == nil {
			continue
		}
		columns := make([]column, len(g))
		for i := len(g) - 1; i >= 0; i-- {
			columns[i] = column{right: x, width: g[i] * size * squeeze}
			x = columns[i].left() - gutter
		}
		tab.groups[side] = columns
	}
	tab.dates = column{right: margin + gutter/2 + dates*size, width: dates * size}
	tab.numbers = column{right: tab.dates.right + gutter + numbers*size, width: numbers * size}
	tab.details = column{right: x, width: x - tab.numbers.right - wideGutter}
	return tab
}

// heads draws the heads of the columns.
func (d *document) heads() {
	t := &d.table
	height := 2*t.height + pad
	d.y += 4
	d.top = d.y
	d.fill(d.y, height)
	d.horizontal(d.y, 0.7, black)
	d.horizontal(d.y+height, 0.7, black)
	first, second := d.y+t.height*0.85, d.y+t.height*1.85
	d.text(t.dates.left(), first, bold, t.size, "Date")
	d.text(t.numbers.right-d.types.width(bold, "No.")*t.size, first, bold, t.size, "No.")
	d.text(t.details.left(), first, bold, t.size, "Details")
	for _, side := range inOrder {
		g := t.groups[side]
		if g == nil {
			continue
		}
		end := g[len(g)-1].right
		width := end - g[0].left()
		if len(g) > 1 {
			end -= (width - d.types.width(bold, groupHeads[side])*t.size) / 2
		}
		d.right(end, first, bold, t.size, width, groupHeads[side])
		for i, c := range g {
			heading := d.types.lines(d.s.Units[i].Heading, regular, c.width/t.size+1)[0]
			d.line(c.right-heading.width*t.size, second, regular, t.size, heading)
		}
	}
	d.y += height
}

// rules draws the vertical lines of a page after its rows.
func (d *document) rules() {
	for _, g := range d.table.groups {
		if g != nil {
			d.vertical(g[0].left()-gutter/2, d.top, d.y, 0.4, rule)
		}
	}
}

// bottom returns the lower end of the rows. Below it is space for the line that carries the sums forward.
func (d *document) bottom() float64 { return footerTop - 6 - d.table.height - pad }

// breakPage carries the sums over to a new page.
func (d *document) breakPage() {
	d.sum("Carried forward", d.sums, inOrder[:]...)
	d.rules()
	d.page()
	d.sum("Brought forward", d.sums, inOrder[:]...)
}

// sum draws a line of sums across the page, with the amounts of some groups.
func (d *document) sum(label string, sums running, shown ...Side) {
	if len(shown) > 1 {
		d.fill(d.y+0.4, d.table.height+pad-0.4) // the rule above stays whole
	}
	y := d.y + d.table.height*0.85 + pad/2
	d.text(d.table.details.left(), y, bold, d.table.size, label)
	for _, side := range shown {
		show := Unit.number
		if side == Both {
			show = d.s.Owed.balance
		}
		d.amounts(side, y, bold, sums[side], show)
	}
	d.y += d.table.height + pad
	d.horizontal(d.y, 0.4, rule)
}

// balance draws the account's balance, or the total of the single shown side.
func (d *document) balance(when string, sums running) {
	if d.s.Side != Both {
		d.sum(when+" total", d.s.total(sums), In, Out)
	} else {
		d.sum(when+" balance", sums, Both)
	}
}

// closing draws the totals of all rows and the closing balance, together on one page.
func (d *document) closing(totals running) {
	if d.y+4*(d.table.height+pad) > footerTop-6 {
		d.breakPage()
	}
	d.horizontal(d.y, 0.7, black)
	d.sum("Total", totals, In, Out)
	d.balance("Closing", totals)
	d.horizontal(d.y, 0.7, black)
	d.rules()
	d.horizontal(d.y+1.5, 0.7, black)
	d.y += 1.5
}
