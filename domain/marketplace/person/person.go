// Package person has the rules for what people are called and how they are reached.
package person

import (
	"net/mail"
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
	maxLocal = 64 // bytes of an email before the @ (RFC 5321, 4.5.3.1.1)
	maxLabel = 63
)

// home is where a telephone number without a country's code is from (CONTRACT.md 8.3).
const home = "IN"

// Email answers an address in the form in which it is kept and compared: lower case, without what
// surrounds it. It refuses what RFC 5321 does not call a mailbox, quoted and literal forms included.
func Email(field, text string) (string, error) {
	text = strings.ToLower(norm.NFC.String(strings.TrimSpace(text)))
	bad := fault.Fields(fault.Field{Field: field, Message: "expected an email address"})
	if text == "" || utf8.RuneCountInString(text) > maxEmail || len(text) > maxEmail || strings.ContainsFunc(text, unprintable) {
		return "", bad
	}
	local, domain, _ := strings.Cut(text, "@")
	parsed, err := mail.ParseAddress(text)
	if err != nil || parsed.Address != text || parsed.Name != "" || local == "" || len(local) > maxLocal || strings.ContainsAny(text, "\"<>[]()\\ ") {
		return "", bad
	}
	labels := strings.Split(domain, ".")
	if len(labels) < 2 {
		return "", bad
	}
	for _, label := range labels {
		if label == "" || len(label) > maxLabel || strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-") ||
			strings.ContainsFunc(label, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !unicode.IsMark(c) && c != '-' }) {
			return "", bad
		}
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
