package khatapage_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"bahi/domain/ledger/khatapage"
	"bahi/domain/unit"
	"bahi/internal/test/worktest"
)

var today = func() unit.Date {
	d, err := unit.ParseDate("2025-06-15")
	if err != nil {
		panic(err)
	}
	return d
}()

var accounts = []khatapage.Account{{Ledger: "karigar", ID: 4, Name: "Imran"}, {Ledger: "client", ID: 9, Name: "Meena Shah"},
	{Ledger: "client", ID: 10, Name: "Imran Khan"}}

// written is a page as text. A word's column in its line is its place on the page.
func written(text string) khatapage.Page {
	p := khatapage.Page{Width: 1000}
	for n, line := range strings.Split(strings.Trim(text, "\n"), "\n") {
		at := 0
		for at < len(line) {
			end := strings.IndexByte(line[at:], ' ')
			if end < 0 {
				end = len(line) - at
			}
			if end > 0 {
				from := utf8.RuneCountInString(line[:at])
				word := line[at : at+end]
				p.Words = append(p.Words, khatapage.Word{
					Left: 10 * from, Right: 10 * (from + utf8.RuneCountInString(word)), Top: 40 * n, Bottom: 40*n + 20, Text: word, Confidence: 90,
				})
			}
			at += end + 1
		}
	}
	return p
}

// short is an entry in a line.
func short(e khatapage.Entry) string {
	text := e.Side
	add := func(v any, known bool) {
		if known {
			text += fmt.Sprintf(" %v", v)
		} else {
			text += " -"
		}
	}
	add(value(e.Date), e.Date != nil)
	add(value(e.Account), e.Account != nil)
	add(value(e.Item), e.Item != nil)
	add(value(e.Weight), e.Weight != nil)
	add(value(e.Touch), e.Touch != nil)
	add(value(e.Fine), e.Fine != nil)
	add(value(e.Amount), e.Amount != nil)
	return text
}

func value[T any](v *T) (zero T) {
	if v == nil {
		return zero
	}
	return *v
}

// The blocks of pages.txt are a page with its entries (=, with ? where they are unsure) and its warnings (!).
func TestPagesAreRead(t *testing.T) {
	t.Parallel()
	text := worktest.File(t, "testdata/pages.txt")
	blocks := strings.Split(string(text), "\n## ")
	require.Len(t, blocks, 50)
	for _, block := range blocks {
		sentence, rest, _ := strings.Cut(block, "\n")
		o := khatapage.Options{Today: today, Accounts: accounts, Similar: strings.Contains(sentence, "[similar]"),
			OutLeft: strings.Contains(sentence, "[out left]")}
		if strings.Contains(sentence, "[two of one name]") {
			o.Accounts = []khatapage.Account{{Ledger: "bank", ID: 1, Name: "Ravi"}, {Ledger: "client", ID: 2, Name: "Ravi"}}
		}
		var page, want []string
		for line := range strings.SplitSeq(strings.TrimSpace(rest), "\n") {
			if strings.HasPrefix(line, "= ") || strings.HasPrefix(line, "! ") {
				want = append(want, line)
			} else {
				page = append(page, line)
			}
		}
		read, got := khatapage.Read([]khatapage.Page{written(strings.Join(page, "\n"))}, o), []string{}
		for _, e := range read.Entries {
			got = append(got, "= "+map[bool]string{false: "? "}[sure(e)]+short(e))
		}
		for _, warning := range read.Warnings {
			got = append(got, "! "+warning)
		}
		assert.Equal(t, want, got, block)
	}
}

func TestATotalThatIsHardToReadIsNoEntry(t *testing.T) {
	t.Parallel()
	p := written("Party: Imran\n          OUT\nDate  Item    Rs\n2/3   cash    100\n      Total   100")
	for i, w := range p.Words {
		if w.Text == "Total" {
			p.Words[i].Confidence = 12
		}
	}
	require.Len(t, khatapage.Read([]khatapage.Page{p}, khatapage.Options{Accounts: accounts, Today: today}).Entries, 1)
}

