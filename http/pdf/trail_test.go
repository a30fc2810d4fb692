package pdf

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"bahi/internal/test/pdftest"

	"github.com/stretchr/testify/require"
)

// memory is a trail with its changes in memory.
type memory struct {
	Trail

	Changes  []TrailChange
	Closings []TrailClosing
}

func (r memory) whole() Trail {
	r.Trail.Changes, r.Trail.Closings = each(r.Changes), each(r.Closings)
	return r.Trail
}

// changes returns a trail of n changes in three scripts.
func changes(n int) memory {
	t := memory{Trail: Trail{
		Title: "श्री गणेश ज्वेलर्स · Shree Ganesh Jewellers",
		Scope: []string{"FY 2026-27: recorded 01 Apr 2026 to 31 Mar 2027", "Party: રમેશભાઈ"},
		Drawn: bank(0).Drawn,
	}}
	for i := range n {
		t.Changes = append(t.Changes, TrailChange{
			At: time.Date(2026, 4, 2, 10, 22, i, 0, ist), Position: uint64(1000 + i), What: fmt.Sprintf("Row %d of HDFC चालू खाता edited", i),
			Who: "user:0195e8a0-7c1e-7000-8000-0000000000aa", Reason: "ભૂલ સુધારી, typed twice",
			Fields: []TrailField{{"date", "2026-03-31", "2026-04-01"}, {"in_entries[0].description", "पायल, शुद्ध चाँदी की", ""},
				{"in_entries[0].amount", "1250.5", "-7"}},
		})
	}
	return t
}

func writeTrail(t *testing.T, trail memory) pdftest.Document {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, WriteTrail(&out, trail.whole()))
	return pdftest.Read(t, out.Bytes())
}

func TestTrailShowsEachFieldAndItsSource(t *testing.T) {
	t.Parallel()
	trail := changes(1)
	trail.Closings = []TrailClosing{{"HDFC", "31 Mar 2026, FY 2025-26", "₹ 1,00,000.00", "₹ 98,742.50", "1 change, position 1000"}}
	p := writeTrail(t, trail)
	require.Len(t, p.Pages, 1)
	lines := p.Lines(0)
	for _, line := range []string{
		"FY 2026-27: recorded 01 Apr 2026 to 31 Mar 2027", "Field | From | To",
		"date | 2026-03-31 | 2026-04-01", "in_entries[0].amount | 1250.5 | -7",
		"31 Mar 2026, FY 2025-26 | ₹ 1,00,000.00 | ₹ 98,742.50", "1 change, position 1000",
		"Drawn from store 7f1c2a9e-5b0d-4c1e-9a55-0e6f6f0c7d11 at position 128445, recorded 02 Apr 2026 10:22:33.123456 +05:30 | Page 1 of 1",
	} {
		require.Contains(t, lines, line)
	}
	whole := strings.ReplaceAll(strings.Join(lines, "\n"), " | ", "") // each script is a run of its own
	for _, text := range []string{"Party: રમેશભાઈ", "Row 0 of HDFC चालू   खाता edited", "because: ભૂલ   સુધારી, typed twice",
		"पायल, शुद्ध   चाँदी   की"} {
		require.Contains(t, strings.Join(strings.Fields(whole), " "), strings.Join(strings.Fields(text), " "))
	}
}

func TestEmptyTrailSaysSo(t *testing.T) {
	t.Parallel()
	p := writeTrail(t, changes(0))
	require.Contains(t, p.Lines(0), "Nothing was changed.")
	require.Contains(t, p.Lines(0), "None.")
}

func TestEveryTrailPageNamesItsSource(t *testing.T) {
	t.Parallel()
	trail := changes(200)
	trail.Drawn.Checkpoint = checkpoint
	trail.Changes[50].Fields = []TrailField{{"in_entries[0].description", strings.Repeat("long ", 2000), strings.Repeat("लंबा ", 500)}}
	for i := range 150 {
		trail.Closings = append(trail.Closings,
			TrailClosing{fmt.Sprintf("Account %d", i/40), "31 Mar 2026", "₹ 1.00", "₹ 2.00", "1 change, position 1000"})
	}
	p := writeTrail(t, trail)
	require.Greater(t, len(p.Pages), 10)
	for n := range p.Pages {
		text := strings.Join(p.Lines(n), "\n")
		require.Contains(t, text, fmt.Sprintf("Page %d of %d", n+1, len(p.Pages)))
		require.Contains(t, text, "at position 128445")
		require.Contains(t, text, "Checkpoint bahi.example.in/log, size 128445")
		require.Contains(t, text, "Audit trail")
		for _, line := range p.Pages[n] {
			require.Less(t, line.Y, pageHeight)
			require.Positive(t, line.Y)
		}
	}
	for i := range trail.Changes {
		require.NotEmpty(t, p.One(fmt.Sprintf("Row %d of", i)))
	}
	require.Contains(t, strings.Join(p.Starting("position 1050"), "\n"), "continued")
}

func TestLongNamesDoNotOverlap(t *testing.T) {
	t.Parallel()
	trail := changes(3)
	name := strings.TrimSpace(strings.Repeat("WIDE MILLS ", 11))
	for i := range 60 {
		trail.Closings = append(trail.Closings,
			TrailClosing{name + " (bank 1)", fmt.Sprintf("31 Mar 20%02d", i), "₹ 1.00", "₹ 2.00", "1 change, position 1000"})
	}
	trail.Changes[0].What, trail.Changes[1].Reason = "Row 1 of "+name+" (bank 1) edited", strings.Repeat("because ", 60)
	type place struct{ x, y float64 }
	for _, page := range writeTrail(t, trail).Pages {
		there := map[place]string{}
		for _, text := range page {
			at := place{text.X, text.Y}
			require.Empty(t, there[at], "%q and %q are in one place", there[at], text.Text)
			there[at] = text.Text
		}
	}
}
