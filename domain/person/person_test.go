package person_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/domain/fault"
	"bahi/domain/person"
)

func refused(message string) error {
	return fault.Fields(fault.Field{Field: "field", Message: message})
}

func TestEmail(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("d", 60)
	for given, want := range map[string]string{
		"asha@example.org":                        "asha@example.org",
		"  Asha.RAO@Example.ORG\t\n":              "asha.rao@example.org",
		"\u00a0asha@example.org\u3000":            "asha@example.org",
		"a@b.co":                                  "a@b.co",
		"asha+bahi@mail.example.co.in":            "asha+bahi@mail.example.co.in",
		"!#$%&'*+/=?^_`{|}~-@example.org":         "!#$%&'*+/=?^_`{|}~-@example.org",
		"asha@xn--p1b6ci4b4b3a.xn--11b5bs3a9aj6g": "asha@xn--p1b6ci4b4b3a.xn--11b5bs3a9aj6g",
		strings.Repeat("l", 64) + "@example.org":  strings.Repeat("l", 64) + "@example.org",
	} {
		got, err := person.Email("field", given)
		require.NoError(t, err, "%q", given)
		require.Equal(t, want, got)
	}
	for _, given := range []string{
		"", " ", "asha", "@example.org", "asha@", "asha@example", "asha@@example.org", "asha@b@example.org", "asha @example.org",
		".asha@example.org", "asha.@example.org", "as..ha@example.org", "asha@.example.org", "asha@example..org", "asha@example.org.",
		"asha@-example.org", "asha@example-.org", "asha@example.o", "asha@example.1org", "asha@127.0.0.1", "asha@[127.0.0.1]",
		`"asha"@example.org`, "Asha <asha@example.org>", "asha@example.org,ravi@example.org", "asha@example.org\r\nBcc: ravi@example.org",
		"asha\x00@example.org", "asha@exa\nmple.org", "asha@example.org\x00",
		"आशा@example.org", "asha@उदाहरण.भारत", "asha@ｅxample.org", "аsha@example.org", // the last begins in Cyrillic
		"as\u200bha@example.org", "asha\u202e@example.org", "\ufeffasha@example.org", "as\u00adha@example.org",
		"\u212aavi@example.org", "\u0130ra@example.org", "asha@\u212aolkata.org", // they are k and i when lowered
		"\xff\xfe@example.org", "asha\xc0@example.org",
		strings.Repeat("l", 65) + "@example.org", "asha@" + strings.Repeat("d", 64) + ".org",
		"asha@" + long + "." + long + "." + long + "." + long + ".example.org",
	} {
		got, err := person.Email("field", given)
		require.Equal(t, refused("expected an email address"), err, "%q", given)
		require.Empty(t, got)
	}
}

func TestName(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		" Asha\t":                "Asha",
		"O'Brien-Śmith Jr.":      "O'Brien-Śmith Jr.",
		"आशा":                    "आशा",
		"क्\u200dष":              "क्\u200dष", // the joiner affects the spelling
		"શ્રી":                   "શ્રી",
		"e\u0301":                "é",
		".":                      ".", // values that forms create for people with one name
		"3":                      "3",
		strings.Repeat("अ", 100): strings.Repeat("अ", 100),
		" " + strings.Repeat("e\u0301", 100) + "\u2003": strings.Repeat("é", 100),
	} {
		got, err := person.Name("field", given)
		require.NoError(t, err, "%q", given)
		require.Equal(t, want, got)
	}
	for _, given := range []string{"", "  \u00a0\u3000", "\u2028", strings.Repeat("अ", 101)} {
		_, err := person.Name("field", given)
		require.Equal(t, refused("1 to 100 characters"), err, "%q", given)
	}
	for _, given := range []string{
		"As\x00ha", "As\nha", "As\x1bha", "As\u0085ha", "As\u2028ha", "As\u2029ha", "As\u202eha", "As\u2066ha", "As\u200bha", "As\ufeffha",
		"As\u00adha", "As\U000e0041ha", "As\ue000ha", "As\xffha", "\xed\xa0\x80", "As\ufffdha",
	} {
		_, err := person.Name("field", given)
		require.Equal(t, refused("control characters are not allowed"), err, "%q", given)
	}
	for _, given := range []string{"\u200d", "\u200c\u200d", "\u3164", "\u115f\u1160", "\uffa0", "\u2800", "\u0301", "\u200d \ufe0f"} {
		_, err := person.Name("field", given)
		require.Equal(t, refused("must have a visible character"), err, "%q", given)
	}
}

