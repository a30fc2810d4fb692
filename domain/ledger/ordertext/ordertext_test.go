package ordertext_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/domain/ledger/ordertext"
	"bahi/domain/person"
	"bahi/domain/unit"
	"bahi/internal/test/worktest"
)

// message is a line of the corpus: a message and its orders.
type message struct {
	text, slip string
	entries    [][4]string // item, grams, pieces, client
}

// rows returns the rows of a table, of three cells each.
func rows(t testing.TB, name string) (all [][]string) {
	t.Helper()
	text := worktest.File(t, name)
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t"); !strings.HasPrefix(line, "# ") {
			require.Len(t, cells, 3, line)
			all = append(all, cells)
		}
	}
	return all
}

func corpus(t testing.TB) (all []message) {
	t.Helper()
	for _, cells := range rows(t, "testdata/messages.tsv") {
		m := message{text: strings.ReplaceAll(cells[0], `\n`, "\n"), slip: cells[1]}
		for entry := range strings.SplitSeq(cells[2], " | ") {
			if entry != "" {
				fields := strings.Split(entry, ";")
				require.Len(t, fields, 4, cells)
				m.entries = append(m.entries, [4]string(fields))
			}
		}
		all = append(all, m)
	}
	return all
}

// shown returns an entry in the form of the corpus.
func shown(e ordertext.Entry) (fields [4]string) {
	fields[0], fields[3] = e.Item, e.Client
	if e.Weight != 0 {
		fields[1] = strings.TrimRight(strings.TrimRight(e.Weight.String(), "0"), ".")
		if !strings.Contains(e.Weight.String(), ".") {
			fields[1] = e.Weight.String()
		}
	}
	if e.Quantity != 0 {
		fields[2] = unit.Grams(e.Quantity * 1000).String()
		fields[2], _, _ = strings.Cut(fields[2], ".")
	}
	return fields
}

// score counts the values of a field.
type score struct{ right, wrong, missing int }

func (s score) precision() float64 { return float64(s.right) / float64(max(1, s.right+s.wrong)) }
func (s score) recall() float64    { return float64(s.right) / float64(max(1, s.right+s.missing)) }

// compare counts the values of one field in a message's entries, each with the entry at its place.
func (s *score) compare(want, found [][4]string, field int) (equal bool) {
	equal = true
	for i := range max(len(want), len(found)) {
		var w, f string
		if i < len(want) {
			w = person.Folded(want[i][field])
		}
		if i < len(found) {
			f = person.Folded(found[i][field])
		}
		switch {
		case w == f && w != "":
			s.right++
			continue
		case w == f:
			continue
		}
		equal = false
		if f != "" {
			s.wrong++
		}
		if w != "" {
			s.missing++
		}
	}
	return equal
}

func TestCorpusIsReadWithinItsFigures(t *testing.T) {
	t.Parallel()
	all := corpus(t)
	require.GreaterOrEqual(t, len(all), 250)
	fields := [4]string{"item", "weight", "quantity", "client"}
	least := [4]float64{0.95, 0.98, 0.95, 0.85}
	var scores [4]score
	slips := 0
	for _, m := range all {
		order := ordertext.Parse(m.text)
		found := make([][4]string, len(order.Entries))
		for i, e := range order.Entries {
			found[i] = shown(e)
			require.True(t, e.Confidence > 0 && e.Confidence <= 100)
		}
		same := true
		for field := range fields {
			same = scores[field].compare(m.entries, found, field) && same
		}
		right := !slices.ContainsFunc(order.Entries, func(e ordertext.Entry) bool { return e.Slip != m.slip })
		if right {
			slips++
		}
		if !same || !right {
			t.Logf("%q: wanted %q %q, found %q %+v", m.text, m.slip, m.entries, found, order)
		}
	}
	t.Logf("%d messages, %d slips right", len(all), slips)
	for field, s := range scores {
		t.Logf("%-8s precision %.3f, recall %.3f", fields[field], s.precision(), s.recall())
		require.GreaterOrEqual(t, s.precision(), least[field], fields[field])
		require.GreaterOrEqual(t, s.recall(), least[field], fields[field])
	}
	require.GreaterOrEqual(t, float64(slips)/float64(len(all)), 0.98)
}

