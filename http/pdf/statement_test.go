package pdf

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"
)

func TestAStatementShowsOpeningRowsTotalsAndClosing(t *testing.T) {
	t.Parallel()
	s := bank(0)
	s.Opening = decs("125000.50")
	s.Rows = []Row{
		{Date: s.From, ID: 7, In: []Line{{"Sale of rings", decs("100000")}}, Balance: decs("225000.50")},
		{Date: s.To, ID: 12, In: []Line{{"Deposit", decs("0.25")}}, Out: []Line{{"Metal bought", decs("1400001")}}, Balance: decs("-1175000.25")},
	}
	p := write(t, s)
	require.Len(t, p.Pages, 1)
	require.Equal(t, []string{
		"Shree Ganesh Jewellers, Rajkot | Statement of account",
		"HDFC current account | Bank ledger",
		"Period: 01 Apr 2025 to 31 Mar 2026",
		"Date | No. | Details | IN (jama) | OUT (naame) | Balance",
		"Cash ₹ | Cash ₹ | Cash ₹",
		"Opening balance | 1,25,000.50",
		"01 Apr 2025 | 7 | Sale of rings | 1,00,000.00 | 2,25,000.50",
		"31 Mar 2026 | 12 | Deposit | 0.25",
		"Metal bought | 14,00,001.00 | -11,75,000.25",
		"Total | 1,00,000.25 | 14,00,001.00",
		"Closing balance | -11,75,000.25",
		"How to check this statement",
		"Drawn from store 7f1c2a9e-5b0d-4c1e-9a55-0e6f6f0c7d11 at log position 128445, recorded 02 Apr 2026 10:22:33.123456 +05:30.",
		"A request with known_at=128445 returns the same statement.",
		"Drawn from store 7f1c2a9e-5b0d-4c1e-9a55-0e6f6f0c7d11 at position 128445, recorded 02 Apr 2026 10:22:33.123456 +05:30 | Page 1 of 1",
	}, p.Lines(0))
}

func TestAnEmptyStatementHasItsOpeningAndClosingLines(t *testing.T) {
	t.Parallel()
	for _, side := range []Side{Both, In, Out} {
		s := bank(0)
		s.Side, s.From, s.To, s.Units, s.Opening = side, time.Time{}, time.Time{}, []Unit{Rupees, FineGrams}, decs("5", "-1.5")
		p := write(t, s)
		require.Len(t, p.Pages, 1)
		require.Equal(t, "Period: From the first row to the last", p.One("Period"))
		if side == Both {
			require.Equal(t, "Opening balance | 5.00 | -1.500", p.One("Opening"))
			require.Equal(t, "Closing balance | 5.00 | -1.500", p.One("Closing"))
			require.Equal(t, "Total | 0.00 | 0.000 | 0.00 | 0.000", p.One("Total"))
			continue
		}
		require.Equal(t, "Opening total | 0.00 | 0.000", p.One("Opening"))
		require.Equal(t, "Closing total | 0.00 | 0.000", p.One("Closing"))
		require.Equal(t, "Total | 0.00 | 0.000", p.One("Total"))
	}
}

func TestBalancesSayWhoOwesThem(t *testing.T) {
	t.Parallel()
	s := bank(0)
	s.Owed, s.Units, s.Opening = Owed{"you owe", "owes you", "settled"}, []Unit{Rupees, FineGrams}, decs("5", "-1.5")
	s.Rows = []Row{{Date: s.From, ID: 7, Out: []Line{{"Cash", decs("5", "0")}}, Balance: decs("0", "-1.5")}}
	p := write(t, s)
	require.Equal(t, "Opening balance | 5.00 you owe | 1.500 owes you", p.One("Opening"))
	require.Equal(t, "01 Apr 2025 | 7 | Cash | 5.00 | 0.00 settled | 1.500 owes you", p.One("01 Apr 2025 | 7"))
	require.Equal(t, "Closing balance | 0.00 settled | 1.500 owes you", p.One("Closing"))
}