func TestPhone(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"":                            "",
		" \t":                         "",
		"9812345678":                  "+919812345678",
		"6000000000":                  "+916000000000",
		"09812345678":                 "+919812345678",
		"98123 45678":                 "+919812345678",
		"(981) 234-5678":              "+919812345678",
		"[981] 234 5678":              "+919812345678",
		"+919812345678":               "+919812345678",
		"+91 98123-45678":             "+919812345678",
		"+91 (0) 98123 45678":         "+919812345678",
		"00919812345678":              "+919812345678",
		"00 91 98123 45678":           "+919812345678",
		"919812345678":                "+919812345678",
		"+39 06 698 12345":            "+390669812345",
		"022 2282 1234":               "+912222821234",
		"+1 (202) 456-1111":           "+12024561111",
		"0044 20 7946 0958":           "+442079460958",
		"+971 50 123 4567":            "+971501234567",
		"98123\u00a045678":            "+919812345678",
		"98123\u201345678":            "+919812345678",
		"\u202a+91 98123 45678\u202c": "+919812345678", "\u200e9812345678": "+919812345678",
		"98123\u200b45678": "+919812345678", "\ufeff9812345678": "+919812345678",
		"tel:+91-98123-45678": "+919812345678", "Tel. 98123 45678": "+919812345678",
		"Ph.No: 98123.45678": "+919812345678", "whatsapp:+919812345678": "+919812345678",
		"'+919812345678": "+919812345678", "’9812345678": "+919812345678", "'tel:9812345678": "+919812345678",
		"+1 202.456.1111": "+12024561111", "+33.1.42.68.53.00": "+33142685300",
		"९८१२३४५६७८": "+919812345678", "＋９１９８１２３４５６７８": "+919812345678",
		"૯૮૧૨૩ ૪૫૬૭૮": "+919812345678", "٩٨١٢٣٤٥٦٧٨": "+919812345678", "۹۸۱۲۳۴۵۶۷۸": "+919812345678", "௯௮௧௨௩௪௫௬௭௮": "+919812345678",
		"𝟗𝟖𝟏𝟐𝟑𝟒𝟓𝟔𝟕𝟖": "+919812345678", "＋９１（９８１２３）４５６７８": "+919812345678",
		"98123−45678": "+919812345678", "98123\t45678": "+919812345678", "98123\u200f\n45678": "+919812345678",
		"9812345678.0": "+919812345678", "919812345678.0": "+919812345678", "98123\u00ad45678": "+919812345678",
		"\u2066+91 98123 45678\u2069": "+919812345678",
		"\u200b":                      "", "\u202a \u202c": "",
	} {
		got, err := person.Phone("field", given)
		require.NoError(t, err, "%q", given)
		require.Equal(t, want, got, "%q", given)
	}
	for _, given := range []string{
		"1", "100", "112", "12345", "2345678", "2000000000", "+910000000000", "0000000000", "981234567", "+91981",
		"+919812345678901234", "+", "+0", "00", "++919812345678", "+999123456789", "+91", "98123x45678", "CALL-A-CAB",
		"9812345678 ext 5", "9812345678 x5", "9812345678;ext=5", "9812345678#5", "9812345678;phone-context=+1", "9812345678\n+12024561111",
		"+1 2024561111 / 2024561112", "\x009812345678", "9812345678\xff", "'", "tel:", "()", "tel:+919812345678;ext=5", "fax:9812345678",
		"9812345678/9812345679", "+91981234\x7f5678",
		strings.Repeat("9", 300), "98.123e45678",
		"981234567/8", "९", "٩", "½812345678", "Ⅸ812345678",
	} {
		got, err := person.Phone("field", given)
		require.Equal(t, refused("expected a telephone number, as in +919812345678"), err, "%q is %s", given, got)
	}
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
	for name, rule := range map[string]func(string, string) (string, error){"email": person.Email, "name": person.Name,
		"phone": person.Phone} {
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
				case name == "phone" && first != "" && !e164.MatchString(first):
					t.Fatalf("%q is not E.164", first)
				case name == "email" && strings.ContainsFunc(first, func(c rune) bool { return c > 127 || c <= ' ' || c >= 'A' && c <= 'Z' }):
					t.Fatalf("%q is accepted", first)
				}
			})
		})
	}
}

func TestDialled(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"": "", "9812345678": "919812345678", "09812345678": "919812345678", "+91 98123-45678": "919812345678", "919812345678": "919812345678",
		"919812345678.0": "919812345678", "\u202a+91 98123 45678\u202c": "919812345678", "'९१९८१२३४५६७८": "919812345678",
		"tel:447911123456": "447911123456",
		"447911123456":     "447911123456", "14155552671": "14155552671", "00 44 7911 123456": "447911123456", "022 2282 1234": "912222821234",
		"+6581234567": "6581234567",
	} {
		got, err := person.ParseE164("field", given)
		require.NoError(t, err, "%q", given)
		require.Equal(t, want, got, "%q", given)
	}
	for _, given := range []string{"1", "+", "++919812345678", "12345", "asha"} {
		got, err := person.ParseE164("field", given)
		require.Equal(t, refused("expected a telephone number, as in +919812345678"), err, "%q is %s", given, got)
	}
}

func TestFolded(t *testing.T) {
	t.Parallel()
	require.Equal(t, "élodie", person.Folded(" E\u0301LODIE "))
	require.Equal(t, "આશા", person.Folded("આશા"))
}
