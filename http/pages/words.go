package pages

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/shopspring/decimal"
	xlanguage "golang.org/x/text/language"

	"bahi/domain/unit"
)

// language is a language of the pages, by its code.
type language string

// languages are the languages of the pages. The first is the language of the texts in the code, and the default.
var languages = []language{"en", "hi", "gu"}

var matcher = xlanguage.NewMatcher([]xlanguage.Tag{xlanguage.English, xlanguage.Hindi, xlanguage.Gujarati}) // in the order of languages

// languageOf returns the language of a cookie, else the best one for an Accept-Language header.
func languageOf(cookie, acceptLanguage string) language {
	if l := language(cookie); slices.Contains(languages, l) {
		return l
	}
	_, i := xlanguage.MatchStrings(matcher, acceptLanguage)
	return languages[i]
}

// Name returns the language's own name.
func (l language) Name() string {
	return map[language]string{"en": "English", "hi": "हिन्दी", "gu": "ગુજરાતી"}[l]
}

//go:embed words/*.json
var wordFiles embed.FS

// english are the English words by their use, such as fields, options or hints. Other has texts that code translates by a variable, so a
// test cannot find their use.
var english = readWords[map[string]map[string]string]("en")

// translations has the translations of English texts. English has none.
var translations = map[language]map[string]string{
	"hi": readWords[map[string]string]("hi"), "gu": readWords[map[string]string]("gu"),
}

func readWords[T any](l language) (words T) {
	text, err := wordFiles.ReadFile("words/" + string(l) + ".json")
	if err == nil {
		err = json.Unmarshal(text, &words)
	}
	if err != nil {
		panic(fmt.Errorf("words/%s.json: %w", l, err)) // the files are part of the program
	}
	return words
}

// t translates an English text. It returns a text without a translation unchanged.
func (l language) t(text string) string {
	if translated, known := translations[l][text]; known {
		return translated
	}
	return text
}

// tf translates a format that has only %s verbs, and inserts the arguments.
func (l language) tf(format string, args ...any) string {
	texts := make([]any, len(args))
	for i, arg := range args {
		texts[i] = fmt.Sprint(arg)
	}
	return fmt.Sprintf(l.t(format), texts...)
}

// pattern is a message of the interface with values in it, written as {}. The translation numbers them, as in {2}, to change their order.
type pattern struct {
	text       *regexp.Regexp
	translated string
}

// patterns are the messages with values, those with the longest texts first.
var patterns = func() map[language][]pattern {
	of := map[language][]pattern{}
	for l, words := range translations {
		for _, text := range slices.SortedFunc(maps.Keys(words), func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) }) {
			if strings.Contains(text, "{}") {
				exp := "^" + strings.ReplaceAll(regexp.QuoteMeta(text), regexp.QuoteMeta("{}"), "(.+?)") + "$"
				of[l] = append(of[l], pattern{regexp.MustCompile(exp), words[text]})
			}
		}
	}
	return of
}()

// fieldOrDay is a date, or the JSON name of a field, in a message of the interface.
var fieldOrDay = regexp.MustCompile(`\b(\d{4}-\d{2}-\d{2}|[a-z]+_[a-z]+)\b`)

// said translates a message of the interface, and formats its dates and its fields of entries for people.
func (l language) said(text string) string {
	return fieldOrDay.ReplaceAllStringFunc(l.message(text), func(found string) string {
		if slices.Contains(entryFields, found) {
			return strings.ToLower(l.t(labelOf(found)))
		}
		return l.day(found)
	})
}

// networkCode is the code of a chat network's error at the end of a message.
var networkCode = regexp.MustCompile(` \(\d+\)$`)

func (l language) message(text string) string {
	words := translations[l]
	if translated, known := words[text]; known {
		return translated
	}
	for _, p := range patterns[l] {
		found := p.text.FindStringSubmatch(text)
		if found == nil {
			continue
		}
		translated := p.translated
		for i, value := range found[1:] {
			if slices.Contains(entryFields, value) {
				value = l.t(fieldLabel(value))
			}
			for _, place := range []string{fmt.Sprintf("{%d}", i+1), "{}"} {
				if strings.Contains(translated, place) {
					translated = strings.Replace(translated, place, value, 1)
					break
				}
			}
		}
		return translated
	}
	if code := networkCode.FindString(text); code != "" {
		return l.message(strings.TrimSuffix(text, code)) + code
	}
	if first, rest, several := strings.Cut(text, "; "); several { // see detail
		return l.message(first) + "; " + l.message(rest)
	}
	if label, rest, is := strings.Cut(text, ": "); is {
		return l.t(label) + ": " + l.message(rest)
	}
	return text
}

