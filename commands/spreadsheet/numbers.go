package spreadsheet

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shopspring/decimal"
	"github.com/xuri/excelize/v2"
)

// maxDigits is the maximum length of a number. A longer text is not a number.
const maxDigits = 64

// significant is the number of digits that a spreadsheet shows.
const significant = 15

// form is the display form of numbers.
type form int

const (
	plainly form = iota
	asDate
	asPercent
	asElapsed
)

// forms are the display forms of a workbook's styles, by style number.
type forms struct {
	styles   []style
	from1904 bool // days count from 1904
}

// formsOf reads the styles. If they are unreadable, numbers have the plain form.
func formsOf(book *excelize.File) (f forms) {
	var sheet struct {
		Custom []struct {
			ID   int    `xml:"numFmtId,attr"`
			Code string `xml:"formatCode,attr"`
		} `xml:"numFmts>numFmt"`
		Styles []struct {
			ID int `xml:"numFmtId,attr"`
		} `xml:"cellXfs>xf"`
	}
	if unmarshal(book, "xl/styles.xml", &sheet) != nil {
		return f
	}
	custom := map[int]string{}
	for _, c := range sheet.Custom {
		custom[c.ID] = c.Code
	}
	for _, s := range sheet.Styles {
		how, money := builtIn(s.ID)
		if code, named := custom[s.ID]; named {
			how, money = formOf(code), formatMoney(code)
		}
		f.styles = append(f.styles, style{how, money, codeOf(custom[s.ID])})
	}
	if props, err := book.GetWorkbookProps(); err == nil && props.Date1904 != nil {
		f.from1904 = *props.Date1904
	}
	return f
}

// piece matches a digit or a sign of a format code, a literal text, or a text in brackets.
var piece = regexp.MustCompile(literal.String() + `|.`)

// condition matches the condition of a section, such as [>=100].
var condition = regexp.MustCompile(`^\[[<>=]`)

// codeOf returns the pieces of the format of a code with a fixed number of digits, such as 00000 or "KT-"0000. It returns nil for other
// formats.
func codeOf(format string) []string {
	pieces, places := piece.FindAllString(format, -1), 0
	if end := slices.Index(pieces, ";"); end >= 0 { // the next section is for other numbers
		pieces = pieces[:end]
	}
	for _, p := range pieces {
		switch {
		case p == "0":
			places++
		case len(p) == 1 && !strings.Contains("-+() ", p), condition.MatchString(p):
			return nil
		}
	}
	if places < 2 {
		return nil
	}
	return pieces
}

// inCode returns the digits in the format of a code.
func inCode(pieces []string, digits string) string {
	places := 0
	for _, p := range pieces {
		if p == "0" {
			places++
		}
	}
	digits = strings.Repeat("0", max(places-len(digits), 0)) + digits
	next := len(digits) - places + 1 // the first place has all further digits
	var shown strings.Builder
	for _, p := range pieces {
		switch p[0] {
		case '0':
			shown.WriteString(digits[:next])
			digits, next = digits[next:], 1
		case '"':
			shown.WriteString(strings.Trim(p, `"`))
		case '\\':
			shown.WriteString(p[1:])
		case '_', '*', '[': // spaces, and no text
		default:
			shown.WriteString(p)
		}
	}
	return shown.String()
}

// tagged matches a currency with its language, or a language alone: [$€-407], [$-4009].
var tagged = regexp.MustCompile(`\[\$([^\]-]*)[^\]]*\]`)

// named matches the names of currencies other than the rupee, and all currency signs.
var named = regexp.MustCompile(
	`(?i)\p{Sc}|\b(usd|us|eur|gbp|aed|sar|qar|kwd|omr|bhd|sgd|aud|cad|nzd|hkd|jpy|cny|rmb|chf|thb|myr|lkr|npr|bdt|pkr|idr|zar|rub|try|krw|` +
		`dollars?|euros?|pounds?|dirhams?|dhs?|riyals?|yen|yuan)\b`)

// ForeignMoney returns the first currency in a text that is not the rupee, empty for none.
func ForeignMoney(text string) string {
	for _, found := range named.FindAllString(text, -1) {
		if !strings.Contains("₹₨૱௹", found) {
			return found
		}
	}
	return ""
}

