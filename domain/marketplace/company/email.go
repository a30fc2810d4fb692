package company

import (
	"strings"

	"bahi/domain/event"
	"bahi/domain/patch"
	"bahi/domain/person"
)

// Subjects are the companies: the address to which enquiries go may be somebody's own.
const Subjects event.Subjects = "company"

// EmailNamed records the address to which enquiries are to go, or that there is none.
type EmailNamed struct {
	Email event.Personal `json:"email,omitzero"`
	Key   string         `json:"email_key,omitempty"`
}

// EmailConfirmed records that whoever reads the address has confirmed it.
type EmailConfirmed struct{}

// Evolve names it.
func (e EmailNamed) Evolve(s State) State {
	s.Email, s.EmailKey, s.EmailConfirmed = e.Email, e.Key, false
	return s
}

// Evolve confirms it.
func (EmailConfirmed) Evolve(s State) State { s.EmailConfirmed = true; return s }

// Address is the address to which enquiries are to go. An empty text is none, as null is.
type Address struct {
	ID       string              `json:"-"`
	Email    patch.Field[string] `json:"email,omitzero" maxLength:"254" doc:"To which enquiries go, once a mailed token has confirmed it. Only members see it"`
	EmailKey string              `json:"-"` // keyed hash of it
}

// Email puts the address of a company in order.
func Email(text string) (string, error) {
	if strings.TrimSpace(text) == "" {
		return "", nil
	}
	return person.Email("email", text)
}

// tidy returns what is wrong with the address.
func (a Address) tidy() error {
	_, err := a.Email.With(Email)
	return err
}

// named returns what follows for a company from the address, which is in order.
func (a Address) named(s State) []event.Event[State] {
	if !a.Email.Named() || a.EmailKey == s.EmailKey {
		return nil
	}
	text, err := Email(a.Email.Value)
	if err != nil {
		return nil // tidy has refused it
	}
	return []event.Event[State]{EmailNamed{Email: Subjects.Personal(a.ID, text), Key: a.EmailKey}}
}

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
