package pdf

import (
	"fmt"
	"io"
	"time"

	"github.com/shopspring/decimal"
)

// Trail is a report of the changes of the books and their authors.
type Trail struct {
	Title string   // names the books
	Scope []string // under the title: period, filters
	Drawn Drawn

	Changes  func(take func(TrailChange) error) error // calls take for each change, in order
	Closings func(take func(TrailClosing) error) error
}

// TrailChange is one change, with the fields that it changed.
type TrailChange struct {
	At       time.Time // shown in its own location
	Position uint64
	What     string // "Row 12 of HDFC edited"
	Who      string
	Reason   string // empty: no reason was given
	Fields   []TrailField
}

// TrailField is the change of one field. An empty From or To: the field did not exist.
type TrailField struct{ Name, From, To string }

// TrailClosing is a closing balance that later changes moved.
type TrailClosing struct{ Account, Closing, From, To, Moved string }

// These are the columns of a trail, in points.
const (
	fieldLeft = margin + 10
	fromLeft  = margin + 160
	toLeft    = margin + 350
	cellGap   = 8.0
)

// trail is the layout of one trail.
type trail struct {
	*report

	t       *Trail
	columns []string // heads of the current table; nil: none
}

// WriteTrail draws t as a PDF on w: every change in its order, then the closing balances that the changes moved. The
// same t gives the same bytes. It holds one page in memory. It stops at an error of Changes or Closings.
func WriteTrail(w io.Writer, t Trail) error {
	d := &trail{report: newReport(w, "Audit trail", t.Title, t.Scope, t.Drawn), t: &t}
	d.under = d.heads
	d.columns = []string{"Field", "From", "To"}
	d.page()
	none := true
	err := t.Changes(func(c TrailChange) error {
		none = false
		d.change(&c)
		return d.file.err
	})
	if err != nil {
		return err
	}
	if none {
		d.sentence("Nothing was changed.")
	}
	if err := d.closings(); err != nil {
		return err
	}
	return d.check("trail")
}

func (d *trail) heads() {
	if d.columns == nil {
		return
	}
	d.band(func(y float64) {
		for i, x := range []float64{fieldLeft, fromLeft, toLeft} {
			d.text(x, y, bold, textSize, d.columns[i])
		}
	})
}

// change draws the record, the actor and the reason of a change, and below them the fields. The first field stays with them.
func (d *trail) change(c *TrailChange) {
	when := c.At.Format("02 Jan 2006 15:04:05")
	place := fmt.Sprintf("position %d", c.Position)
	what := d.types.lines(c.What, bold, (right-margin-130)/headSize-1)
	by := "by " + c.Who
	if c.Reason != "" {
		by += ", because: " + c.Reason
	}
	who := d.types.lines(by, regular, (right-margin-130)/textSize-1)
	d.need(leading(headSize)*float64(len(what)) + leading(textSize)*float64(len(who)+2) + pad)
	d.y += pad
	top := d.y
	d.block(margin, bold, headSize, what)
	d.right(right, top+headSize, regular, textSize, 125, when)
	d.ink(dim)
	d.right(right, top+leading(headSize)+textSize, regular, textSize, 125, place)
	d.block(margin, regular, textSize, who)
	d.ink(black)
	for _, f := range c.Fields {
		d.cells(func() { d.text(margin, d.y+textSize, bold, textSize, place+" (continued)") }, f.Name, f.From, f.To)
	}
	d.end(pad / 2)
}

// cells draws a line of the table, as high as its highest cell. If it continues on another page, again repeats its head.
func (d *trail) cells(again func(), texts ...string) {
	columns := [3][]line{}
	most := 1
	for i, end := range []float64{fromLeft, toLeft, right} {
		left := []float64{fieldLeft, fromLeft, toLeft}[i]
		columns[i] = d.types.lines(texts[i], regular, (end-left-cellGap)/textSize)
		most = max(most, len(columns[i]))
	}
	for n := range most {
		if d.need(leading(textSize)) {
			d.y += pad / 2
			again()
			d.y += leading(textSize)
		}
		for i, x := range []float64{fieldLeft, fromLeft, toLeft} {
			if n < len(columns[i]) {
				d.line(x, d.y+textSize, regular, textSize, columns[i][n])
			}
		}
		d.y += leading(textSize)
	}
}

// closings draws the section of restatements, even without any, so that the reader can be sure.
func (d *trail) closings() error {
	const title = "Restatements: closing balances that these changes moved after their day was over"
	d.columns = nil
	if !d.need(leading(headSize)*3 + leading(textSize)*4) {
		d.y += 2 * pad
	}
	d.text(margin, d.y+headSize, bold, headSize, title)
	d.y += leading(headSize)
	account := ""
	err := d.t.Closings(func(c TrailClosing) error {
		if d.columns == nil {
			d.columns = []string{"Closing", "From", "To"}
			d.heads()
		}
		d.closingOf(&c, c.Account != account)
		account = c.Account
		return d.file.err
	})
	if d.columns == nil {
		d.sentence("None.")
	}
	return err
}

func (d *trail) closingOf(c *TrailClosing, another bool) {
	name := d.types.lines(c.Account, bold, (right-margin)/textSize-1)
	named := func() { // up to the line on which the name ends
		d.block(margin, bold, textSize, name)
		d.y -= leading(textSize)
	}
	if another {
		d.need(leading(textSize)*float64(len(name)+2) + pad)
		d.y += pad
		named()
		d.y += leading(textSize)
	}
	d.cells(named, c.Closing, c.From, c.To)
	d.ink(dim)
	d.cells(named, c.Moved, "", "")
	d.ink(black)
}

// Text returns an amount for running text, with Indian grouping.
func (u Unit) Text(d decimal.Decimal) string { return u.words(d) }
