// Package companycontact is the aggregate of a company's contact person. Every user may add a contact and change its details (SPEC.txt).
// Only members of the company may change the rest. The contact's own key seals the name, email and phone in the log, and is destroyed with
// the contact.
package companycontact

import (
	"reflect"

	"github.com/google/uuid"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/patch"
	"bahi/domain/person"
	"bahi/domain/wording"
)

// Kind is the kind of the streams contact-<uuid>. Names never change: old logs have them.
var Kind = event.NewKind("contact",
	event.Of[Added]("ContactAdded", 1),
	event.Of[Edited]("ContactEdited", 1),
	event.Of[Deleted]("ContactDeleted", 1),
).Sealing(Subjects)

// Subjects are the contacts: each is the subject of its own stream.
const Subjects event.SubjectType = "contact"

// Errors that commands return.
var (
	ErrNotFound = fault.New(fault.NotFound, "Contact not found")
	ErrNotYours = fault.New(fault.Forbidden, "Not enough permissions to access this company's contacts")
)

// State is the state for decisions and responses. Its personal values are sealed.
type State struct {
	Details

	Company uuid.UUID // uuid.Nil: none
	Exists  bool
}

// Details has the contact's fields that a change sets.
type Details struct {
	FirstName   patch.Field[event.Personal] `json:"first_name,omitzero"`
	LastName    patch.Field[event.Personal] `json:"last_name,omitzero"`
	Email       patch.Field[event.Personal] `json:"email,omitzero"`
	Phone       patch.Field[event.Personal] `json:"phone,omitzero"`
	Designation patch.Field[event.Personal] `json:"designation,omitzero"`
}

// each returns the fields in their order.
func (d *Details) each() []*patch.Field[event.Personal] {
	return []*patch.Field[event.Personal]{&d.FirstName, &d.LastName, &d.Email, &d.Phone, &d.Designation}
}

// after returns the details after a change.
func (d Details) after(change Details) Details {
	before := d.each()
	for i, f := range change.each() {
		if f.Present() {
			*before[i] = *f
		}
	}
	return d
}

// Added records a new contact.
type Added struct {
	Details

	Company uuid.UUID `json:"company_id,omitzero"`
}

// Edited records the changed fields. Stranger marks a change by a non-member.
type Edited struct {
	Details

	Company     uuid.UUID `json:"company_id,omitzero"` // the contact's new company; uuid.Nil: unchanged
	ByNonMember bool      `json:"stranger,omitempty"`
}

// Deleted records that the contact was deleted and the person must be erased.
type Deleted struct{}

// Evolve creates the contact.
func (e Added) Evolve(State) State {
	return State{Details: Details{}.after(e.Details), Company: e.Company, Exists: true}
}

// Evolve sets the changed fields.
func (e Edited) Evolve(s State) State {
	s.Details = s.after(e.Details)
	if e.Company != uuid.Nil {
		s.Company = e.Company
	}
	return s
}

// Evolve deletes the contact.
func (Deleted) Evolve(State) State { return State{} }

// Erases implements [event.ErasureTrigger].
func (Deleted) Erases(id string) event.Erasure { return event.Erasure{Subject: Subjects.Of(id)} }

// Reach has the fields that may be empty. An empty text equals null.
type Reach struct {
	LastName    patch.Field[string] `json:"last_name,omitzero"   maxLength:"400" doc:"Last name"`
	Phone       patch.Field[string] `json:"phone,omitzero"       maxLength:"40" doc:"Phone number in E.164 form"`
	Designation patch.Field[string] `json:"designation,omitzero" maxLength:"400" doc:"Occupation, at most 100 characters"`
}

const maxDesignation = 100

// optional returns a rule that accepts an empty text.
func optional(field string, rule func(field, text string) (string, error)) func(string) (string, error) {
	return func(text string) (string, error) {
		if text, err := wording.Normalise(field, text, 400); err != nil || text == "" {
			return text, err
		}
		return rule(field, text)
	}
}

