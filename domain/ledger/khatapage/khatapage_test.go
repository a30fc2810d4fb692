package khatapage_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"bahi/domain/ledger/khatapage"
	"bahi/domain/unit"
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

// written is a page as text: the place of a word in its line, in characters, is its place on the page.
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

func read(o khatapage.Options, pages ...string) (all []string, warnings string) {
	o.Today = today
	if o.Accounts == nil {
		o.Accounts = accounts
	}
	var read []khatapage.Page
	for _, p := range pages {
		read = append(read, written(p))
	}
	got := khatapage.Read(read, o)
	for _, e := range got.Entries {
		all = append(all, short(e))
	}
	return all, strings.Join(got.Warnings, "\n")
}

func TestHeadersNameTheSidesAndColumns(t *testing.T) {
	t.Parallel()
	got, warnings := read(khatapage.Options{}, `
Khata 2025
Party: Imran
               IN                                        OUT
Date Item        Wt   Touch   Fine      Date Item         Wt   Touch   Fine   Rs
1/3  payal      520   92     478.4      2/3  silver      500   99.5   497.5
"    chain      100   92     92         3/3  cash                           1,25,000/-
`)
	require.Empty(t, warnings)
	require.Equal(t, []string{
		"in 2025-03-01 4 payal 520 92 478.4 -", "out 2025-03-02 4 silver 500 99.5 497.5 -",
		"in 2025-03-01 4 chain 100 92 92 -", "out 2025-03-03 4 cash - - - 125000",
	}, got)
}

// The widest band is between texts and numbers of one side there.
func TestTheSidesNamesMayStandAtTheirLeftOrRight(t *testing.T) {
	t.Parallel()
	const rows = `
02/06/2025 payal            2,500.00    02/06/2025 ring             1,250.00
03/06/2025 bali             1,500.00
04/06/2025 chain              700.00    05/06/2025 cash             250.00`
	for _, names := range []string{
		"IN                                      OUT",
		"                                  IN                                     OUT",
	} {
		got, warnings := read(khatapage.Options{}, names+rows)
		require.Empty(t, warnings)
		require.Equal(t, []string{
			"in 2025-06-02 - payal - - - 2500", "out 2025-06-02 - ring - - - 1250", "in 2025-06-03 - bali - - - 1500",
			"in 2025-06-04 - chain - - - 700", "out 2025-06-05 - cash - - - 250",
		}, got, names)
	}
}

func TestTheOnlySidesNameMayBeOverItsNumbers(t *testing.T) {
	t.Parallel()
	got, warnings := read(khatapage.Options{}, `
Party: Imran
Date        Item       IN
1/3/2025    payal      2,500
2/3/2025    cash       200
            Total      2,700
`)
	require.Empty(t, warnings)
	require.Equal(t, []string{"in 2025-03-01 4 payal - - - 2500", "in 2025-03-02 4 cash - - - 200"}, got)
}

func TestWithoutHeadersThePositionTells(t *testing.T) {
	t.Parallel()
	const text = `
Party: Imran
1-3-25  silver   500 g                   2-3-25  cash   20,000
3-3-25  payal    20.5 g                  4-3-25  cash   500/-
`
	got, warnings := read(khatapage.Options{}, text)
	require.Contains(t, warnings, "page 1: no column header found, sides taken from position")
	require.Equal(t, []string{"in 2025-03-01 4 silver 500 - - -", "out 2025-03-02 4 cash - - - 20000", "in 2025-03-03 4 payal 20.5 - - -",
		"out 2025-03-04 4 cash - - - 500"}, got)
	got, _ = read(khatapage.Options{OutLeft: true}, text)
	require.Equal(t, "out 2025-03-01 4 silver 500 - - -", got[0])
}

