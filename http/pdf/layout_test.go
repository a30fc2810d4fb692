package pdf

import (
	"fmt"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"
)

// long returns a statement whose middle row has n entries of one rupee.
func long(n int) sample {
	s := bank(20)
	row := Row{Date: s.Rows[19].Date, ID: 555}
	for i := range n {
		row.In = append(row.In, Line{Text: fmt.Sprintf("entry-%d", i), Amounts: decs("1")})
	}
	row.Balance = []decimal.Decimal{s.closing()[0].Add(decimal.NewFromInt(int64(n)))}
	s.Rows = append(s.Rows, row)
	return s
}

func TestLongRowIsNamedOnEachPage(t *testing.T) {
	t.Parallel()
	s := long(300)
	p := write(t, s)
	require.Greater(t, len(p.Pages), 4)
	seen := 0
	for i := range p.Pages {
		here, named := 0, 0
		for _, l := range p.Lines(i) {
			if strings.Contains(l, "entry-") {
				require.Contains(t, l, fmt.Sprintf("entry-%d | 1.00", seen))
				seen++
				here++
			}
			if strings.Contains(l, " | 555 | ") {
				named++
			}
		}
		if here > 0 {
			require.Equal(t, 1, named, "page %d", i+1)
		}
	}
	require.Equal(t, 300, seen)
	require.Contains(t, p.One("entry-299"), Rupees.number(s.closing()[0]))
}

func TestShortRowStaysOnOnePage(t *testing.T) {
	t.Parallel()
	for n := range 10 {
		s := bank(3 * n)
		for range 12 {
			row := Row{Date: s.To, ID: 777, Balance: s.closing()}
			for i := range together {
				row.In = append(row.In, Line{Text: fmt.Sprintf("part-%d", i), Amounts: decs("0")})
			}
			s.Rows = append(s.Rows, row)
		}
		p := write(t, s)
		for i := range p.Pages {
			here := 0
			for _, l := range p.Lines(i) {
				if strings.Contains(l, "part-") {
					here++
				}
			}
			require.Zero(t, here%together, "page %d after %d rows", i+1, 3*n)
		}
	}
}

func TestTextStaysOnThePageAndAboveTheFooter(t *testing.T) {
	t.Parallel()
	texts := []string{strings.Repeat("W", 5000), strings.Repeat("क्षत्रिय ", 700), "x"}
	for n := range 6 {
		s := karigar(n * 13)
		for i := range s.Rows {
			if i%5 == 2 && len(s.Rows[i].Out) > 0 {
				s.Rows[i].Out[0].Text = texts[i%len(texts)]
			}
		}
		p := write(t, s)
		ts := newTypesetter()
		for i, page := range p.Pages {
			footer := false
			for _, l := range page {
				require.GreaterOrEqual(t, l.X, margin-0.01)
				require.LessOrEqual(t, l.X, right)
				if strings.HasPrefix(l.Text, "Page ") {
					footer = true
					require.InDelta(t, right, l.X+ts.width(regular, l.Text)*(footerSize+0.5), 0.1)
				}
				if !footer {
					require.Greater(t, pageHeight-l.Y, margin, "page %d: %q", i+1, l.Text)
					require.Less(t, pageHeight-l.Y, footerTop, "page %d: %q", i+1, l.Text)
				}
			}
			require.True(t, footer)
		}
	}
}

func TestAHugeAmountIsSetSmallerAndNeverCut(t *testing.T) {
	t.Parallel()
	s := bank(1)
	huge := strings.Repeat("9", 28) + ".99"
	s.Units = []Unit{Rupees, FineGrams, {Heading: "Pieces"}}
	s.Opening = decs(huge, huge, "0")
	s.Rows[0].Out = []Line{{Text: "given", Amounts: decs(huge, huge, "3")}}
	s.Rows[0].In = []Line{{Text: "taken", Amounts: decs(huge, huge, "3")}}
	s.Rows[0].Balance = decs(huge, huge, "0")
	p := write(t, s)
	want := Rupees.number(dec(huge))
	require.Contains(t, p.One("Closing"), want+" | "+FineGrams.number(dec(huge)))
	require.Contains(t, p.One("Total"), want)
	tab := newTable(newTypesetter(), new(s.whole()))
	require.GreaterOrEqual(t, tab.details.width, 80.0)
	edge := tab.details.right
	for _, side := range inOrder {
		for _, c := range tab.groups[side] {
			require.GreaterOrEqual(t, c.left(), edge, "columns overlap")
			edge = c.right
		}
	}
	require.LessOrEqual(t, edge, right)
}