// These messages have exactly these values, and each part without a value has a warning (CONTRACT.md R1, R2).
func TestMessagesAreReadExactly(t *testing.T) {
	t.Parallel()
	all := rows(t, "testdata/exact.tsv")
	require.GreaterOrEqual(t, len(all), 106)
	for _, cells := range all {
		order := ordertext.Parse(strings.ReplaceAll(cells[0], `\n`, "\n"))
		var found []string
		doubted := len(order.Unused) == 0 || len(order.Entries) == 0
		for _, e := range order.Entries {
			fields := shown(e)
			found = append(found, fmt.Sprintf("%s;%s;%d", strings.Join(fields[:], ";"), e.Slip, e.Confidence))
			doubted = doubted || e.Confidence <= 60
		}
		require.Equal(t, cells[1], strings.Join(found, " | "), cells[0])
		require.Equal(t, cells[2], strings.Join(order.Unused, " | "), cells[0])
		require.True(t, doubted, cells[0])
	}
}

func TestLongTextsAreCut(t *testing.T) {
	t.Parallel()
	many := ordertext.Parse(strings.Repeat("payal 250 gm\n", ordertext.MaxEntries+1))
	require.Len(t, many.Entries, ordertext.MaxEntries)
	require.True(t, many.Cut)
	long := ordertext.Parse("party: " + strings.Repeat("क", 300) + "\n" + strings.Repeat("payal ", 300) + "250 gm").Entries
	require.Len(t, long, 1)
	require.LessOrEqual(t, len([]rune(long[0].Item)), ordertext.MaxItem)
	require.Len(t, []rune(long[0].Client), ordertext.MaxClient)
}

// These texts would take long if each search ran to the end of the text.
func TestNoTextTakesLong(t *testing.T) {
	t.Parallel()
	for _, part := range []string{"1g,", "for hello ", "1/", "1-", "a", "क-", "1) ", "for ", "party: ", ",", "1,000,", "½", "\u200d",
		"@", "pcs ", "x1", ";", "#", "slip "} {
		text := []rune("payal 5g " + strings.Repeat(part, 4096))[:4096]
		parseQuickly(t, string(text))
	}
}

// within is the time for a text of 4,096 characters, with room for the many processes of fuzzing.
const within = time.Second

// parseQuickly requires the parser to keep that time. The best of five times counts, because of other load on the machine.
func parseQuickly(t *testing.T, text string) (order ordertext.Order) {
	t.Helper()
	for range 5 {
		began := time.Now()
		order = ordertext.Parse(text)
		if time.Since(began) < within {
			return order
		}
	}
	t.Fatalf("slow: %.100q", text)
	return order
}

func FuzzParse(f *testing.F) {
	for _, m := range corpus(f) {
		f.Add(m.text)
	}
	f.Add("1/1/1:1.1-1 x x x 9999999999999999999999 ,,,1,1,1,")
	f.Fuzz(func(t *testing.T, text string) {
		if runes := []rune(text); len(runes) > 4096 {
			text = string(runes[:4096])
		}
		order := parseQuickly(t, text)
		require.LessOrEqual(t, len(order.Entries), ordertext.MaxEntries)
		for _, e := range order.Entries {
			require.NotEmpty(t, e.Item)
			require.LessOrEqual(t, len([]rune(e.Item)), ordertext.MaxItem)
			require.LessOrEqual(t, len([]rune(e.Client)), ordertext.MaxClient)
			require.True(t, e.Weight >= 0 && e.Weight <= ordertext.MaxWeight, e.Weight)
			require.True(t, e.Quantity >= 0 && e.Quantity <= ordertext.MaxQuantity, e.Quantity)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	all := corpus(b)
	for i := 0; b.Loop(); i++ {
		ordertext.Parse(all[i%len(all)].text)
	}
}
