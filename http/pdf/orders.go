package pdf

import (
	"io"
	"strconv"
	"time"

	"github.com/shopspring/decimal"
)

// Orders is a report of client orders and their deliveries.
type Orders struct {
	Title string   // names the books
	Scope []string // under the title: filters

	Each  func(take func(Order) error) error // calls take for each order, in order
	Drawn func() (Drawn, error)              // the state of the log that Each has read; called after it
}

// Order is an order with its items.
type Order struct {
	ID                          int64
	Date                        time.Time // only the day counts
	Delivery                    time.Time // zero: none is agreed on
	Slip, Client, Status        string
	Ordered, Delivered, Pending decimal.Decimal // grams
	Items                       []OrderItem
}

// OrderItem is a line under an order.
type OrderItem struct {
	Text   string
	Weight decimal.Decimal // grams
}

// orderColumn is a column of the report: the left end of a text, or the right end of a number.
type orderColumn struct {
	head   string
	x      float64
	width  float64
	number bool
}

// The columns, in their order.
var orderColumns = []orderColumn{
	{"No.", margin + 28, 27, true},
	{"Date", margin + 34, 46, false},
	{"Slip", margin + 84, 50, false},
	{"Client, items", margin + 138, 138, false},
	{"Delivery", margin + 280, 46, false},
	{"Ordered g", margin + 384, 54, true},
	{"Delivered g", margin + 440, 54, true},
	{"Pending g", margin + 496, 54, true},
	{"Status", margin + 501, right - margin - 501, false},
}

const (
	numberColumn = iota
	dateColumn
	slipColumn
	clientColumn
	deliveryColumn
	orderedColumn
	deliveredColumn
	pendingColumn
	statusColumn
)

const (
	orderSize = 7.5
	itemIn    = 8.0 // indent of items
)

// grams is the unit of a report's weights.
var grams = Unit{Places: 3}

// orders is the layout of one report.
type orders struct {
	*report

	count                       int
	ordered, delivered, pending decimal.Decimal
}

// WriteOrders draws o as a PDF on w. It holds one page in memory. It stops at an error of Each or Drawn.
func WriteOrders(w io.Writer, o Orders) error {
	d := &orders{report: newReport(w, "Client orders", o.Title, o.Scope, Drawn{})}
	d.under = d.heads
	d.page()
	err := o.Each(func(one Order) error {
		d.order(&one)
		return d.file.err
	})
	if err != nil {
		return err
	}
	d.total()
	for _, note := range d.types.notes() {
		d.sentence(note)
	}
	if d.s.Drawn, err = o.Drawn(); err != nil {
		return err
	}
	d.recorded(d.s.Drawn.RecordedAt)
	return d.finish(d.footer)
}

func (d *orders) heads() {
	height := leading(orderSize) + pad
	d.fill(d.y, height)
	d.horizontal(d.y, 0.7, black)
	for i, c := range orderColumns {
		d.put(i, bold, c.head)
	}
	d.y += height
	d.horizontal(d.y, 0.7, black)
}

// put writes one line into a column.
func (d *orders) put(column int, f face, text string) {
	c, y := orderColumns[column], d.y+orderSize+pad/2
	if c.number {
		d.right(c.x, y, f, orderSize, c.width, text)
		return
	}
	for _, l := range d.types.first(d.types.lines(text, f, c.width/orderSize), 1, f) {
		d.line(c.x, y, f, orderSize, l)
	}
}

// order draws an order, and its items below it. The first item stays with it.
func (d *orders) order(o *Order) {
	d.count++
	d.ordered, d.delivered, d.pending = d.ordered.Add(o.Ordered), d.delivered.Add(o.Delivered), d.pending.Add(o.Pending)
	name := d.types.lines(o.Client, bold, orderColumns[clientColumn].width/orderSize)
	slip := d.types.lines(o.Slip, regular, orderColumns[slipColumn].width/orderSize)
	height := max(len(name), len(slip), 1)
	d.need(leading(orderSize)*float64(height+1) + 2*pad)
	d.y += pad / 2
	d.put(numberColumn, regular, strconv.FormatInt(o.ID, 10))
	d.put(dateColumn, regular, day(o.Date))
	if !o.Delivery.IsZero() {
		d.put(deliveryColumn, regular, day(o.Delivery))
	}
	d.weights(regular, o.Ordered, o.Delivered, o.Pending)
	d.put(statusColumn, regular, o.Status)
	for n := range height {
		for column, lines := range map[int][]line{clientColumn: name, slipColumn: slip} {
			if n < len(lines) {
				f := regular
				if column == clientColumn {
					f = bold
				}
				d.line(orderColumns[column].x, d.y+orderSize+pad/2, f, orderSize, lines[n])
			}
		}
		d.y += leading(orderSize)
	}
	d.ink(dim)
	for _, item := range o.Items {
		d.item(item)
	}
	d.ink(black)
	d.y += pad
	d.horizontal(d.y, 0.25, faint)
}

// item draws an item with its weight.
func (d *orders) item(item OrderItem) {
	left := orderColumns[clientColumn].x + itemIn
	for n, l := range d.types.lines(item.Text, regular, (orderColumns[orderedColumn].x-54-left)/orderSize) {
		if d.need(leading(orderSize) + pad) {
			d.ink(dim)
		}
		d.line(left, d.y+orderSize+pad/2, regular, orderSize, l)
		if n == 0 {
			d.put(orderedColumn, regular, grams.number(item.Weight))
		}
		d.y += leading(orderSize)
	}
}

func (d *orders) weights(f face, ordered, delivered, pending decimal.Decimal) {
	d.put(orderedColumn, f, grams.number(ordered))
	d.put(deliveredColumn, f, grams.number(delivered))
	d.put(pendingColumn, f, grams.number(pending))
}

// total ends the report with the sums, even without orders.
func (d *orders) total() {
	d.need(leading(orderSize) + 2*pad)
	d.horizontal(d.y, 0.7, black)
	word := " orders"
	if d.count == 1 {
		word = " order"
	}
	d.put(clientColumn, bold, "Total of "+strconv.Itoa(d.count)+word)
	d.weights(bold, d.ordered, d.delivered, d.pending)
	d.y += leading(orderSize) + pad
	d.horizontal(d.y, 0.7, black)
}
