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

// sure reports whether an entry is above the confidence that what was not understood has at most.
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
			"31 जून 2025": "-", "2025-13-01": "-",
		} {
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

func TestAnUnmarkedPagesRightDatesAreOfTheRightSide(t *testing.T) {
	t.Parallel()
	got, _ := read(khatapage.Options{}, `
1-3-25  silver   500 g                   2-3-25             cash   20,000
3-3-25  payal    20.5 g                  4-3-25             cash   500/-
5-3-25  payal    30.5 g                  6-3-25             cash   700/-
`)
	require.Len(t, got, 6)
	require.Equal(t, "out 2025-03-06 - cash - - - 700", got[5])
}

// Each value is right, or unsure and said.
func TestNumbersAreRightOrUnsure(t *testing.T) {
	t.Parallel()
	const heads = "OUT\nDate   Item            Wt   Touch    Fine              Rs\n"
	for line, want := range map[string]string{
		"1/3    payal       799.65      65   519.773": "out 2025-03-01 - payal 799.65 65 519.773 -",
		"1/3    payal      799 65       65   519.773": "out 2025-03-01 - payal 799.65 65 519.773 -",    // its point was lost
		"1/3    payal         394    92362.48":        "out 2025-03-01 - payal 394 92 362.48 -",        // two numbers as one
		"1/3    payal      402.405  99.5400.393":      "out 2025-03-01 - payal 402.405 99.5 400.393 -", // and with a point more
		// a page that has fine weights
		"1/3    payal         500    99.5":                             "? out 2025-03-01 - payal 500 99.5 497.5 -",
		"1/3    payal      799 65":                                     "? out 2025-03-01 - payal 799 - - -",
		"1/3    payal      23.82     99.5    23.761":                   "? out 2025-03-01 - payal 23.82 99.5 23.761 -", // it is 23.701
		"1/3    cash     1,37,809":                                     "? out 2025-03-01 - cash - - - 137809",
		"1/3    cash                      1,25,00,000.50":              "? out 2025-03-01 - cash - - - 12500000.5",
		"1/3    cash                                    -500":          "? out 2025-03-01 - cash - - - -500",
		"1/3    cash                                   (500)":          "? out 2025-03-01 - cash - - - -500",
		"1/3    cash                                 - 1,500":          "? out 2025-03-01 - cash - - - -1500",
		"1/3    cash                                       15, 38,715": "out 2025-03-01 - cash - - - 1538715",
		"1/3    cash                                       0442,2452":  "? out 2025-03-01 - cash - - - 4422452",
		"1/3    payal         500     995     497.5":                   "? out 2025-03-01 - payal 500 99.5 497.5 -",
	} {
		got := khatapage.Read([]khatapage.Page{written(heads + line)}, khatapage.Options{Today: today})
		require.Len(t, got.Entries, 1, line)
		mark := ""
		if !sure(got.Entries[0]) {
			mark = "? "
			require.Contains(t, strings.Join(got.Warnings, "\n"), strings.Fields(line)[1], line)
		}
		require.Equal(t, want, mark+short(got.Entries[0]), "%s: %v", line, got.Warnings)
	}
}

func TestHeadingsThatTouchAreApart(t *testing.T) {
	t.Parallel()
	for _, heads := range []string{"WtTouchFine              Rs", "Wt   TouchFine           Rs", "Wt  Touch  FineRs",
		"वजनटंचफाइन              रकम", "Wt(g) Touch%FineRs."} {
		got, warnings := read(khatapage.Options{},
			"OUT\nDate  Item     "+heads+"\n1/3   kada     500   92   460\n2/3   cash                      1,25,00,000.50")
		require.Equal(t, []string{"out 2025-03-01 - kada 500 92 460 -", "out 2025-03-02 - cash - - - 12500000.5"}, got, "%s: %s", heads, warnings)
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

func TestAColumnWithAnUnknownNameGivesNoValue(t *testing.T) {
	t.Parallel()
	p := written("OUT\nDate  Item     Wt     Pcs     Rs\n1/3   ring     500    12      4,000")
	got := khatapage.Read([]khatapage.Page{p}, khatapage.Options{Today: today})
	require.Equal(t, "out 2025-03-01 - ring 500 - - 4000", short(got.Entries[0]))
	require.False(t, sure(got.Entries[0]))
	require.Contains(t, strings.Join(got.Warnings, "\n"), `"12"`)
}

func TestAFineWeightThatIsNotWrittenIsComputed(t *testing.T) {
	t.Parallel()
	got, _ := read(khatapage.Options{}, "OUT\nDate  Item     Wt     Touch\n1/3   silver   500    99.5\n2/3   payal    10.005 50")
	require.Equal(t, []string{"out 2025-03-01 - silver 500 99.5 497.5 -", "out 2025-03-02 - payal 10.005 50 5.003 -"}, got)
}
