package pdf

import (
	"fmt"
	"io"
	"strconv"

	"github.com/shopspring/decimal"

	"bahi/domain/ledger/order"
	"bahi/readmodels/ledgerview"
)

// Orders is a report of client orders and their deliveries.
type Orders struct {
	Title string   // names the books
	Scope []string // under the title: filters

	Each  func(take func(ledgerview.ClientOrder) error) error // calls take for each order, in order
	Drawn func() (Drawn, error)                               // the state of the log that Each has read; called after it
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

// itemIn is the indent of items.
const itemIn = 8.0

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
	err := o.Each(func(one ledgerview.ClientOrder) error {
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
	if d.drawn, err = o.Drawn(); err != nil {
		return err
	}
	d.recorded(d.drawn.RecordedAt)
	return d.finish(d.footer)
}

func (d *orders) heads() {
	d.band(func(float64) {
		for i, c := range orderColumns {
			d.put(i, bold, c.head)
		}
	})
}

// put writes one line into a column.
func (d *orders) put(column int, f face, text string) {
	c, y := orderColumns[column], d.y+textSize+pad/2
	if c.number {
		d.right(c.x, y, f, textSize, c.width, text)
		return
	}
	for _, l := range d.types.first(d.types.lines(text, f, c.width/textSize), 1, f) {
		d.line(c.x, y, f, textSize, l)
	}
}

// order draws an order, and its items below it. The first item stays with it.
func (d *orders) order(o *ledgerview.ClientOrder) {
	d.count++
	ordered, delivered, pending := o.Weight().Decimal(), o.Delivered.Decimal(), o.Pending.Decimal()
	d.ordered, d.delivered, d.pending = d.ordered.Add(ordered), d.delivered.Add(delivered), d.pending.Add(pending)
	name := d.types.lines(o.ClientName, bold, orderColumns[clientColumn].width/textSize)
	var slip []line
	if o.Slip != nil {
		slip = d.types.lines(string(*o.Slip), regular, orderColumns[slipColumn].width/textSize)
	}
	height := max(len(name), len(slip), 1)
	d.need(leading(textSize)*float64(height+1) + 2*pad)
	d.y += pad / 2
	d.put(numberColumn, regular, strconv.FormatInt(o.ID, 10))
	d.put(dateColumn, regular, day(o.Date.Time()))
	if o.Delivery != nil {
		d.put(deliveryColumn, regular, day(o.Delivery.Time()))
	}
	d.weights(regular, ordered, delivered, pending)
	d.put(statusColumn, regular, o.Status)
	top := d.y + pad/2
	d.y = top
	d.block(orderColumns[slipColumn].x, regular, textSize, slip)
	d.y = top
	d.block(orderColumns[clientColumn].x, bold, textSize, name)
	d.y = top - pad/2 + leading(textSize)*float64(height)
	d.ink(dim)
	for _, item := range o.Items {
		d.item(item)
	}
	d.ink(black)
	d.end(pad)
}

// item draws an item with its weight.
func (d *orders) item(item order.Item) {
	text := string(item.Name)
	if item.Quantity != 0 {
		text += fmt.Sprintf(" × %d", item.Quantity)
	}
	if item.MakingCharge != 0 {
		text += ", making " + Rupees.Text(item.MakingCharge.Decimal())
	}
	left := orderColumns[clientColumn].x + itemIn
	for n, l := range d.types.lines(text, regular, (orderColumns[orderedColumn].x-54-left)/textSize) {
		if d.need(leading(textSize) + pad) {
			d.ink(dim)
		}
		d.line(left, d.y+textSize+pad/2, regular, textSize, l)
		if n == 0 {
			d.put(orderedColumn, regular, grams.number(item.Weight.Decimal()))
		}
		d.y += leading(textSize)
	}
}

func (d *orders) weights(f face, ordered, delivered, pending decimal.Decimal) {
	d.put(orderedColumn, f, grams.number(ordered))
	d.put(deliveredColumn, f, grams.number(delivered))
	d.put(pendingColumn, f, grams.number(pending))
}

// total ends the report with the sums, even without orders.
func (d *orders) total() {
	d.need(leading(textSize) + 2*pad)
	d.horizontal(d.y, 0.7, black)
	word := " orders"
	if d.count == 1 {
		word = " order"
	}
	d.put(clientColumn, bold, "Total of "+strconv.Itoa(d.count)+word)
	d.weights(bold, d.ordered, d.delivered, d.pending)
	d.y += leading(textSize) + pad
	d.horizontal(d.y, 0.7, black)
}
