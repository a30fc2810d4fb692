package network

import (
	"regexp"
	"time"

	"bahi/domain/person"
)

// spellings are the longer spellings of numbers that networks spell in two ways, and the shorter ones: Brazil with its ninth digit,
// Mexico and Argentina with the
// digit that mobile numbers had (CONTRACT.md R4).
var spellings = map[string]struct {
	longer *regexp.Regexp
	short  string
}{
	"55": {regexp.MustCompile(`^55([1-9][0-9])9([6-9][0-9]{7})$`), "55$1$2"},
	"52": {regexp.MustCompile(`^521([0-9]{10})$`), "52$1"},
	"54": {regexp.MustCompile(`^549([0-9]{10})$`), "54$1"},
}

// Spelling returns the one spelling by which a phone is compared. Respelt: it may have another one.
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

// Phone returns the phone, in E.164 without its plus sign, that a network's id of a person is, "" if it is none.
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

// Moment is when a person did something, as the network tells, and when we heard of it: many networks count in seconds.
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