func TestOneSideShowsItsOwnEntriesAndTheirTotal(t *testing.T) {
	t.Parallel()
	s := karigar(40)
	s.Before = decs("100000000", "1.5")
	for side, total := range map[Side]func(running) []decimal.Decimal{
		In:  func(r running) []decimal.Decimal { return r[In] },
		Out: func(r running) []decimal.Decimal { return r[Out] },
	} {
		s.Side = side
		sums := sumsOf(t, s)
		want := fmt.Sprintf("Total | %s | %s", Rupees.number(total(sums)[0]), FineGrams.number(total(sums)[1]))
		p := write(t, s)
		require.Equal(t, want, p.One("Total"))
		require.Equal(t, "Opening total | 10,00,00,000.00 | 1.500", p.One("Opening"))
		closing := newRunning(s.Before)
		closing.add(In, total(sums))
		require.Equal(t, fmt.Sprintf("Closing total | %s | %s", Rupees.number(closing[Both][0]), FineGrams.number(closing[Both][1])),
			p.One("Closing"))
		shown := 0
		for _, row := range s.Rows {
			if len(row.of(side)) > 0 {
				shown++
			}
		}
		dated := 0
		for i := range p.Pages {
			for _, l := range p.Lines(i) {
				if _, err := time.Parse("02 Jan 2006", strings.Split(l, " | ")[0]); err == nil {
					dated++
				}
			}
		}
		require.Equal(t, shown, dated)
	}
}

func TestEveryPageCarriesItsNumberAndTheSums(t *testing.T) {
	t.Parallel()
	for _, s := range []sample{bank(200), karigar(190)} {
		p := write(t, s)
		require.Greater(t, len(p.Pages), 3)
		for i := range p.Pages {
			require.Contains(t, p.Lines(i)[0], "Statement of account")
			require.True(t, slices.ContainsFunc(p.Lines(i), func(l string) bool {
				return strings.HasSuffix(l, fmt.Sprintf("Page %d of %d", i+1, len(p.Pages)))
			}))
		}
		require.Len(t, p.Starting("Period: 01 Apr 2025 to 31 Mar 2026"), len(p.Pages))
		carried, brought := p.Starting("Carried forward"), p.Starting("Brought forward")
		require.Len(t, carried, len(p.Pages)-1)
		for i := range carried {
			require.Equal(t, strings.TrimPrefix(carried[i], "Carried"), strings.TrimPrefix(brought[i], "Brought"))
		}
	}
}

func TestSumsCarriedForwardCoverTheRowsAbove(t *testing.T) {
	t.Parallel()
	s := bank(100)
	p := write(t, s)
	above := 0
	for _, l := range p.Lines(0) {
		if strings.Contains(l, " | Rent ") || strings.Contains(l, " | Received ") {
			above++
		}
	}
	s.Rows = s.Rows[:above]
	sums := sumsOf(t, s)
	require.Equal(t, fmt.Sprintf("Carried forward | %s | %s | %s", Rupees.number(sums[In][0]), Rupees.number(sums[Out][0]),
		Rupees.number(sums[Both][0])),
		p.Starting("Carried forward")[0])
}

func sumsOf(t *testing.T, s sample) running {
	t.Helper()
	sums := newRunning(s.Opening)
	for i := range s.Rows {
		require.NoError(t, s.add(&sums, &s.Rows[i]))
	}
	return sums
}

// So the first page is there at once, and the memory for a statement does not grow with its rows.
func TestAPageIsWrittenWhenItEnds(t *testing.T) {
	t.Parallel()
	const all = 3000
	var out count
	s := karigar(all)
	whole, passes := s.whole(), 0
	rows := whole.Rows
	whole.Rows = func(take func(Row) error) error {
		passes++
		done, before := 0, count(0)
		return rows(func(r Row) error {
			if done++; done%500 == 0 {
				require.Greater(t, out, before, "after %d rows", done)
				before = out
			}
			return take(r)
		})
	}
	require.NoError(t, Write(&out, whole))
	require.Equal(t, 1, passes)
}

func TestStatementThatDoesNotAddUpIsRefused(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*sample){
		"a row's balance":      func(s *sample) { s.Rows[3].Balance = decs("1") },
		"the last row":         func(s *sample) { s.Rows[9].Balance = decs("1") },
		"the opening balance":  func(s *sample) { s.Opening = decs("125000.51") },
		"a row that is absent": func(s *sample) { s.Rows = slices.Delete(s.Rows, 4, 5) },
	} {
		s := bank(10)
		spoil(&s)
		var b bytes.Buffer
		require.ErrorIs(t, Write(&b, s.whole()), errDoesNotAddUp, name)
		require.NotContains(t, b.String(), "%%EOF", name)
	}
}