func TestStruckLinesAreDoubted(t *testing.T) {
	t.Parallel()
	p := written("OUT\nDate  Item   Rs\n1/3   cash   5\n2/3   cash   6")
	for i := range p.Words {
		p.Words[i].Struck = p.Words[i].Top == 80
	}
	got := khatapage.Read([]khatapage.Page{p}, khatapage.Options{Today: today})
	require.Len(t, got.Entries, 2)
	require.LessOrEqual(t, got.Entries[0].Confidence.String(), "0.3")
	require.Greater(t, got.Entries[1].Confidence.String(), "0.3")
	require.Contains(t, strings.Join(got.Warnings, "\n"), "seems to be struck out")
}

func TestNumbersAtTheEdgeOfThePictureAndUnclearDatesAreDoubted(t *testing.T) {
	t.Parallel()
	p := written("OUT\nDate  Item   Rs\n1/3   cash   5\n2/3   cash   6\n3/3   cash   7\n      cash   8")
	last := len(p.Words) - 3
	p.Words[last-3].Cut, p.Words[last-2].Confidence = true, 72
	got := khatapage.Read([]khatapage.Page{p}, khatapage.Options{Today: today})
	require.Equal(t, []bool{true, false, false, false}, []bool{sure(got.Entries[0]), sure(got.Entries[1]), sure(got.Entries[2]),
		sure(got.Entries[3])})
	require.Contains(t, strings.Join(got.Warnings, "\n"), `the date "3/3" of the line "3/3 cash 7" is hard to read`)
	require.Contains(t, strings.Join(got.Warnings, "\n"), `the number "6" of the line "2/3 cash 6" is hard to read`)
}

func TestModelIsCheckedAgainstTheWords(t *testing.T) {
	t.Parallel()
	words := khatapage.Read([]khatapage.Page{written("OUT\nDate  Item   Rs\n1/3   cash   500\n2/3   rent   70")},
		khatapage.Options{Today: today})
	seen := []khatapage.Entry{
		{Side: "out", Party: new("imran"), Item: new("cash"), Amount: new(unit.Money(500_00))},
		{Side: "out", Item: new("rent"), Amount: new(unit.Money(99_00))},
	}
	got, _ := khatapage.Merge(words, [][]khatapage.Entry{seen}, khatapage.Options{Accounts: accounts, Today: today})
	require.Len(t, got.Entries, 2)
	require.Equal(t, "0.9", got.Entries[0].Confidence.String())
	require.Equal(t, int64(4), *got.Entries[0].Account)
	require.Equal(t, "1/3 cash 500", got.Entries[0].Raw)
	require.Equal(t, "0.5", got.Entries[1].Confidence.String())
	require.Contains(t, got.Warnings, "page 1: 1 entries that the model saw are not confirmed by the text")
	got, _ = khatapage.Merge(words, [][]khatapage.Entry{nil}, khatapage.Options{})
	require.Equal(t, words.Entries, got.Entries)
}

func TestNothingThatAModelOrTheTextSawVanishes(t *testing.T) {
	t.Parallel()
	words := khatapage.Read([]khatapage.Page{written("OUT\nDate Item Rs\n1/3 cash 500\n2/3 rent 700")}, khatapage.Options{Today: today})
	cash := khatapage.Entry{Side: "out", Item: new("cash"), Amount: new(unit.Money(500_00))}
	aside := khatapage.Entry{Item: new("ring"), Amount: new(unit.Money(5_00))}
	unread := khatapage.Entry{Side: "in", Party: new("Imran")}
	got, _ := khatapage.Merge(words, [][]khatapage.Entry{{aside, cash, unread}}, khatapage.Options{Today: today})
	require.Len(t, got.Entries, 1)
	for _, warning := range []string{
		`page 1: an entry that the model saw is left out, as its side is unknown: "ring"`, `page 1: an entry that the model saw is left out, ` +
			`as no number of it can be read: "Imran"`,
		`page 1: the text has entries that the model did not see, among them "2/3 rent 700"`,
	} {
		require.Contains(t, got.Warnings, warning)
	}
	got, _ = khatapage.Merge(words, [][]khatapage.Entry{{aside, unread}}, khatapage.Options{Today: today})
	require.Equal(t, words.Entries, got.Entries)
}

