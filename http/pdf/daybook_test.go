package pdf

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"bahi/internal/test/pdftest"
)

var march = time.Date(2025, 3, 1, 0, 0, 0, 0, time.UTC)

func TestDaybookBreaksPagesBetweenShortRows(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	d := NewDaybook(&out, "श्री गणेश ज्वेलर्स", []string{"From 01 Mar 2025 to 01 Mar 2025"}, bank(0).Drawn)
	require.NoError(t, d.Day(march, decimal.Zero))
	const rows = 60
	for i := range rows {
		require.NoError(t, d.Row("Client: Meena Shah",
			Row{ID: int64(i + 1), In: []Line{{Text: "old gold", Amounts: decs("0", "9.16")}},
				Out: []Line{{Text: "पायल, शुद्ध चाँदी की", Amounts: decs("1500.50", "95")}}}))
	}
	long := Row{ID: 99}
	for i := range 120 {
		long.In = append(long.In, Line{Text: fmt.Sprint("item ", i), Amounts: decs("1")})
	}
	require.NoError(t, d.Row("Bank: HDFC", long))
	require.NoError(t, d.Total("Client", decs("0", "549.6"), decs("90030", "5700")))
	require.NoError(t, d.Close(decimal.NewFromInt(120)))
	require.NoError(t, d.Finish(decimal.Zero, decimal.NewFromInt(120)))
	p := pdftest.Read(t, out.Bytes())
	require.Greater(t, len(p.Pages), 3)
	names, entries := 0, 0
	for i := range p.Pages {
		lines := strings.Join(p.Lines(i), "\n")
		require.Contains(t, lines, fmt.Sprintf("Page %d of %d", i+1, len(p.Pages)))
		require.Equal(t, strings.Count(lines, "Meena Shah"), strings.Count(lines, "old gold"), "a short row is on one page")
		require.Equal(t, strings.Contains(lines, "item "), strings.Contains(lines, "Bank: HDFC"), "a long row names its account on each page")
		require.Equal(t, i > 0, strings.Contains(lines, "01 Mar 2025 (continued)"))
		names += strings.Count(lines, "Meena Shah")
		entries += strings.Count(lines, "item ")
	}
	require.Equal(t, []int{rows, 120}, []int{names, entries})
	require.Contains(t, p.Lines(len(p.Pages)-1), "Total Client | 90,030.00 | 549.600 | 5,700.000")
}

func TestDaybookStopsWhenItsReaderIsGone(t *testing.T) {
	t.Parallel()
	d := NewDaybook(broken{}, "Bahi", nil, bank(0).Drawn)
	var err error
	for i := 0; err == nil && i < 10_000; i++ {
		err = d.Row("Bank: HDFC", Row{ID: int64(i), In: []Line{{Text: "x", Amounts: decs("1")}}})
	}
	require.EqualError(t, err, "no room")
}
