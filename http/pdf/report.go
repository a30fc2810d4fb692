package pdf

import (
	"fmt"
	"io"
	"strings"
)

// report is the layout of documents other than statements: a head on every page, with text and lines below it.
type report struct {
	*document

	kind  string // "Audit trail"
	title string
	scope []string // under the title
	under func()   // draws the heads of the current table on a new page
}

func newReport(w io.Writer, kind, title string, scope []string, drawn Drawn) *report {
	d := &report{document: &document{canvas: newCanvas(w, drawn.RecordedAt), s: Statement{Drawn: drawn}}, kind: kind, title: title,
		scope: scope, under: func() {}}
	d.pdf.SetTitle(d.types.shown(kind+", "+title), true)
	d.pdf.SetSubject(d.types.shown(strings.Join(scope, "; ")), true)
	d.pdf.SetCreator("Bahi", true)
	return d
}

// page begins a page with its head and the heads of the columns.
func (d *report) page() {
	d.endPage()
	d.y = margin
	for _, l := range d.types.first(d.types.lines(d.title, bold, (right-margin-90)/titleSize-1), 2, bold) {
		d.line(margin, d.y+titleSize, bold, titleSize, l)
		d.y += leading(titleSize)
	}
	d.right(right, margin+titleSize, bold, 9, 80, d.kind)
	d.ink(dim)
	var under []line
	for _, text := range d.scope {
		under = append(under, d.types.lines(text, regular, (right-margin)/underSize-1)...)
	}
	for _, l := range d.types.first(under, 6, regular) {
		d.line(margin, d.y+underSize, regular, underSize, l)
		d.y += leading(underSize)
	}
	d.ink(black)
	d.y += 4
	d.under()
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
	d.need(leading(trailSize) + 4)
	d.text(fieldLeft, d.y+trailSize+4, regular, trailSize, text)
	d.y += leading(trailSize) + 4
}

// check ends the report with the instructions for checking it.
func (d *report) check(what string) {
	from := d.s.Drawn
	texts := []string{fmt.Sprintf("Drawn from store %s at log %s.", from.StoreID, drawnAt(from))}
	if from.Checkpoint != "" {
		texts = append(texts, "Signed checkpoint of the log:")
		texts = append(texts, strings.Split(strings.TrimRight(from.Checkpoint, "\n"), "\n")...)
	}
	texts = append(texts, d.types.notes()...)
	if !d.need(leading(headSize) + leading(trailSize)*float64(len(texts)+2)) {
		d.y += 2 * pad
	}
	d.text(margin, d.y+headSize, bold, headSize, "How to check this "+what)
	d.y += leading(headSize)
	for _, text := range texts {
		for _, l := range d.types.lines(text, regular, (right-margin-12)/trailSize) {
			d.need(leading(trailSize))
			d.line(margin+12, d.y+trailSize, regular, trailSize, l)
			d.y += leading(trailSize)
		}
	}
}