func TestYearOfAModelIsBelievedAsOneOfTheText(t *testing.T) {
	t.Parallel()
	dated := func(text string) khatapage.Entry {
		date, err := unit.ParseDate(text)
		require.NoError(t, err)
		return khatapage.Entry{Side: "out", Date: &date, Amount: new(unit.Money(5_00))}
	}
	got, _ := khatapage.Merge(khatapage.Result{}, [][]khatapage.Entry{{dated("2099-01-01"), dated("2026-03-01")}},
		khatapage.Options{Today: today})
	require.Equal(t, "2025-01-01", got.Entries[0].Date.String())
	require.Contains(t, got.Warnings, "page 1: the year 2099 is not plausible")
	require.Equal(t, "2026-03-01", got.Entries[1].Date.String())
}

func FuzzReadNeverPanics(f *testing.F) {
	f.Add("OUT\nDate Item Rs\n1/3 cash 5", true)
	f.Add("जमा नाम\n\" \" ,, 1,2,3.4.5/- 99999999999999999", false)
	f.Fuzz(func(t *testing.T, text string, similar bool) {
		if len(text) > 4096 {
			return
		}
		got := khatapage.Read([]khatapage.Page{written(text)}, khatapage.Options{Today: today, Accounts: accounts, Similar: similar})
		for _, e := range got.Entries {
			require.Contains(t, []string{"in", "out"}, e.Side)
			require.LessOrEqual(t, e.Confidence, unit.Whole/100)
		}
	})
}

// sure reports whether an entry's confidence is above the maximum of entries that were not understood.
func sure(e khatapage.Entry) bool { return e.Confidence > 6*unit.Whole/1000 }

func TestADateIsReadOrNull(t *testing.T) {
	t.Parallel()
	for _, heads := range []string{"OUT\nDate             Item    Rs", "OUT"} {
		for text, want := range map[string]string{
			"2-Mar-25": "2025-03-02", "02 Mar 2025": "2025-03-02", "2nd March 2025": "2025-03-02", "2025-03-02": "2025-03-02",
			"Mar 2, 2025": "2025-03-02", "2.3.2025": "2025-03-02",
			"2Mar25": "2025-03-02", "02 03 2025": "2025-03-02", "2 / 3 / 25": "2025-03-02", "२ मार्च २०२५": "2025-03-02",
			"०२-०३-२०२५": "2025-03-02", "૨ માર્ચ ૨૦૨૫": "2025-03-02", "૨-ફેબ્રુઆરી-૨૫": "2025-02-02",
			"2 फ़रवरी 2025": "2025-02-02", "5 સપ્ટેમ્બર 2024": "2024-09-05", "11 Sept. '24": "2024-09-11", "1st Jan": "2025-01-01",
			`"`: "2024-11-07", "": "2024-11-07",
			"31-02-2025": "-", "12/13/2025": "-", "32 Mar 2025": "-", "73-9-25": "-", "0-5-25": "-", "2-Mxr-25": "-", "11.09.202S5": "-",
			"31 जून 2025": "-", "Mar-25": "-", "Mar '25": "-", "માર્ચ/24": "-", "Mar-5": "2025-03-05", "2025-13-01": "-",
			"Sun 2 Mar 25": "2025-03-02", "Dt. 2/3/25": "2025-03-02", "2nd of Mar 2025": "2025-03-02", "રવિવાર ૨/૩/૨૫": "2025-03-02",
			"2~3~25": "-", "2:3:25": "-", "2⁄3⁄25": "-", "Sun 31/2/25": "-",
			"-do-": "2024-11-07", "〃": "2024-11-07", "એજ": "2024-11-07", "तदैव": "2024-11-07",
			"Sunday": "headed", "same": "headed", "yesterday": "headed", "कल": "headed", "चैत्र सुद 2": "headed", "આજે": "headed",
		} {
			if want == "headed" { // without a heading, nobody knows that it stands for a date
				if heads == "OUT" {
					continue
				}
				want = "-"
			}
			line := func(date, item string) string {
				return date + strings.Repeat(" ", 17-utf8.RuneCountInString(date)) + item
			}
			p := written(heads + "\n" + line("07-11-2024", "ring    1,000") + "\n" + line(text, "cash    2,000") + "\n" + line("", "rent    3,000"))
			got := khatapage.Read([]khatapage.Page{p}, khatapage.Options{Today: today})
			warnings := strings.Join(got.Warnings, "\n")
			require.Len(t, got.Entries, 3, text)
			for _, e := range got.Entries[1:] { // the third repeats the second's
				date := "-"
				if e.Date != nil {
					date = e.Date.String()
				}
				require.Equal(t, want, date, "%q: %s", text, warnings)
				require.Equal(t, want != "-", sure(e), "%q: %s", text, warnings)
			}
			require.Equal(t, "cash", value(got.Entries[1].Item), text)
			if want == "-" {
				require.Contains(t, warnings, strings.Fields(text)[0], text)
			}
		}
	}
}

