// Package person has the rules for names, email addresses and phone numbers.
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
	maxLocal = 64 // length of an email before the @ (RFC 5321, section 4.5.3.1.1)
)

// home is the country of telephone numbers without a country code (CONTRACT.md 8.3).
const home = "IN"

// mailbox is a Mailbox of RFC 5321, section 4.1.2: a Dot-string and a Domain of at least two labels. It excludes quoted local parts,
// address literals and letters outside ASCII, because few servers accept them.
var mailbox = regexp.MustCompile("^[a-z0-9!#$%&'*+/=?^_`{|}~-]+(\\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*" +
	`@([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])$`)

// Email returns an address in the form for storage and comparison: lower case, without surrounding space.
func Email(field, text string) (string, error) {
	text = strings.TrimSpace(text)
	// This check precedes the conversion to lower case. That conversion makes ASCII letters of the Kelvin sign and of a dotted capital I.
	// The result could be another person's address.
	foreign := strings.ContainsFunc(text, func(c rune) bool { return c > unicode.MaxASCII })
	text = strings.ToLower(text)
	local, _, _ := strings.Cut(text, "@")
	if foreign || len(text) > maxEmail || len(local) > maxLocal || !mailbox.MatchString(text) {
		return "", fault.Wrong(field, "expected an email address")
	}
	return text, nil
}

// Unmarked returns a text without surrounding space and without direction marks, which copied text contains.
func Unmarked(text string) string {
	return strings.TrimSpace(marks.Replace(text))
}

var marks = strings.NewReplacer("\u200e", "", "\u200f", "", "\u061c", "")

// Name returns a first or last name without surrounding space and direction marks.
func Name(field, text string) (string, error) {
	text = norm.NFC.String(Unmarked(text))
	switch {
	case text == "" || utf8.RuneCountInString(text) > maxName:
		return "", fault.Wrong(field, "1 to 100 characters")
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unprintable):
		return "", fault.Wrong(field, "control characters are not allowed")
	case !strings.ContainsFunc(text, Visible):
		return "", fault.Wrong(field, "must have a visible character")
	}
	return text, nil
}

// Printable returns a network's text about a person in one line, without unprintable characters.
func Printable(text string) string {
	return strings.Join(strings.Fields(strings.Map(func(c rune) rune {
		if unprintable(c) && !unicode.IsSpace(c) {
			return -1
		}
		return c
	}, text)), " ")
}

// Folded returns a name or an address in the form for searches: independent of case and of the composition of accents.
func Folded(text string) string {
	return norm.NFC.String(cases.Fold().String(norm.NFC.String(strings.TrimSpace(text))))
}

const zeroWidthNonJoiner, zeroWidthJoiner = '\u200c', '\u200d'

// unprintable reports whether a character is a control character, a line break, or reverses the text direction. It allows the joiners that
// Indian scripts require.
func unprintable(c rune) bool {
	return c != zeroWidthJoiner && c != zeroWidthNonJoiner &&
		(unicode.In(c, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp) || c == utf8.RuneError)
}

// Visible reports whether a character is visible. Spaces, joiners and empty filler letters are invisible.
func Visible(c rune) bool {
	switch c {
	case '\u115f', '\u1160', '\u3164', '\uffa0', '\u2800': // fillers of Hangul, and Braille without a dot
		return false
	}
	return unicode.In(c, unicode.L, unicode.N, unicode.P, unicode.S)
}

// Phone returns a telephone number in the form of E.164, or "" for an invisible text. A number without a country code is from India, if
// India has such a number (CONTRACT.md 8.3).
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
		return "", fault.Wrong(field, "expected a telephone number, as in +919812345678")
	}
	return number, nil
}

// ParseE164 parses a telephone number in the form of messaging networks: E.164 with the country code and without the plus sign. It parses
// an Indian mobile number, and others without a country code, like [Phone] (CONTRACT.md 8.3).
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
	// called matches common prefixes of numbers, such as tel: of RFC 3966 and wa.me/ of a link.
	called = regexp.MustCompile("(?i)^((https?://)?wame/|(telephone|tel|phone|ph|mobile|mob|whatsapp|callto|sms)(number|no)?:?)+")
	// asNumber matches a telephone number that a spreadsheet has stored as a decimal number.
	asNumber = regexp.MustCompile(`^([^.]*[0-9]{7})\.0+$`)
)

// quotes are the characters around a number in other files, as in ="9812345678". An apostrophe marks a text in a spreadsheet.
const quotes = "\"'`´‘’ʼ＇“”„«»=,;"

// digits returns the dialled digits of a telephone number (CONTRACT.md 0.12, R5). It converts digits of every script to ASCII. It drops
// prefixes, separators and direction marks.
func digits(text string) string {
	text = strings.Map(func(c rune) rune {
		switch {
		case c < utf8.RuneSelf && c > ' ':
			return c
		case unicode.IsSpace(c), unicode.Is(unicode.Cf, c):
			return -1
		case strings.ContainsRune("＋﹢", c):
			return '+'
		case strings.ContainsRune("．·․•∙⋅", c):
			return '.'
		case unicode.In(c, unicode.Pd, unicode.Ps, unicode.Pe), c == '−':
			return '-'
		}
		return Digit(c)
	}, text)
	text = asNumber.ReplaceAllString(strings.Trim(text, quotes), "$1")
	text = strings.Map(func(c rune) rune {
		if strings.ContainsRune("()[]{}-.", c) {
			return -1
		}
		return c
	}, text)
	return called.ReplaceAllString(text, "")
}

// Digit converts a decimal digit of any script to ASCII. Each script has its ten digits in order.
func Digit(c rune) rune {
	if c <= unicode.MaxASCII || !unicode.Is(unicode.Nd, c) {
		return c
	}
	zero := c
	for unicode.Is(unicode.Nd, zero-1) {
		zero--
	}
	return '0' + (c-zero)%10
}

// number parses a text that is a number as a whole. It refuses a number if parsing the result again returns another number. For numbers
// with leading zeros, the library does.
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

// e164 parses a text that is an E.164 number as a whole. It drops the former mobile digit of Mexico.
func e164(text string) (string, bool) {
	text = mexican.ReplaceAllString(text, "+52$1")
	switch {
	case indian.MatchString(text): // the library takes 20 times as long
		return "+91" + text[len(text)-10:], true
	case !dialled.MatchString(text): // the library skips unknown characters
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
	mexican = regexp.MustCompile(`^\+521([0-9]{10})$`)
	mobile  = regexp.MustCompile(`^0?[6-9][0-9]{9}$`) // in India, used or unused
	indian  = regexp.MustCompile(`^(\+91)?[6-9][0-9]{9}$`)
)