// rupees matches the signs and names of the rupee.
var rupees = regexp.MustCompile(`(?i)^\s*([₹₨૱௹]|(rs|inr|rupees?)\b|रु|रू|રૂ|রু|ਰੁ|ரூ|రూ|ರೂ|രൂ)`)

// lettered matches texts with a letter or a currency sign.
var lettered = regexp.MustCompile(`[\p{L}\p{Sc}]`)

// formatMoney returns the currency of a format code, empty for none and for the rupee. Every text in the place of the currency is one.
func formatMoney(code string) string {
	for _, tag := range tagged.FindAllStringSubmatch(code, -1) {
		if lettered.MatchString(tag[1]) && !rupees.MatchString(tag[1]) {
			return strings.TrimSpace(tag[1])
		}
	}
	return ForeignMoney(tagged.ReplaceAllString(code, " $1 "))
}

// style is the format of a cell's number.
type style struct {
	form  form
	money string   // the currency, except the rupee
	code  []string // pieces of the format of a code such as "KT-"0000; nil: no code
}

// style returns the style with a number. Its zero value is that of an unknown number.
func (f forms) style(number string) (s style) {
	if i, err := strconv.Atoi(number); err == nil && i >= 0 && i < len(f.styles) {
		return f.styles[i]
	}
	return s
}

// builtIn returns the form of a format that needs no code, and its currency (ECMA-376 part 1, 18.8.30).
func builtIn(id int) (how form, money string) {
	switch {
	case id >= 5 && id <= 8, id == 42, id == 44:
		return plainly, "$"
	case id == 9, id == 10:
		return asPercent, ""
	case id == 46: // [h]:mm:ss
		return asElapsed, ""
	case id >= 14 && id <= 22, id >= 27 && id <= 36, id >= 45 && id <= 47, id >= 50 && id <= 58:
		return asDate, ""
	}
	return plainly, ""
}

// literal matches the literal text of a format code, and texts in brackets: colours, currencies, conditions.
var literal = regexp.MustCompile(`"[^"]*"|\\.|_.|\*.|\[[^\]]*\]`)

// fractions matches fractions of a second.
var fractions = regexp.MustCompile(`s\.0+`)

// elapsed matches the hours, minutes or seconds of a duration.
var elapsed = regexp.MustCompile(`(?i)\[(h+|m+|s+)\]`)

// formOf returns the form of a format code such as dd/mm/yyyy.
func formOf(code string) form {
	if elapsed.MatchString(code) {
		return asElapsed
	}
	code, _, _ = strings.Cut(strings.ToLower(literal.ReplaceAllString(code, "")), ";")
	switch digits := strings.ContainsAny(fractions.ReplaceAllString(code, "s"), "#?0"); {
	case strings.Contains(code, "general"):
	case !digits && strings.ContainsAny(code, "ymdhs"): // Rs #,##0 is an amount
		return asDate
	case strings.Contains(code, "%"):
		return asPercent
	}
	return plainly
}

// number returns a number in the display form of its style: 15 digits without an exponent, a date in ISO 8601, or a percentage with its
// sign. It returns a number with more digits as it is stored.
func (f forms) number(text string, in style) string {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || math.Abs(n) >= 1e15 {
		return text
	}
	short, err := decimal.NewFromString(strconv.FormatFloat(n, 'g', significant, 64))
	switch {
	case err != nil:
		return text
	case in.form == asPercent:
		return short.Shift(2).String() + "%"
	case in.form == asDate:
		return f.date(n, short.String())
	case in.form == asElapsed && n >= 0 && n < lastDay:
		seconds := int64(math.Round(n * 24 * 60 * 60))
		return fmt.Sprintf("%02d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60)
	case in.code != nil && short.IsInteger() && !short.IsNegative():
		return inCode(in.code, short.String())
	}
	return short.String()
}

const lastDay = 2_958_466 // after 31 December 9999

// date returns the date of a number of days, with the time if there is one. It returns other for a number outside of the calendar.
func (f forms) date(days float64, other string) string {
	if days < 0 || days >= lastDay {
		return other
	}
	at, err := excelize.ExcelDateToTime(days, f.from1904)
	at = at.Round(time.Second)
	switch {
	case err != nil:
		return other
	case days < 1:
		return at.Format(time.TimeOnly)
	case at.Equal(at.Truncate(24 * time.Hour)):
		return at.Format(time.DateOnly)
	}
	return at.Format(time.DateTime)
}
