package network

import (
	"regexp"
	"strings"
	"time"

	"bahi/domain/person"
)

// spellings has the codes of countries with two spellings of numbers at networks. The longer spelling has a further digit: in Brazil the
// ninth, in Mexico and Argentina the former mobile digit (CONTRACT.md R4).
var spellings = map[string]struct {
	longer *regexp.Regexp
	short  string
}{
	"55": {regexp.MustCompile(`^55([1-9][0-9])9([6-9][0-9]{7})$`), "55$1$2"},
	"52": {regexp.MustCompile(`^521([0-9]{10})$`), "52$1"},
	"54": {regexp.MustCompile(`^549([0-9]{10})$`), "54$1"},
}

// Spelling returns the normalised spelling of a phone for comparison. It returns respelt if the phone may have another spelling.
func Spelling(phone string) (one string, respelt bool) {
	if len(phone) < 2 {
		return phone, false
	}
	s, respelt := spellings[phone[:2]]
	if !respelt {
		return phone, false
	}
	return s.longer.ReplaceAllString(phone, s.short), true
}

// Phone returns the phone in a network's id of a person, in E.164 without its plus sign, or "".
func Phone(id string) string {
	phone, err := person.ParseE164("from", id)
	if err != nil {
		return ""
	}
	return phone
}

// Moment is the time of a person's action by the network's clock, and the time of arrival. Many networks count in seconds.
type Moment struct {
	At        time.Time `json:"at,omitzero"`
	ArrivedAt time.Time `json:"arrived_at,omitzero"`
}

// Before compares the network's times, and the times of arrival if these are equal (CONTRACT.md R7).
func (m Moment) Before(other Moment) bool {
	if c := m.At.Compare(other.At); c != 0 {
		return c < 0
	}
	return m.ArrivedAt.Before(other.ArrivedAt)
}

// Digits returns the ASCII digits of a text.
func Digits(text string) string {
	return strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, text)
}
