package pdf

import (
	"strconv"
	"time"

	"github.com/shopspring/decimal"
)

// table is the grid of a statement: the contents determine the widths of the columns, and Details gets the remaining
// width.
type table struct {
	size             float64
	height           float64 // of one line
	dates, numbers   column
	details          column
	in, out, balance []column // one per unit; nil for a hidden side
}

// column has the right edge of its amounts, and the width for text.
type column struct{ right, width float64 }

func (c column) left() float64 { return c.right - c.width }

const (
	gutter     = 8.0 // between columns, half on each side of a rule
	pad        = 3.4 // between rows
	minDetails = 150.0
	minAmount  = 4.5 // ems
	hanging    = 6.0 // indent of the further lines of an entry
)

// sections returns the heads of the shown columns, from left to right.
func (t *table) sections() (shown []section) {
	for _, g := range []section{{"IN (jama)", t.in}, {"OUT (naame)", t.out}, {"Balance", t.balance}} {
		if g.columns != nil {
			shown = append(shown, g)
		}
	}
	return shown
}

// section is a head over its columns, one per unit.
type section struct {
	head    string
	columns []column
}

// measured has the widths of the columns of a statement.
type measured struct {
	s     *Statement
	types *typesetter

	dates, numbers   float64
	in, out, balance []float64
}

func newMeasured(t *typesetter, s *Statement) *measured {
	n := len(s.Units)
	m := &measured{
		s: s, types: t, dates: t.width(bold, "Date"), numbers: max(t.width(bold, "No."), t.width(regular, strconv.FormatInt(s.Extent.ID, 10))),
		in: make([]float64, n), out: make([]float64, n), balance: make([]float64, n),
	}
	for month := range 12 { // all digits are equally wide
		m.dates = max(m.dates, t.width(regular, day(time.Date(2000, time.Month(month+1), 1, 0, 0, 0, 0, time.UTC))))
	}
	for i, u := range s.Units {
		m.in[i] = max(minAmount, t.width(regular, u.Heading))
		m.out[i], m.balance[i] = m.in[i], m.in[i]
	}
	total := s.total(running{in: s.Extent.In, out: s.Extent.Out})
	m.hold(m.in, s.Extent.In, total.in)
	m.hold(m.out, s.Extent.Out, total.out)
	m.hold(m.balance, s.Opening, s.Extent.Lowest, s.Extent.Highest)
	return m
}

// hold makes columns wide enough for amounts.
func (m *measured) hold(widths []float64, all ...[]decimal.Decimal) {
	for _, amounts := range all {
		for i := range amounts {
			widths[i] = max(widths[i], m.types.width(bold, m.s.Units[i].number(amounts[i])))
		}
	}
}

// table places the columns.
func (m *measured) table() table {
	groups := [][]float64{m.in, m.out, m.balance}
	switch m.s.Side {
	case In:
		groups = [][]float64{m.in, nil, nil}
	case Out:
		groups = [][]float64{nil, m.out, nil}
	case Both:
	}
	// A head over several columns may need more width than their amounts.
	for i, head := range []string{"IN (jama)", "OUT (naame)", "Balance"} {
		for j := range groups[i] {
			groups[i][j] = max(groups[i][j], m.types.width(bold, head)/float64(len(groups[i])))
		}
	}
	return place(m.dates, m.numbers, groups)
}

// place returns the table in the largest font size that leaves enough width for Details. If none does, the amounts share
// the width, and each amount that does not fit gets a smaller size.
func place(dates, numbers float64, groups [][]float64) table {
	var ems float64
	count := 0
	for _, g := range groups {
		for _, w := range g {
			ems += w
			count++
		}
	}
	room := right - margin - 3*gutter - float64(count)*gutter
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
	set := func(g []float64) (columns []column) {
		columns = make([]column, len(g))
		for i := len(g) - 1; i >= 0; i-- {
			columns[i] = column{right: x, width: g[i] * size * squeeze}
			x = columns[i].left() - gutter
		}
		return columns
	}
	if groups[2] != nil {
		tab.balance = set(groups[2])
	}
	if groups[1] != nil {
		tab.out = set(groups[1])
	}
	if groups[0] != nil {
		tab.in = set(groups[0])
	}
	tab.dates = column{right: margin + gutter/2 + dates*size, width: dates * size}
	tab.numbers = column{right: tab.dates.right + gutter + numbers*size, width: numbers * size}
	tab.details = column{right: x, width: x - tab.numbers.right - gutter}
	return tab
}

