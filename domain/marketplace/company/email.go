package company

import (
	"strconv"
	"strings"

	"bahi/domain/event"
	"bahi/domain/patch"
	"bahi/domain/person"
)

// Subjects are the addresses to which companies' enquiries go, which may be somebody's own: company-<id of the company>-<number of the
// address>.
const Subjects event.SubjectType = "company"

// EmailNamed records the address to which enquiries are to go, or that there is none.
type EmailNamed struct {
	Email event.Personal `json:"email,omitzero"`
	Key   string         `json:"email_key,omitempty"`
	Nth   int            `json:"nth"` // address of the company, from 1
}

// emailID returns the id of the subject that the nth address of a company is.
func emailID(id string, nth int) string { return id + "-" + strconv.Itoa(nth) }

// EmailSubject returns the subject that the company's address is.
func (s State) EmailSubject(id string) string { return Subjects.Of(emailID(id, s.Emails)) }

// Erases implements [event.ErasureTrigger]: the address before is forgotten. No table shows it.
func (e EmailNamed) Erases(id string) event.Erasure {
	return event.Erasure{Subject: Subjects.Of(emailID(id, e.Nth-1)), Unlisted: true}
}

// EmailConfirmed records that a reader of the address has confirmed it.
type EmailConfirmed struct{}

// Evolve names it.
func (e EmailNamed) Evolve(s State) State {
	s.Email, s.EmailKey, s.EmailConfirmed, s.Emails = e.Email, e.Key, false, e.Nth
	return s
}

// Evolve confirms it.
func (EmailConfirmed) Evolve(s State) State { s.EmailConfirmed = true; return s }

// Own is what a command has beside the public profile: the address to which enquiries are to go. An empty text is none, as null is.
type Own struct {
	ID       string              `json:"-"`
	Email    patch.Field[string] `json:"email,omitzero" maxLength:"254" doc:"To which enquiries go, once a mailed token has confirmed it. Only members see it"`
	EmailKey string              `json:"-"` // keyed hash of it
	AnyGSTIN bool                `json:"-"` // also those of special registrations
}

// Email puts the address of a company in order.
func Email(text string) (string, error) {
	if strings.TrimSpace(text) == "" {
		return "", nil
	}
	return person.Email("email", text)
}

// tidy returns what is wrong with the address.
func (a Own) tidy() error {
	_, err := a.Email.With(Email)
	return err
}

// named returns what follows for a company from the address, which is in order.
func (a Own) named(s State) []event.Event[State] {
	if !a.Email.Present() || a.EmailKey == s.EmailKey {
		return nil
	}
	text, err := Email(a.Email.Value)
	if err != nil {
		return nil // tidy has refused it
	}
	nth := s.Emails + 1
	return []event.Event[State]{EmailNamed{Email: Subjects.Personal(emailID(a.ID, nth), text), Key: a.EmailKey, Nth: nth}}
}

// forgotten returns what follows where the address is to be forgotten.
func (s State) forgotten() []event.Event[State] {
	if s.EmailKey == "" {
		return nil
	}
	return []event.Event[State]{EmailNamed{Nth: s.Emails + 1}}
}

// ForgetEmail lets a company have no address.
type ForgetEmail struct{}

// Decide passes over a company without one.
func (ForgetEmail) Decide(s State) ([]event.Event[State], error) { return s.forgotten(), nil }

// ConfirmEmail confirms the address that the company has, if it is the one that the token was mailed to.
type ConfirmEmail struct{ Key string }

// Decide passes over one that is confirmed.
func (c ConfirmEmail) Decide(s State) ([]event.Event[State], error) {
	switch {
	case s.Name == "":
		return nil, ErrNotFound
	case s.EmailKey != c.Key || s.EmailConfirmed:
		return nil, nil
	}
	return []event.Event[State]{EmailConfirmed{}}, nil
}
