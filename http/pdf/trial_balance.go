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
		d.band(func(y float64) {
			d.text(margin, y, bold, textSize, "Account")
			d.amounts(bold, "Debit", "Credit")
		})
	}
	d.page()
	return d
}

func (d *TrialBalance) amounts(f face, debit, credit string) {
	d.right(trialDebit, d.y+textSize+pad/2, f, textSize, trialWidth, debit)
	d.right(trialCredit, d.y+textSize+pad/2, f, textSize, trialWidth, credit)
}

// Head begins the accounts of a ledger.
func (d *TrialBalance) Head(ledger string) {
	d.need(3 * (leading(textSize) + pad))
	d.y += pad
	d.text(margin, d.y+textSize+pad/2, bold, textSize, ledger)
	d.y += leading(textSize) + pad
}

// Line draws the name of an account or of another total, and its sums below each other.
func (d *TrialBalance) Line(name string, sums []TrialSum) { d.lines(regular, name, sums) }

func (d *TrialBalance) lines(f face, name string, sums []TrialSum) {
	names := d.types.lines(name, f, (trialUnit-margin-14)/textSize)
	for i := range max(len(names), len(sums)) {
		d.need(leading(textSize) + pad)
		if i < len(names) {
			d.line(margin+6, d.y+textSize+pad/2, f, textSize, names[i])
		}
		if i < len(sums) {
			s, number := sums[i], Rupees.number
			word := "rupees"
			if s.Metal != "" {
				word, number = "g "+s.Metal, grams.number
			}
			for _, l := range d.types.first(d.types.lines(word, f, (trialDebit-trialWidth-trialUnit)/textSize), 1, f) {
				d.line(trialUnit, d.y+textSize+pad/2, f, textSize, l)
			}
			d.amounts(f, number(s.Debit), number(s.Credit))
		}
		d.y += leading(textSize)
	}
	d.end(pad)
}

// Finish ends the trial balance with the sums of all lines.
func (d *TrialBalance) Finish(total []TrialSum) error {
	d.horizontal(d.y, 0.7, black)
	d.lines(bold, "Total", total)
	return d.check("trial balance")
}
