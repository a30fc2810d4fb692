// Package person has the rules for what people are called and how they are reached.
package person

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/nyaruka/phonenumbers"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"bahi/domain/fault"
)

// Lengths in characters (CONTRACT.md D19).
const (
	maxName  = 100
	maxEmail = 254
	maxLocal = 64 // of an email before the @ (RFC 5321, section 4.5.3.1.1)
)

// home is where a telephone number without a country's code is from (CONTRACT.md 8.3).
const home = "IN"

// mailbox is a Mailbox of RFC 5321, section 4.1.2: a Dot-string and a Domain of at least two labels. Quoted
// local parts, address literals and letters outside ASCII are refused: few servers take them.
var mailbox = regexp.MustCompile("^[a-z0-9!#$%&'*+/=?^_`{|}~-]+(\\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*" +
	`@([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])$`)

// Email returns an address in the form in which it is kept and compared: lower case, without the space
// around it.
func Email(field, text string) (string, error) {
	text = strings.TrimSpace(text)
	// Before it is lowered: the Kelvin sign and a dotted capital I become letters of ASCII, and the address
	// somebody else's.
	foreign := strings.ContainsFunc(text, func(c rune) bool { return c > unicode.MaxASCII })
	text = strings.ToLower(text)
	local, _, _ := strings.Cut(text, "@")
	if foreign || len(text) > maxEmail || len(local) > maxLocal || !mailbox.MatchString(text) {
		return "", fault.Fields(fault.Field{Field: field, Message: "expected an email address"})
	}
	return text, nil
}

// Unmarked returns a text without the space around it and without marks of direction, which copied text brings along and which say nothing.
func Unmarked(text string) string {
	return strings.TrimSpace(marks.Replace(text))
}

var marks = strings.NewReplacer("\u200e", "", "\u200f", "", "\u061c", "")

// Name returns a first or last name without the space around it and marks of direction.
func Name(field, text string) (string, error) {
	text = norm.NFC.String(Unmarked(text))
	switch {
	case text == "" || utf8.RuneCountInString(text) > maxName:
		return "", fault.Fields(fault.Field{Field: field, Message: "1 to 100 characters"})
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unprintable):
		return "", fault.Fields(fault.Field{Field: field, Message: "control characters are not allowed"})
	case !strings.ContainsFunc(text, Visible):
		return "", fault.Fields(fault.Field{Field: field, Message: "it cannot be seen"})
	}
	return text, nil
}

// Folded returns a name or an address as searches compare it: a part of it is found whatever the case, and however accents are composed.
func Folded(text string) string {
	return norm.NFC.String(cases.Fold().String(norm.NFC.String(strings.TrimSpace(text))))
}

const zeroWidthNonJoiner, zeroWidthJoiner = '\u200c', '\u200d'

// unprintable also finds what breaks lines or turns the direction of text around, but leaves the joiners
// that Indian scripts need.
func unprintable(c rune) bool {
	return c != zeroWidthJoiner && c != zeroWidthNonJoiner &&
		(unicode.In(c, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp) || c == utf8.RuneError)
}

// Visible reports whether a character leaves something to see. Space, joiners, and letters that are there to be
// empty do not.
func Visible(c rune) bool {
	switch c {
	case '\u115f', '\u1160', '\u3164', '\uffa0', '\u2800': // fillers of Hangul, and Braille without a dot
		return false
	}
	return unicode.In(c, unicode.L, unicode.N, unicode.P, unicode.S)
}

// Phone returns a telephone number in the form of E.164. One without a country's code is from India, if there
// is such a number there (CONTRACT.md 8.3). A text in which nothing can be seen is no number.
func Phone(field, text string) (string, error) {
	if !strings.ContainsFunc(text, func(c rune) bool { return !unicode.IsSpace(c) && !unicode.Is(unicode.Cf, c) }) {
		return "", nil
	}
	text = digits(text)
	if rest, international := strings.CutPrefix(text, "00"); international {
		text = "+" + rest
	}
	number, ok := number(text)
	if !ok {
		return "", fault.Fields(fault.Field{Field: field, Message: "expected a telephone number, as in +919812345678"})
	}
	return number, nil
}

