package pdf

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/domain/ledger/book"
	"bahi/domain/ledger/order"
	"bahi/domain/unit"
	"bahi/internal/test/pdftest"
	"bahi/readmodels/ledgerview"
)

// someOrders returns a report of n orders in three scripts.
func someOrders(n int) Orders {
	var all []ledgerview.ClientOrder
	for i := range n {
		o := ledgerview.ClientOrder{ID: int64(1000 + i), Order: order.Order{
			Date: unit.DateOf(time.Date(2025, 3, 1+i%28, 0, 0, 0, 0, time.UTC)), Slip: new(book.Text(fmt.Sprintf("A-%d", i))),
			Items: []order.Item{
				{Name: "पायल, शुद्ध चाँदी की", Quantity: 2, MakingCharge: 125050, Weight: 10_500},
				{Name: "A ring with a description that is much too long for its column and so goes on in the next line, it is so long", Weight: 10_000},
			},
		}}
		o.Derived = ledgerview.Derive("રમેશભાઈ શાહ જ્વેલર્સ", o.Weight(), 15_000)
		if i%2 == 0 {
			o.Delivery = new(unit.DateOf(o.Date.Time().AddDate(0, 1, 0)))
		}
		all = append(all, o)
	}
	return Orders{
		Title: "Bahi", Scope: []string{"Client: Meena Shah"}, Each: each(all),
		Drawn: func() (Drawn, error) { return bank(0).Drawn, nil },
	}
}

func drawOrders(t *testing.T, o Orders) pdftest.Document {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, WriteOrders(&out, o))
	return pdftest.Read(t, out.Bytes())
}

func TestOrdersAreDrawnWithTheirItemsAndTotals(t *testing.T) {
	t.Parallel()
	p := drawOrders(t, someOrders(2))
	require.Len(t, p.Pages, 1)
	lines := p.Lines(0)
	for _, line := range []string{
		"Client: Meena Shah", "No. | Date | Slip | Client, items | Delivery | Ordered g | Delivered g | Pending g | Status",
		"Total of 2 orders | 41.000 | 30.000 | 11.000",
	} {
		require.Contains(t, lines, line)
	}
	text := strings.Join(lines, "\n")
	require.Contains(t, text, "રમેશભાઈ")
	require.Contains(t, text, "01 Apr 2025 | 20.500 | 15.000 | 5.500 | partial")
	require.Contains(t, text, "goes on in the")
	require.Contains(t, text, "Page 1 of 1")
	require.Contains(t, text, "Drawn from store")
}

func TestNoOrdersAreAPageToo(t *testing.T) {
	t.Parallel()
	p := drawOrders(t, someOrders(0))
	require.Len(t, p.Pages, 1)
	require.Contains(t, p.Lines(0), "Total of 0 orders | 0.000 | 0.000 | 0.000")
	require.Contains(t, drawOrders(t, someOrders(1)).Words(), "Total of 1 order")
}

func TestManyOrdersHaveAHeadOnEachPage(t *testing.T) {
	t.Parallel()
	p := drawOrders(t, someOrders(100))
	require.Greater(t, len(p.Pages), 5)
	orders := 0
	for i := range p.Pages {
		lines := p.Lines(i)
		require.Contains(t, lines, "No. | Date | Slip | Client, items | Delivery | Ordered g | Delivered g | Pending g | Status")
		orders += strings.Count(strings.Join(lines, "\n"), "partial")
	}
	require.Equal(t, 100, orders)
	require.Contains(t, p.Words(), fmt.Sprintf("Page %d of %[1]d", len(p.Pages)))
}

func TestAnErrorOfTheOrdersIsNoDocument(t *testing.T) {
	t.Parallel()
	errAway := errors.New("away")
	o := someOrders(1)
	o.Drawn = func() (Drawn, error) { return Drawn{}, errAway }
	require.ErrorIs(t, WriteOrders(&bytes.Buffer{}, o), errAway)
	o.Each = func(func(ledgerview.ClientOrder) error) error { return errAway }
	require.ErrorIs(t, WriteOrders(&bytes.Buffer{}, o), errAway)
}