func TestRemainsOfATextAreDoubted(t *testing.T) {
	t.Parallel()
	for line, date := range map[string]string{
		"02/06/2025 2S5 payal    1,250.00":             "2025-06-02",
		"02/06/2025 રપ5 પાયલ    608.19   80   486.552": "2025-06-02",
		"d   1,250.00":                          "2025-06-01",
		"2025 3    761.5   92.5   704.388":      "2025-06-01",
		"02/06/2025 payal    585        438.75": "2025-06-02",
		"«02/06/2025 payal    500   80   400":   "2025-06-02",
		"‹2-6-25 payal    500   80   400":       "2025-06-02",
	} {
		got := khatapage.Read([]khatapage.Page{written("Khata 2025\n01/06/2025 22k payal    500   80   400\n" + line)},
			khatapage.Options{Today: today})
		require.Len(t, got.Entries, 2, line)
		require.True(t, sure(got.Entries[0]), line)
		require.False(t, sure(got.Entries[1]), "%s: %v", line, got)
		require.NotEmpty(t, got.Warnings, line)
		require.Equal(t, date, value(got.Entries[1].Date).String(), line)
	}
	got := khatapage.Read([]khatapage.Page{written("Khata 2025\n6/S payal    500   80   400")}, khatapage.Options{Today: today})
	require.Equal(t, "2025-05-06", value(got.Entries[0].Date).String())
}

// One digit of a number that was read otherwise, twice or not at all is corrected where the weight, the touch and the fine weight leave one
// reading. Such an entry is unsure. A misread point or blank is not a doubt if the product is exact.
func TestADigitIsCorrectedByTheOtherNumbers(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"payal    3389.07   75     291.803":    "389.07 75 291.803",
		"payal    437       75     3327.75":    "437 75 327.75",
		"payal    629.55    80     503.6":      "629.5 80 503.6",
		"payal    288       88     230.4":      "288 80 230.4",
		"payal    531.41    80     425.28":     "531.41 80 425.128",
		"payal    322.006   9?     296.246":    "322.006 92 296.246",
		"payal    42ર.283   99.5   42.072":     "42.283 99.5 42.072",
		"payal    532.278   75,399.209":        "532.278 75 399.209",
		"payal    198.5     75148  875":        "198.5 75 148.875",
		"payal    653.,33   92.5   604.33":     "653.33 92.5 604.33",
		"payal    985,902   75     739.427":    "985.902 75 739.427",
		"payal    399.74    99.5   397.742":    "399.74 99.5 397.742", // 397.741, which is no digit's misreading alone
		"payal    500       92.5   1234":       "500 92.5 1234",
		"payal    250.5     92     230.46":     "250.5 92 230.46",
		"payal    10        50     5":          "10 50 5",
		"payal    123.456   91.6   113.085696": "123.456 91.6 113.086",
		"payal    82,065    80     65,652":     "82065 80 65652", // or 82.065 and 65.652
		"payal    1,250     80     1000":       "1250 80 1000",
	} {
		page := written("OUT\nDate Item        Wt        Touch  Fine\n1/6/2025 " + line)
		got := khatapage.Read([]khatapage.Page{page}, khatapage.Options{Today: today})
		require.NotEmpty(t, got.Entries, line)
		e := got.Entries[0]
		exact := slices.Contains([]string{"250.5", "10", "985,902", "653.,33", "532.278", "198.5", "1,250"}, strings.Fields(line)[1])
		assert.Equal(t, want, fmt.Sprint(value(e.Weight), " ", value(e.Touch), " ", value(e.Fine)), line)
		assert.Equal(t, exact, sure(e), "%s: %v", line, got.Warnings)
	}
}