// ParseE164 returns a telephone number as messaging networks have it: E.164 without its plus sign. It also reads that form, which begins
// with a country's code; a mobile number of India and what has no country's code are read as [Phone] reads them (CONTRACT.md 8.3).
func ParseE164(field, text string) (string, error) {
	if given := digits(text); !mobile.MatchString(given) {
		if number, ok := number("+" + given); ok {
			return number[1:], nil
		}
	}
	number, err := Phone(field, text)
	return strings.TrimPrefix(number, "+"), err
}

var (
	// called is what people and programs write before a number: an apostrophe keeps a spreadsheet from computing it, tel: is of RFC 3966.
	called = regexp.MustCompile("(?i)^(['`´‘’ʼ＇]|(telephone|tel|phone|ph|mobile|mob|whatsapp|callto|sms)(number|no)?:?)+")
	// asNumber is a telephone number that a spreadsheet has taken for a number with places.
	asNumber = regexp.MustCompile(`^([^.]*[0-9]{7})\.0+$`)
)

// digits returns a telephone number as it is dialled (CONTRACT.md 0.12, R5): digits of every script as those of ASCII, without what is
// before the number and between its digits, and without the characters that only direct how a text is shown.
func digits(text string) string {
	text = strings.Map(func(c rune) rune {
		switch {
		case c < utf8.RuneSelf && c > ' ':
			return c
		case unicode.IsSpace(c), unicode.Is(unicode.Cf, c):
			return -1
		case strings.ContainsRune("＋﹢", c):
			return '+'
		case strings.ContainsRune("．·․", c):
			return '.'
		case unicode.In(c, unicode.Pd, unicode.Ps, unicode.Pe), c == '−':
			return '-'
		case unicode.Is(unicode.Nd, c):
			return digit(c)
		}
		return c
	}, text)
	text = asNumber.ReplaceAllString(text, "$1")
	text = strings.Map(func(c rune) rune {
		if strings.ContainsRune("()[]{}-.", c) {
			return -1
		}
		return c
	}, text)
	return called.ReplaceAllString(text, "")
}

// digit returns a decimal digit of any script as that of ASCII. Each script has its ten in their order.
func digit(c rune) rune {
	for _, r := range unicode.Nd.R16 {
		if rune(r.Lo) <= c && c <= rune(r.Hi) {
			return '0' + (c-rune(r.Lo))%10
		}
	}
	for _, r := range unicode.Nd.R32 {
		if rune(r.Lo) <= c && c <= rune(r.Hi) {
			return '0' + (c-rune(r.Lo))%10
		}
	}
	return c
}

// number finds the number that all of a text is, if it is read as itself again: of a number that begins with zeros, the library reads
// something else each time.
func number(text string) (string, bool) {
	found, ok := e164(text)
	if !ok {
		return "", false
	}
	if found == text {
		return found, true
	}
	again, ok := e164(found)
	return found, ok && again == found
}

// e164 finds the number that all of a text is.
func e164(text string) (string, bool) {
	if !dialled.MatchString(text) { // the library reads over what it does not know
		return "", false
	}
	n, err := phonenumbers.Parse(text, home)
	if err != nil || phonenumbers.IsPossibleNumberWithReason(n) != phonenumbers.IS_POSSIBLE {
		return "", false
	}
	if text[0] != '+' && !mobile.MatchString(text) && !phonenumbers.IsValidNumber(n) {
		return "", false
	}
	return phonenumbers.Format(n, phonenumbers.E164), true
}

var (
	dialled = regexp.MustCompile(`^\+?[0-9]+$`)
	mobile  = regexp.MustCompile(`^0?[6-9][0-9]{9}$`) // in India, whether or not it is in use
)
