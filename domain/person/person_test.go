package person_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/nyaruka/phonenumbers"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/domain/fault"
	"bahi/domain/person"
	"bahi/internal/test/worktest"
)

var rules = map[string]func(field, text string) (string, error){
	"Email": person.Email, "Name": person.Name, "Phone": person.Phone, "ParseE164": person.ParseE164,
}

// The rows of values.tsv are a rule, a text and, quoted as in Go, the rule's result. After an exclamation mark it is the reason of a
// refusal.
func TestRulesOfPersonalValues(t *testing.T) {
	t.Parallel()
	table := worktest.File(t, "testdata/values.tsv")
	tried := map[string]int{}
	for line := range strings.Lines(string(table)) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		require.Len(t, cells, 3, line)
		given, err := strconv.Unquote(cells[1])
		require.NoError(t, err, line)
		want, err := strconv.Unquote(cells[2])
		require.NoError(t, err, line)
		got, err := rules[cells[0]]("field", given)
		tried[cells[0]]++
		if why, refused := strings.CutPrefix(want, "! "); refused {
			require.Equal(t, fault.Fields(fault.Field{Field: "field", Message: why}), err, line)
			want = ""
		} else {
			require.NoError(t, err, line)
		}
		require.Equal(t, want, got, line)
	}
	require.Equal(t, map[string]int{"Email": 52, "Name": 38, "Phone": 120, "ParseE164": 23}, tried)
}

// texts are hostile ones: arbitrary, and nearly valid.
func texts() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.String(),
		rapid.StringOf(rapid.RuneFrom([]rune(" aAéEİ\u212a\u0301\u0327\u093c\u0958\u1100\u1161\u200d\u200c\u3164\u2028.@-+0129९()＋\u00a0"))),
		rapid.StringMatching(`\s?[A-Za-z0-9.+\x{212a}\x{130}]{1,8}@([A-Za-z0-9-]{1,5}\.){1,3}[A-Za-z]{2,4}\s?`),
		rapid.StringMatching(`(\+|00|0|\+91|91)?[ (-]?[0-9]{5}[ )-]?[0-9]{3,7}`),
		rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "bytes")) }),
	)
}

var e164 = regexp.MustCompile(`^\+[1-9][0-9]{5,14}$`)

// A rule's result is stable: it is compared, and passed to the rule again.
func TestARuleAppliedToItsResultGivesTheSame(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Email", "Name", "Phone"} {
		rule := rules[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				first, err := rule("field", texts().Draw(t, "text"))
				if err != nil {
					if first != "" {
						t.Fatalf("refused, and %q", first)
					}
					return
				}
				again, err := rule("field", first)
				if err != nil || again != first {
					t.Fatalf("%q becomes %q, %v", first, again, err)
				}
				switch {
				case !utf8.ValidString(first) || strings.TrimSpace(first) != first || strings.ContainsAny(first, "\r\n\x00\u2028"):
					t.Fatalf("%q is accepted", first)
				case name == "Phone" && first != "" && !e164.MatchString(first):
					t.Fatalf("%q is not E.164", first)
				case name == "Email" && strings.ContainsFunc(first, func(c rune) bool { return c > 127 || c <= ' ' || c >= 'A' && c <= 'Z' }):
					t.Fatalf("%q is accepted", first)
				}
			})
		})
	}
}

func TestIndianMobileNumbersAreParsedAsByTheLibrary(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(35, 0))
	for range 2000 {
		national := fmt.Sprint(6_000_000_000 + random.Int64N(4_000_000_000))
		for _, text := range []string{national, "+91" + national} {
			n, err := phonenumbers.Parse(text, "IN")
			require.NoError(t, err)
			got, err := person.Phone("phone", text)
			require.NoError(t, err)
			require.Equal(t, phonenumbers.Format(n, phonenumbers.E164), got)
			require.Equal(t, phonenumbers.IS_POSSIBLE, phonenumbers.IsPossibleNumberWithReason(n))
		}
	}
}

func TestANameOfANetworkIsPrintable(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		" Asha\r\n\tBen\u2028\u2029Shah\u0085K  L\v": "Asha Ben Shah K L",
		"\u202eevil\u202c\u2066\u200b":               "evil", "क\u200dष 👩\u200d🔧": "क\u200dष 👩\u200d🔧",
		"\u00a0\u3000\u200f": "", "a\x00b\ufeff\xff": "ab",
	} {
		require.Equal(t, want, person.Printable(given), "%q", given)
	}
}

func TestFolded(t *testing.T) {
	t.Parallel()
	require.Equal(t, "élodie", person.Folded(" E\u0301LODIE "))
	require.Equal(t, "આશા", person.Folded("આશા"))
}
