package pdf

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"bahi/internal/test/pdftest"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"
)

var ist = time.FixedZone("IST", 5*3600+1800)

func dec(s string) decimal.Decimal { return decimal.RequireFromString(s) }

func decs(all ...string) []decimal.Decimal {
	amounts := make([]decimal.Decimal, len(all))
	for i, s := range all {
		amounts[i] = dec(s)
	}
	return amounts
}

const checkpoint = "bahi.example.in/log\n128445\nqlAbFvVUUvLMbLRkGCpHbTk8mzQwbCyRUQLK9bfVqXo=\n\n" +
	"— bahi.example.in/log Zm9vYmFyAHNpZ25hdHVyZSBvZiB0aGUgY2hlY2twb2ludCwgc2l4dHkgZm91ciBieXRlcyBsb25nIGFzIGVkMjU1MTkgaXM=\n"

// sample is a statement with its rows in memory.
type sample struct {
	Statement

	Rows []Row
}

// whole returns the statement for Write.
func (s sample) whole() Statement {
	s.Statement.Rows, s.Statement.Extent = each(s.Rows), s.extent()
	return s.Statement
}

func (s sample) extent() Extent {
	sums := newRunning(s.Opening)
	e := Extent{Lowest: slices.Clone(s.Opening), Highest: slices.Clone(s.Opening)}
	for _, row := range s.Rows {
		e.ID = max(e.ID, row.ID)
		for _, side := range []Side{In, Out} {
			for _, l := range row.of(side) {
				sums.add(side, l.Amounts)
			}
		}
		for i, b := range row.Balance {
			e.Lowest[i], e.Highest[i] = decimal.Min(e.Lowest[i], b), decimal.Max(e.Highest[i], b)
		}
	}
	e.In, e.Out = sums[In], sums[Out]
	return e
}

// closing returns the balance after the rows.
func (s sample) closing() []decimal.Decimal {
	if len(s.Rows) == 0 {
		return s.Opening
	}
	return s.Rows[len(s.Rows)-1].Balance
}

// each returns a function that passes all items to its argument.
func each[T any](all []T) func(func(T) error) error {
	return func(take func(T) error) error {
		for _, one := range all {
			if err := take(one); err != nil {
				return err
			}
		}
		return nil
	}
}

// bank returns the statement of a bank account with n rows and correct balances.
func bank(n int) sample {
	s := sample{Statement: Statement{
		Title: "Shree Ganesh Jewellers, Rajkot", Account: "HDFC current account", Ledger: "Bank ledger",
		From: time.Date(2025, 4, 1, 0, 0, 0, 0, ist), To: time.Date(2026, 3, 31, 0, 0, 0, 0, ist),
		Units: []Unit{Rupees}, Opening: decs("125000.50"),
		Drawn: Drawn{StoreID: "7f1c2a9e-5b0d-4c1e-9a55-0e6f6f0c7d11", Position: 128445,
			RecordedAt: time.Date(2026, 4, 2, 10, 22, 33, 123456000, ist)},
	}}
	balance := s.Opening[0]
	for i := range n {
		row := Row{Date: s.From.AddDate(0, 0, i*365/max(n, 1)), ID: int64(101 + i)}
		amount := dec("1000").Add(dec("137.25").Mul(decimal.NewFromInt(int64(i % 97))))
		if i%3 == 0 {
			row.Out = []Line{{Text: fmt.Sprintf("Rent for the workshop, paid by cheque %d", 4711+i), Amounts: []decimal.Decimal{amount}}}
			balance = balance.Sub(amount)
		} else {
			row.In = []Line{{Text: fmt.Sprintf("Received from Ramesh Soni against bill %d", 88+i), Amounts: []decimal.Decimal{amount}}}
			balance = balance.Add(amount)
		}
		row.Balance = []decimal.Decimal{balance}
		s.Rows = append(s.Rows, row)
	}
	return s
}

// karigar returns the statement of an artisan in two units, with names in three scripts and rows of several entries.
func karigar(n int) sample {
	s := bank(0)
	s.Title, s.Account, s.Ledger = "श्री गणेश ज्वेलर्स · Shree Ganesh Jewellers", "રમેશભાઈ સોની (Ramesh Soni)", "Karigar ledger"
	s.Units, s.Opening = []Unit{Rupees, FineGrams}, decs("-1250000.5", "12.345")
	s.Drawn.Checkpoint = checkpoint
	s.Notes = []string{"As known at position 128445.", "Balance = IN − OUT. Positive: we owe the karigar; negative: the karigar owes us or " +
		"holds our metal."}
	texts := []string{
		"Fine silver, 500 g at touch 99.5", "पायल, शुद्ध चाँदी की, लक्ष्मी डिज़ाइन", "સોનાની બંગડી, ક્ષત્રિય ડિઝાઇન, શ્રી લક્ષ્મી જ્વેલર્સ",
		"Payal pairs returned after polishing; wastage 2 % agreed on the telephone with Rameshbhai, see slip 4711 and the message of the same " +
			"evening",
		"ક્રિષ્ના jewellers द्वारा कड़ा, labour ₹ 1,500",
	}
	sums := newRunning(s.Opening)
	for i := range n {
		row := Row{Date: s.From.AddDate(0, 0, i*365/max(n, 1)), ID: int64(9871 + i)}
		line := Line{Text: texts[i%len(texts)], Amounts: decs("0", "497.5")}
		switch {
		case i%4 == 1:
			row.In = []Line{
				{Text: texts[(i+1)%len(texts)], Amounts: decs("1500", "478.4")},
				{Text: texts[(i+2)%len(texts)], Amounts: decs("125000.50", "10.4")},
			}
			if i%8 == 1 {
				row.Out = []Line{line}
			}
		case i%2 == 0:
			row.Out = []Line{line}
		default:
			row.In = []Line{{Text: texts[i%len(texts)], Amounts: decs("345.75", "512.125")}}
		}
		for _, l := range row.In {
			sums.add(In, l.Amounts)
		}
		for _, l := range row.Out {
			sums.add(Out, l.Amounts)
		}
		row.Balance = slices.Clone(sums[Both])
		s.Rows = append(s.Rows, row)
	}
	return s
}

func write(t testing.TB, s sample) pdftest.Document {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, Write(&b, s.whole()))
	return pdftest.Read(t, b.Bytes())
}
