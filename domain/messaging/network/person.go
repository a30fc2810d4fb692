package network

import (
	"regexp"
	"time"

	"bahi/domain/person"
)

// spellings map the longer spellings of numbers with two spellings at networks to the shorter ones: numbers of Brazil
// with the ninth digit, and numbers of Mexico and Argentina with their former mobile digit (CONTRACT.md R4).
var spellings = map[string]struct {
	longer *regexp.Regexp
	short  string
}{
	"55": {regexp.MustCompile(`^55([1-9][0-9])9([6-9][0-9]{7})$`), "55$1$2"},
	"52": {regexp.MustCompile(`^521([0-9]{10})$`), "52$1"},
	"54": {regexp.MustCompile(`^549([0-9]{10})$`), "54$1"},
}

// Spelling returns the normalised spelling of a phone for comparison. respelt: the phone may have another spelling.
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
	if err != nil && id != "" {
		if one, _ := Spelling(id); one != id {
			phone, err = person.ParseE164("from", one)
		}
	}
	if err != nil {
		return ""
	}
	return phone
}

// Moment is the time at which a person did something by the network's clock, and the time of arrival. Many networks
// count in seconds.
type Moment struct {
	At        time.Time `json:"at,omitzero"`
	ArrivedAt time.Time `json:"arrived_at,omitzero"`
}

// Before orders what people did (CONTRACT.md R7).
func (m Moment) Before(other Moment) bool {
	if c := m.At.Compare(other.At); c != 0 {
		return c < 0
	}
	return m.ArrivedAt.Before(other.ArrivedAt)
}