// sealed returns the normalised and sealed values, or all their faults.
func (r Reach) sealed(id string, first, email patch.Field[string]) (Details, error) {
	first, wrongFirst := first.With(func(text string) (string, error) { return person.Name("first_name", text) })
	email, wrongEmail := email.With(func(text string) (string, error) { return person.Email("email", text) })
	last, wrongLast := r.LastName.With(optional("last_name", person.Name))
	phone, wrongPhone := r.Phone.With(func(text string) (string, error) { return wording.Phone("phone", text) })
	does, wrongDoes := r.Designation.With(optional("designation",
		func(field, text string) (string, error) { return wording.Normalise(field, text, maxDesignation) }))
	return Details{
		FirstName: Subjects.Field(id, first), LastName: Subjects.Field(id, last), Email: Subjects.Field(id, email),
		Phone: Subjects.Field(id, phone), Designation: Subjects.Field(id, does),
	}, fault.Join(wrongFirst, wrongLast, wrongEmail, wrongPhone, wrongDoes)
}

// Add creates a contact.
type Add struct {
	Reach

	ID        string            `json:"-"`
	FirstName string            `json:"first_name" maxLength:"400" doc:"1 to 100 characters"`
	Email     string            `json:"email"      maxLength:"254" doc:"Email address"`
	CompanyID *uuid.UUID        `json:"company_id,omitempty" doc:"ID of the company; null: none"`
	IsPrimary patch.Field[bool] `json:"is_primary,omitzero" doc:"true: primary contact of the company; from a non-member only if the company has none"`
}

// Decide normalises the values.
func (c Add) Decide(State) ([]event.Event[State], error) {
	details, err := c.sealed(c.ID, patch.Set(c.FirstName), patch.Set(c.Email))
	if err != nil {
		return nil, err
	}
	e := Added{Details: details}
	if c.CompanyID != nil {
		e.Company = *c.CompanyID
	}
	return []event.Event[State]{e}, nil
}

// Edit changes the given fields of a contact.
type Edit struct {
	Reach

	ID          string                 `json:"-"`
	ByNonMember bool                   `json:"-"` // the caller does not belong to the company
	FirstName   patch.Field[string]    `json:"first_name,omitzero" nullable:"false" maxLength:"400" doc:"1 to 100 characters"`
	Email       patch.Field[string]    `json:"email,omitzero"      nullable:"false" maxLength:"254" doc:"Email address"`
	CompanyID   patch.Field[uuid.UUID] `json:"company_id,omitzero" nullable:"false" doc:"Another of the caller's companies; ignored from a non-member"`
	IsPrimary   patch.Field[bool]      `json:"is_primary,omitzero" doc:"true: primary contact of the company; ignored from a non-member"`
}

// Decide records the fields that differ. Sealed texts cannot be compared, so it records all given ones.
func (c Edit) Decide(s State) ([]event.Event[State], error) {
	if !s.Exists {
		return nil, ErrNotFound
	}
	details, err := c.sealed(c.ID, c.FirstName, c.Email)
	if err != nil {
		return nil, err
	}
	e := Edited{Details: details, Company: patch.Differing(c.CompanyID, s.Company).Value}
	before := s.each()
	for i, f := range e.each() {
		if f.State == patch.Null && before[i].State != patch.Given {
			*f = patch.Field[event.Personal]{}
		}
	}
	if reflect.ValueOf(e).IsZero() {
		return nil, nil
	}
	e.ByNonMember = c.ByNonMember
	return []event.Event[State]{e}, nil
}

// Delete deletes a contact.
type Delete struct{}

// Decide refuses a missing contact.
func (Delete) Decide(s State) ([]event.Event[State], error) {
	if !s.Exists {
		return nil, ErrNotFound
	}
	return []event.Event[State]{Deleted{}}, nil
}