func TestAMalformedStatementIsRefused(t *testing.T) {
	t.Parallel()
	for want, spoil := range map[string]func(*sample){
		"statement with 0 units, not 1 to 4":                      func(s *sample) { s.Units = nil },
		"statement of unknown side 3":                             func(s *sample) { s.Side = 3 },
		"opening balance has 2 amounts for 1 units":               func(s *sample) { s.Opening = decs("1", "2") },
		"entry of row 101 has 0 amounts for 1 units":              func(s *sample) { s.Rows[0].Out[0].Amounts = nil },
		"balance of row 102 has 2 amounts for 1 units":            func(s *sample) { s.Rows[1].Balance = decs("1", "2") },
		"opening balance has an amount of more than 30 digits":    func(s *sample) { s.Opening = []decimal.Decimal{decimal.New(1, 999_999_999)} },
		"extent of its rows has 0 amounts for 1 units":            func(s *sample) { s.Extent = Extent{} },
		"balance of row 101 has an amount of more than 30 digits": func(s *sample) { s.Rows[0].Balance = decs(strings.Repeat("9", 31)) },
		"entry of row 101 has an amount of more than 30 digits":   func(s *sample) { s.Rows[0].Out[0].Amounts = decs("1e-31") },
	} {
		s := bank(2)
		s.Extent = s.extent()
		spoil(&s)
		s.Statement.Rows = each(s.Rows)
		require.EqualError(t, Write(&bytes.Buffer{}, s.Statement), want)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("no room") }

func TestWriterErrorIsReturned(t *testing.T) {
	t.Parallel()
	s, drawn := bank(100_000).whole(), 0
	rows := s.Rows
	s.Rows = func(take func(Row) error) error {
		return rows(func(r Row) error { drawn++; return take(r) })
	}
	require.EqualError(t, Write(broken{}, s), "no room")
	require.Less(t, drawn, 1000, "drawing stops soon after the writer fails")
}

func TestAmountsAreGroupedAsInIndiaAndNeverRounded(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"0": "0.00", "-0.5": "-0.50", "999.9": "999.90", "1000": "1,000.00", "99999.99": "99,999.99", "125000.5": "1,25,000.50",
		"-12345678.9": "-1,23,45,678.90", "1e9": "1,00,00,00,000.00", "1.500": "1.50", "1.2345": "1.2345",
		"123456789012345678901234567.89": "12,34,56,78,90,12,34,56,78,90,12,34,567.89",
	} {
		require.Equal(t, want, Rupees.number(dec(in)))
	}
	require.Equal(t, "1,500.000", FineGrams.number(dec("1500")))
	require.Equal(t, "₹ -5.00", Rupees.words(dec("-5")))
	require.Empty(t, Rupees.blank(dec("0.000")))
}

func TestTheSignedCheckpointIsPrintedWhole(t *testing.T) {
	t.Parallel()
	p := write(t, karigar(60))
	last := p.Lines(len(p.Pages) - 1)
	for l := range strings.Lines(checkpoint) {
		if l = strings.TrimSpace(l); l != "" {
			require.Contains(t, last, l)
		}
	}
	require.Len(t, p.Starting("Checkpoint bahi.example.in/log, size 128445, root hash qlAbFvVUUvLMbLRkGCpHbTk8mzQwbCyRUQLK9bfVqXo="),
		len(p.Pages))
}

func TestDocumentsHaveTheSameBytesAlsoConcurrently(t *testing.T) {
	t.Parallel()
	for name, draw := range map[string]func(*testing.T) []byte{
		"statement": func(t *testing.T) []byte { return write(t, karigar(10)).Raw },
		"orders":    func(t *testing.T) []byte { return drawOrders(t, someOrders(60)).Raw },
		"trail":     func(t *testing.T) []byte { return writeTrail(t, changes(30)).Raw },
	} {
		want := draw(t)
		require.Contains(t, string(want), "/CreationDate (D:20260402045233)")
		require.Contains(t, string(want), "/ModDate (D:20260402045233)")
		for i := range 4 {
			t.Run(name+strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				require.True(t, bytes.Equal(want, draw(t)))
			})
		}
	}
}

// bank is Latin in one unit, karigar has three scripts and two units.
func BenchmarkWrite(b *testing.B) {
	for name, s := range map[string]sample{"bank": bank(100_000), "karigar": karigar(100_000), "empty": bank(0)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var n count
				require.NoError(b, Write(&n, s.whole()))
				b.ReportMetric(float64(n), "bytes")
			}
		})
	}
}

type count int

func (c *count) Write(p []byte) (int, error) { *c += count(len(p)); return len(p), nil }