// heads draws the heads of the columns and returns where the rows begin.
func (d *document) heads(y float64) float64 {
	t := &d.table
	height := 2*t.height + pad
	d.fill(y, height)
	d.horizontal(y, 0.7, black)
	d.horizontal(y+height, 0.7, black)
	first, second := y+t.height*0.85, y+t.height*1.85
	d.text(t.dates.left(), first, bold, t.size, "Date")
	d.text(t.numbers.right-d.types.width(bold, "No.")*t.size, first, bold, t.size, "No.")
	d.text(t.details.left(), first, bold, t.size, "Details")
	for _, g := range t.sections() {
		end := g.columns[len(g.columns)-1].right
		if len(g.columns) > 1 {
			end -= (g.width() - d.types.width(bold, g.head)*t.size) / 2
		}
		d.right(end, first, bold, t.size, g.width(), g.head)
		for i, c := range g.columns {
			heading := d.types.lines(d.s.Units[i].Heading, regular, c.width/t.size+1)[0]
			d.line(c.right-heading.width*t.size, second, regular, t.size, heading)
		}
	}
	return y + height
}

func (g section) width() float64 { return g.columns[len(g.columns)-1].right - g.columns[0].left() }

// rules draws the vertical lines of a page after its rows.
func (d *document) rules(top, bottom float64) {
	for _, g := range d.table.sections() {
		d.vertical(g.columns[0].left()-gutter/2, top, bottom, 0.4, rule)
	}
}

// bottom returns the lower end of the rows. Below it is space for the line that carries the sums forward.
func (d *document) bottom() float64 { return footerTop - 6 - d.table.height - pad }

// breakPage carries the sums over to a new page.
func (d *document) breakPage() {
	d.sum("Carried forward", d.sums, true)
	d.rules(margin+d.head.height, d.y)
	d.page()
	d.sum("Brought forward", d.sums, true)
}

// sum draws a line of sums across the page.
func (d *document) sum(label string, sums running, balance bool) {
	t := &d.table
	y := d.y + t.height*0.85 + pad/2
	d.fill(d.y+0.4, t.height+pad-0.4) // the rule above stays whole
	d.text(t.details.left(), y, bold, t.size, label)
	d.amounts(t.in, y, bold, sums.in, Unit.number)
	d.amounts(t.out, y, bold, sums.out, Unit.number)
	if balance {
		d.amounts(t.balance, y, bold, sums.balance, Unit.number)
	}
	d.y += t.height + pad
	d.horizontal(d.y, 0.4, rule)
}

// opening draws the sums before the rows: the account's balance, or the total of the single shown side.
func (d *document) opening() {
	if d.s.Side != Both {
		d.sum("Opening total", d.s.total(newRunning(d.s.Opening)), false)
	} else {
		d.balanceLine("Opening balance", d.s.Opening)
	}
}

// balanceLine draws a balance of the account.
func (d *document) balanceLine(label string, amounts []decimal.Decimal) {
	t := &d.table
	y := d.y + t.height*0.85 + pad/2
	d.text(t.details.left(), y, bold, t.size, label)
	d.amounts(t.balance, y, bold, amounts, Unit.number)
	d.y += t.height + pad
	d.horizontal(d.y, 0.4, rule)
}

// closing draws the totals of all rows and the closing balance, together on one page.
func (d *document) closing(totals running) {
	t := &d.table
	if d.y+4*(t.height+pad) > footerTop-6 {
		d.breakPage()
	}
	d.horizontal(d.y, 0.7, black)
	d.sum("Total", totals, false)
	if d.s.Side != Both {
		d.sum("Closing total", d.s.total(totals), false)
	} else {
		d.balanceLine("Closing balance", totals.balance)
	}
	d.horizontal(d.y, 0.7, black)
	d.rules(margin+d.head.height, d.y)
	d.horizontal(d.y+1.5, 0.7, black)
	d.y += 1.5
}
