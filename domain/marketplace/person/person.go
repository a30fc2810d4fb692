// Package person has the rules for what people are called and how they are reached.
package person

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/nyaruka/phonenumbers"
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

// Email answers an address in the form in which it is kept and compared: lower case, without the space
// around it.
func Email(field, text string) (string, error) {
	text = strings.ToLower(strings.TrimSpace(text))
	local, _, _ := strings.Cut(text, "@")
	if len(text) > maxEmail || len(local) > maxLocal || !mailbox.MatchString(text) {
		return "", fault.Fields(fault.Field{Field: field, Message: "expected an email address"})
	}
	return text, nil
}

// Name answers a first or last name without the space around it.
func Name(field, text string) (string, error) {
	text = norm.NFC.String(strings.TrimSpace(text))
	switch {
	case text == "" || utf8.RuneCountInString(text) > maxName:
		return "", fault.Fields(fault.Field{Field: field, Message: "1 to 100 characters"})
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unprintable):
		return "", fault.Fields(fault.Field{Field: field, Message: "control characters are not allowed"})
	}
	return text, nil
}

// unprintable also finds what turns the direction of text around, but leaves the joiners that Indian
// scripts need.
func unprintable(c rune) bool {
	const zeroWidthNonJoiner, zeroWidthJoiner = '\u200c', '\u200d'
	return c != zeroWidthJoiner && c != zeroWidthNonJoiner && (unicode.IsControl(c) || unicode.Is(unicode.Cf, c) || c == utf8.RuneError)
}

// Phone answers a telephone number in the form of E.164. One without a country's code is from India
// (CONTRACT.md 8.3). An empty text is no number.
func Phone(field, text string) (string, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return "", nil
	}
	if rest, international := strings.CutPrefix(text, "00"); international {
		text = "+" + rest
	}
	n, err := phonenumbers.Parse(text, home)
	if err != nil || !phonenumbers.IsPossibleNumber(n) || strings.ContainsFunc(text, unicode.IsLetter) {
		return "", fault.Fields(fault.Field{Field: field, Message: "expected a telephone number, as in +919812345678"})
	}
	return phonenumbers.Format(n, phonenumbers.E164), nil
}