// toDecimal returns the number of a JSON value. It reports false for values that are no numbers, null included.
func toDecimal(n any) (decimal.Decimal, bool) {
	if n == nil {
		return decimal.Zero, false
	}
	d, err := decimal.NewFromString(fmt.Sprint(n))
	return d, err == nil && max(d.Exponent(), -d.Exponent()) < 30 // formatting 1e999999999 takes too many digits
}

// unsigned returns the absolute value with Indian grouping, "" for a value that is no number. The sign is shown in words.
func unsigned(n any, places int32) string {
	d, ok := toDecimal(n)
	if !ok {
		return ""
	}
	return unit.Indian(d.Abs().StringFixed(places))
}

// rupees formats an amount without its sign, as in ₹3,12,400.00.
func rupees(n any) string { return around("₹", unsigned(n, unit.MoneyPlaces), "") }

// charge formats an amount as rupees does, "" for zero.
func charge(n any) string { return rupees(nonzero(n)) }

// nonzero returns a number, nil for zero.
func nonzero(n any) any {
	if d, _ := toDecimal(n); d.IsZero() {
		return nil
	}
	return n
}

// grams formats a weight without its sign, as in 1,204.500 g.
func grams(n any) string { return around("", unsigned(n, unit.GramsPlaces), " g") }

// percent formats a percentage with its decimal places, as in 99.5 %.
func percent(n any) string { return around("", plain(n), " %") }

// plain formats a number with its sign and decimal places.
func plain(n any) string {
	d, ok := toDecimal(n)
	if !ok {
		return ""
	}
	return d.String()
}

func around(before, figure, after string) string {
	if figure == "" {
		return ""
	}
	return before + figure + after
}

// monthNames are the short names of the months.
var monthNames = [...]string{"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"}

// day formats a date such as 2025-03-01 as 01 Mar 2025. It returns other texts unchanged.
func (l language) day(date string) string {
	t, err := time.Parse(time.DateOnly, date)
	if err != nil {
		return date
	}
	return l.dayOf(t)
}

func (l language) dayOf(t time.Time) string {
	return fmt.Sprintf("%02d %s %d", t.Day(), l.t(monthNames[t.Month()-1]), t.Year())
}

// moment formats an RFC 3339 time in a zone, as in 01 Mar 2025, 14:05. It returns other texts unchanged.
func (l language) moment(at string, zone *time.Location) string {
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return at
	}
	t = t.In(zone)
	return l.dayOf(t) + t.Format(", 15:04")
}

// balance is a balance of an account with the words and the CSS class of its sign.
type balance struct{ Figure, Words, Class string }

// owed returns the words and the CSS class of a position. Without a position, the balance is that of a bank.
func owed(position string, figure any) (words, class string) {
	switch position {
	case "we_owe":
		return "you owe", "owe"
	case "they_owe":
		return "owes you", "owed"
	case "settled":
		return "settled", "settled"
	}
	if d, _ := toDecimal(figure); d.IsNegative() {
		return "overdrawn", "owe"
	}
	return "", ""
}

// signed returns the words for the sign of a balance, which is IN minus OUT.
func (l language) signed(kind string, n any) string {
	d, known := toDecimal(n)
	position := []string{"they_owe", "settled", "we_owe"}[d.Sign()+1]
	if kind == "bank" {
		position = ""
	}
	words, _ := owed(position, n)
	if !known {
		return ""
	}
	return l.t(words)
}

// balancesOf returns the balances of an account, or of a row, in the order cash, metal. It omits those that the API omitted.
func (l language) balancesOf(kind string, account map[string]any) []balance {
	if kind == "bank" {
		figure, n := rupees(account["balance"]), account["balance"]
		if figure == "" {
			return nil
		}
		words, class := owed("", n)
		if words == "overdrawn" {
			figure = "−" + figure
		}
		return []balance{{figure, l.t(words), class}}
	}
	var found []balance
	add := func(figure string, position any) {
		if words, class := owed(textOf(position), nil); figure != "" && words != "" {
			found = append(found, balance{figure, l.t(words), class})
		}
	}
	add(rupees(account["cash_balance"]), account["cash_position"])
	weight := grams(account["crystal_balance"])
	switch {
	case weight == "":
	case kind == "polisher":
		weight = l.tf("%s weight", weight)
	default:
		weight = l.tf("%s fine", weight)
	}
	add(weight, account["crystal_position"])
	return found
}

// textOf returns a JSON value as text, "" for null.
func textOf(v any) string {
	if v == nil {
		return ""
	}
	return strings.TrimSpace(fmt.Sprint(v))
}