func TestTotalsAndOpeningLinesAreNoEntriesButChecked(t *testing.T) {
	t.Parallel()
	got, warnings := read(khatapage.Options{}, `
Party: Imran
          OUT
Date  Item             Rs
1/3   opening balance  900
2/3   cash             100
3/3   cash             200
      Total            350
`)
	require.Equal(t, []string{"out 2025-03-02 4 cash - - - 100", "out 2025-03-03 4 cash - - - 200"}, got)
	require.Equal(t, "page 1: the total of amount on the out side is 350, but its entries add up to 300", warnings)
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

func TestATotalMayContainTheOpeningBalance(t *testing.T) {
	t.Parallel()
	const page = `
Party: Imran
Date  Item             IN      OUT
1/3   opening balance  900
2/3   bill             100
3/3   cash                     200
3/3   closing balance          800
      Total            %s    1000
`
	_, warnings := read(khatapage.Options{}, fmt.Sprintf(page, "1000"))
	require.Empty(t, warnings)
	_, warnings = read(khatapage.Options{}, fmt.Sprintf(page, "1100"))
	require.Equal(t, "page 1: the total of amount on the in side is 1100, but its entries add up to 100", warnings)
	_, warnings = read(khatapage.Options{}, "Party: Imran\nOUT\nDate  Item               Rs\n2/3   balance payment    500\n3/3   cash       "+
		"        200")
	require.Equal(t, "page 1: the line \"2/3 balance payment 500\" is taken for a balance and is left out", warnings)
}

func TestATotalOfBothSidesIsNoEntryOfEither(t *testing.T) {
	t.Parallel()
	got, warnings := read(khatapage.Options{}, `
Party: Imran
Date  Item             IN      OUT
1/3   opening balance  900     50
2/3   bill             100
3/3   cash                     200
      Total            100     240
`)
	require.Equal(t, []string{"in 2025-03-02 4 bill - - - 100", "out 2025-03-03 4 cash - - - 200"}, got)
	require.Equal(t, "page 1: the total of amount on the out side is 240, but its entries add up to 200", warnings)
}

func TestNumbersAndDatesOfThreeScripts(t *testing.T) {
	t.Parallel()
	got, _ := read(khatapage.Options{}, `
खाता २०२५
पार्टी: Imran
           नाम
तारीख    विवरण      वजन     टंच     फाइन       रकम
१/३     चांदी      ५००    ९९.५   ४९७.५
०२.०३.२०२५  नकद                         १,२५,०००.५०
३-३-२५   कड़ा     ३२४,७७५  ८०     २५९.८२
`)
	require.Equal(t, []string{
		"out 2025-03-01 4 चांदी 500 99.5 497.5 -", "out 2025-03-02 4 नकद - - - 125000.5", "out 2025-03-03 4 कड़ा 324.775 80 259.82 -",
	}, got)
}

func TestDatesWithoutAYearAreTheLatestThatCanBe(t *testing.T) {
	t.Parallel()
	got, warnings := read(khatapage.Options{}, `
OUT
Date  Item    Rs
20/6  a1x     5
16/6  bxx     6
1-1-2031 cxx  7
`)
	require.Equal(t, []string{"out 2024-06-20 - a1x - - - 5", "out 2025-06-16 - bxx - - - 6", "out 2025-01-01 - cxx - - - 7"}, got)
	require.Contains(t, warnings, "the year 2031 is not plausible")

	got, _ = read(khatapage.Options{}, `
Karigar 2025
OUT
Date  Item    Rs
14/6  axx     5
20/6  bxx     6
`)
	require.Equal(t, []string{"out 2025-06-14 - axx - - - 5", "out 2024-06-20 - bxx - - - 6"}, got, "the sheet's year too")
}

func TestPartiesAreFoundByNameAndInTheSecondPipelineBySimilarity(t *testing.T) {
	t.Parallel()
	const text = `
Party: Meena Shaah
OUT
Date  Item          Rs
1/3   cash          100
2/3   Imran cash    200
`
	got, warnings := read(khatapage.Options{}, text)
	require.Equal(t, []string{"out 2025-03-01 - cash - - - 100", "out 2025-03-02 4 cash - - - 200"}, got)
	require.Contains(t, warnings, `no account is named "Meena Shaah"`)
	got, warnings = read(khatapage.Options{Similar: true}, text)
	require.Equal(t, "out 2025-03-01 9 cash - - - 100", got[0])
	require.Contains(t, warnings, `"Meena Shaah" is taken for client "Meena Shah"`)
	for _, name := range []string{"मीना शाह", "મીના શાહ"} { // the account's name is in Latin letters
		got, warnings = read(khatapage.Options{Similar: true}, strings.Replace(text, "Meena Shaah", name, 1))
		require.Equal(t, "out 2025-03-01 9 cash - - - 100", got[0])
		require.Contains(t, warnings, `"`+name+`" is taken for client "Meena Shah"`)
	}
	got, _ = read(khatapage.Options{Accounts: []khatapage.Account{{Ledger: "bank", ID: 1, Name: "Ravi"},
		{Ledger: "client", ID: 2, Name: "Ravi"}}}, "Client khata: Ravi\nOUT\nDate  Item   Rs\n1/3   cash   5")
	require.Equal(t, []string{"out 2025-03-01 2 cash - - - 5"}, got)
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

func TestEmptyPagesAndPagesOfTextHaveNoEntries(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "hello world\nthis is a letter\nwith no numbers"} {
		got, warnings := read(khatapage.Options{}, text)
		require.Empty(t, got)
		require.NotEmpty(t, warnings)
	}
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

func TestADateAloneIsThatOfTheLinesBelow(t *testing.T) {
	t.Parallel()
	got, warnings := read(khatapage.Options{}, "OUT\nDate  Item   Rs\n1/3   cash   100\n2/3\n      rent   200")
	require.Empty(t, warnings)
	require.Equal(t, []string{"out 2025-03-01 - cash - - - 100", "out 2025-03-02 - rent - - - 200"}, got)
}

func TestANumberThatIsLeftOutIsToldOf(t *testing.T) {
	t.Parallel()
	for line, warning := range map[string]string{
		"1/3  ring  5  92  4.6  100  7": `page 1: a number of the line "1/3 ring 5 92 4.6 100 7" has no column of its own`,
		"1/3  ring  1,000  2,000":       `page 1: a number of the line "1/3 ring 1,000 2,000" has no column of its own`,
		"1/3  ring  do":                 `page 1: the line "1/3 ring do" has no number and is left out`,
	} {
		_, warnings := read(khatapage.Options{}, "OUT\n"+line)
		require.Contains(t, warnings, warning, line)
	}
	got, _ := read(khatapage.Options{}, "OUT\n1/3  ring  9999999999999 kg")
	require.Equal(t, []string{"out 2025-03-01 - ring 9999999999999 - - -"}, got, "more than the books take, but not less than nothing")
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
