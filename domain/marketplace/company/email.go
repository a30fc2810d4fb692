package company

import (
	"strconv"
	"strings"

	"bahi/domain/event"
	"bahi/domain/patch"
	"bahi/domain/person"
)

// subjects are the addresses for companies' enquiries, because these may be personal. A subject is company-<id of the company>-<number of
// the address>.
const subjects event.SubjectType = "company"

// EmailNamed records a company's address for enquiries, or that it has none.
type EmailNamed struct {
	Email event.Personal `json:"email,omitzero"`
	Key   string         `json:"email_key,omitempty"`
	Nth   int            `json:"nth"` // number of the address, from 1
}

// emailID returns the id of the subject of a company's nth address.
func emailID(id string, nth int) string { return id + "-" + strconv.Itoa(nth) }

// EmailSubject returns the subject of the company's address.
func (s State) EmailSubject(id string) string { return subjects.Of(emailID(id, s.Emails)) }

// Erases implements [event.ErasureTrigger]. The former address is erased. No table has it.
func (e EmailNamed) Erases(id string) event.Erasure {
	return event.Erasure{Subject: subjects.Of(emailID(id, e.Nth-1)), Unlisted: true}
}

// EmailConfirmed records that the address was confirmed with a mailed token.
type EmailConfirmed struct{}

// Evolve sets the address.
func (e EmailNamed) Evolve(s State) State {
	s.Email, s.EmailKey, s.EmailConfirmed, s.Emails = e.Email, e.Key, false, e.Nth
	return s
}

// Evolve confirms the address.
func (EmailConfirmed) Evolve(s State) State { s.EmailConfirmed = true; return s }

// Own has the data of a command that are not in the public profile: the address for enquiries. An empty text equals null.
type Own struct {
	ID       string              `json:"-"`
	Email    patch.Field[string] `json:"email,omitzero" maxLength:"254" doc:"Address for enquiries after confirmation by a mailed token. Only members see it"`
	EmailKey string              `json:"-"` // keyed hash of it
	AnyGSTIN bool                `json:"-"` // GSTINs of special registrations are allowed
}

// Email normalises a company's address.
func Email(text string) (string, error) {
	if strings.TrimSpace(text) == "" {
		return "", nil
	}
	return person.Email("email", text)
}

// tidy returns the fault of the address.
func (a Own) tidy() error {
	_, err := a.Email.With(Email)
	return err
}

// named returns the event for a normalised address, if it changes.
func (a Own) named(s State) []event.Event[State] {
	if !a.Email.Present() || a.EmailKey == s.EmailKey {
		return nil
	}
	text, err := Email(a.Email.Value)
	if err != nil {
		return nil // tidy has refused the address
	}
	nth := s.Emails + 1
	return []event.Event[State]{EmailNamed{Email: subjects.Personal(emailID(a.ID, nth), text), Key: a.EmailKey, Nth: nth}}
}

// forgotten returns the event for an address that must be erased.
func (s State) forgotten() []event.Event[State] {
	if s.EmailKey == "" {
		return nil
	}
	return []event.Event[State]{EmailNamed{Nth: s.Emails + 1}}
}

// ForgetEmail removes a company's address.
type ForgetEmail struct{}

// Decide returns no events for a company without an address.
func (ForgetEmail) Decide(s State) ([]event.Event[State], error) { return s.forgotten(), nil }

// ConfirmEmail confirms the company's address if the token was mailed to this address.
type ConfirmEmail struct{ Key string }

// Decide returns no events for a confirmed address.
func (c ConfirmEmail) Decide(s State) ([]event.Event[State], error) {
	switch {
	case s.Name == "":
		return nil, ErrNotFound
	case s.EmailKey != c.Key || s.EmailConfirmed:
		return nil, nil
	}
	return []event.Event[State]{EmailConfirmed{}}, nil
}
