package pdf

import (
	"io"

	"github.com/shopspring/decimal"
)

// TrialSum is a debit and a credit, in grams of Metal, or in rupees if Metal is empty.
type TrialSum struct {
	Metal         string
	Debit, Credit decimal.Decimal
}

// TrialBalance is a trial balance while it is drawn.
type TrialBalance struct{ *report }

// The right ends of the amounts, and the left end of the unit.
const (
	trialUnit   = right - 220
	trialDebit  = right - 85
	trialCredit = right
	trialWidth  = 80.0
)

// NewTrialBalance begins a trial balance on w.
func NewTrialBalance(w io.Writer, title string, scope []string, drawn Drawn) *TrialBalance {
	d := &TrialBalance{newReport(w, "Trial balance", title, scope, drawn)}
	d.under = func() {
		height := leading(orderSize) + pad
		d.fill(d.y, height)
		d.horizontal(d.y, 0.7, black)
		d.text(margin, d.y+orderSize+pad/2, bold, orderSize, "Account")
		d.amounts(bold, "Debit", "Credit")
		d.y += height
		d.horizontal(d.y, 0.7, black)
	}
	d.page()
	return d
}

func (d *TrialBalance) amounts(f face, debit, credit string) {
	d.right(trialDebit, d.y+orderSize+pad/2, f, orderSize, trialWidth, debit)
	d.right(trialCredit, d.y+orderSize+pad/2, f, orderSize, trialWidth, credit)
}

// Head begins the accounts of a ledger.
func (d *TrialBalance) Head(ledger string) {
	d.need(3 * (leading(orderSize) + pad))
	d.y += pad
	d.text(margin, d.y+orderSize+pad/2, bold, orderSize, ledger)
	d.y += leading(orderSize) + pad
}

// Line draws the name of an account or of another total, and its sums below each other.
func (d *TrialBalance) Line(name string, sums []TrialSum) { d.lines(regular, name, sums) }

func (d *TrialBalance) lines(f face, name string, sums []TrialSum) {
	names := d.types.lines(name, f, (trialUnit-margin-14)/orderSize)
	for i := range max(len(names), len(sums)) {
		d.need(leading(orderSize) + pad)
		if i < len(names) {
			d.line(margin+6, d.y+orderSize+pad/2, f, orderSize, names[i])
		}
		if i < len(sums) {
			s, number := sums[i], Rupees.number
			word := "rupees"
			if s.Metal != "" {
				word, number = "g "+s.Metal, grams.number
			}
			for _, l := range d.types.first(d.types.lines(word, f, (trialDebit-trialWidth-trialUnit)/orderSize), 1, f) {
				d.line(trialUnit, d.y+orderSize+pad/2, f, orderSize, l)
			}
			d.amounts(f, number(s.Debit), number(s.Credit))
		}
		d.y += leading(orderSize)
	}
	d.y += pad
	d.horizontal(d.y, 0.25, faint)
}

// Finish ends the trial balance with the sums of all lines.
func (d *TrialBalance) Finish(total []TrialSum) error {
	d.horizontal(d.y, 0.7, black)
	d.lines(bold, "Total", total)
	d.check("trial balance")
	return d.finish(d.footer)
}
