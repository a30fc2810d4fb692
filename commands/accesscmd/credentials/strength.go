package credentials

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"bahi/domain/fault"
)

// The limits of a password's length in characters (code points, after normalisation). NIST SP 800-63B-4, section 3.1.1.2, requires a
// minimum of at least 8 and a maximum of at least 64.
const (
	minPassword = 8
	maxPassword = 128
)

// shortestPart is the minimum number of letters and digits of a name that no password may contain. Shorter names occur in good passwords by
// chance.
const shortestPart = 4

// commonPasswords is a list of common passwords. Its first lines name the source.
//
//go:embed common_passwords.txt
var commonPasswords string

// readCommon returns the list as a set.
func readCommon() map[string]struct{} {
	set := make(map[string]struct{}, strings.Count(commonPasswords, "\n"))
	for line := range strings.Lines(commonPasswords) {
		if !strings.HasPrefix(line, "#") {
			set[strings.TrimSuffix(line, "\n")] = struct{}{}
		}
	}
	return set
}

// rows are the rows of a keyboard, as rings. Alphabets need no row: their letters have consecutive code points.
var rows = []string{"1234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm", "qwertyuiopasdfghjklzxcvbnm"}

// Person has the names that a password must not contain.
type Person struct {
	Email string
	Names []string
}

// Normalise returns the form in which passwords are compared and hashed: Unicode's NFKC. Some keyboards send é as one character, others as
// e and an accent: both give the same password.
func Normalise(password string) string { return norm.NFKC.String(password) }

// Check returns nil for a password that the person may use, otherwise a [fault.Error] on the field. It ignores letter case.
func (p *passwords) Check(field, password string, of Person) error {
	if message := p.weakness(Normalise(password), of); message != "" {
		return fault.Wrong(field, message)
	}
	return nil
}

func (p *passwords) weakness(password string, of Person) string {
	switch n := utf8.RuneCountInString(password); {
	case n < p.minimum:
		return fmt.Sprintf("at least %d characters are needed", p.minimum)
	case n > maxPassword:
		return fmt.Sprintf("at most %d characters are allowed", maxPassword)
	}
	low := strings.ToLower(password)
	if personal(low, of) {
		return "must not contain your name or email address"
	}
	switch steps(low) {
	case 0:
		return "must not be one character repeated"
	case 1, -1:
		return "must not be a plain sequence"
	}
	if alongRow(low) {
		return "must not be a plain sequence"
	}
	if _, common := p.common[low]; common {
		return "must not be one of the most common passwords"
	}
	return ""
}

// notEven is the result of steps if the distances differ.
const notEven = 2

// steps returns the distance of each character from the one before, if it is the same throughout and is -1, 0 or 1; otherwise notEven.
func steps(text string) int {
	runes := []rune(text)
	step := int(runes[1] - runes[0])
	for i := range runes[1:] {
		if int(runes[i+1]-runes[i]) != step {
			return notEven
		}
	}
	return max(-notEven, min(step, notEven))
}

// alongRow reports whether the text runs along a row of keys, in either direction, even across its end.
func alongRow(text string) bool {
	back := []rune(text)
	slices.Reverse(back)
	for _, row := range rows {
		endless := strings.Repeat(row, maxPassword/len(row)+2)
		if strings.Contains(endless, text) || strings.Contains(endless, string(back)) {
			return true
		}
	}
	return false
}

// personal reports whether the password is the local part of the person's email or a name, or contains a long enough one.
func personal(low string, of Person) bool {
	local := of.Email
	if at := strings.LastIndexByte(local, '@'); at >= 0 {
		local = local[:at]
	}
	for _, part := range append([]string{local}, of.Names...) {
		part = strings.ToLower(Normalise(strings.TrimSpace(part)))
		if part != "" && (low == part || lettersIn(part) >= shortestPart && strings.Contains(low, part)) {
			return true
		}
	}
	return false
}

func lettersIn(text string) (n int) {
	for _, r := range text {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			n++
		}
	}
	return n
}