func TestASideWhoseNameIsUnreadIsTheOther(t *testing.T) {
	t.Parallel()
	for _, names := range []string{"STAT                          OUT", "IN                            STAT"} {
		got := khatapage.Read([]khatapage.Page{written(names + `
Date        Item      Rs      Date        Item      Rs
02-04-2025  chain     1,500   03-04-2025  ring      2,500
04-04-2025  payal     1,700   05-04-2025  nath      2,700
`)}, khatapage.Options{Today: today})
		var read []string
		for _, e := range got.Entries {
			require.False(t, sure(e), names)
			read = append(read, e.Side+" "+value(e.Item)+" "+e.Amount.String())
		}
		require.Equal(t, []string{khatapage.In + " chain 1500", khatapage.Out + " ring 2500", khatapage.In + " payal 1700",
			khatapage.Out + " nath 2700"}, read, names)
		require.Contains(t, strings.Join(got.Warnings, "\n"), "the name of one of the two sides was not read")
	}
}

func TestRowsAreMatchedByTheirOwnLine(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("IN                                                OUT\nDate        Item          Rs            Date        Item       " +
		"   Rs\n")
	for i := range 9 {
		fmt.Fprintf(&text, "%02d-04-2025  chain      1,%d00            %02d-05-2025  ring       2,%d00\n", i+1, i, i+11, i)
	}
	// of the first and the last line, in thousandths
	for _, fall := range [][2]int{{0, 0}, {20, 20}, {-35, -35}, {10, 30}, {-30, -10}, {50, 50}} {
		p := written(text.String())
		for i, w := range p.Words {
			down := (w.Left + w.Right) / 2 * (fall[0] + (fall[1]-fall[0])*w.Top/440) / 1000
			p.Words[i].Top, p.Words[i].Bottom = w.Top+down, w.Bottom+down
		}
		got := khatapage.Read([]khatapage.Page{p}, khatapage.Options{Today: today})
		require.Len(t, got.Entries, 18, fall)
		for i, e := range got.Entries {
			want := fmt.Sprintf("in 2025-04-%02d - chain - - - 1%d00", i/2+1, i/2)
			if i%2 == 1 {
				want = fmt.Sprintf("out 2025-05-%02d - ring - - - 2%d00", i/2+11, i/2)
			}
			require.Equal(t, want, short(e), fall)
		}
	}
}

func TestAModelConfirmsWhatTheTextSaysAsAWhole(t *testing.T) {
	t.Parallel()
	words := khatapage.Read([]khatapage.Page{written("OUT\nDate  Item   Wt    Touch\n1/3   kada   500   92\n2/3   ring   10    75")},
		khatapage.Options{Today: today})
	seen := words.Entries[:2:2]
	model := []khatapage.Entry{
		{Side: "out", Date: seen[0].Date, Weight: seen[0].Weight, Touch: seen[0].Touch}, // without the fine weight, which is computed
		{Side: "out", Date: seen[0].Date, Weight: seen[1].Weight, Touch: seen[1].Touch}, // with another date
	}
	got, used := khatapage.Merge(words, [][]khatapage.Entry{model}, khatapage.Options{Today: today})
	require.True(t, used)
	require.True(t, sure(got.Entries[0]))
	require.Equal(t, "460", got.Entries[0].Fine.String())
	require.False(t, sure(got.Entries[1]))
	require.Contains(t, got.Warnings, `page 1: the model has another date for "2/3 ring 10 75" than the text`)
	for _, none := range [][]khatapage.Entry{nil, {}, {{Item: new("ring")}}} {
		_, used := khatapage.Merge(words, [][]khatapage.Entry{none}, khatapage.Options{Today: today})
		require.False(t, used, "all entries are the text's")
	}
}
