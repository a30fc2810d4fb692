// Package company is the aggregate of a company in the directory. All its data are public, except the address for enquiries.
package company

import (
	"bahi/domain/claims"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/patch"
	"bahi/domain/wording"
)

// Kind is the kind of the streams company-<uuid>. Names never change: old logs have them.
var Kind = event.NewKind("company",
	event.Of[Created]("CompanyCreated", 1),
	event.Of[Edited]("CompanyEdited", 1),
	event.Of[Deleted]("CompanyDeleted", 1),
	event.Of[EmailNamed]("CompanyEmailChanged", 1),
	event.Of[EmailConfirmed]("CompanyEmailConfirmed", 1),
).Sealing(subjects)

type (
	slug   struct{}
	domain struct{}
)

var (
	// Slugs are the claims of companies' slugs. They are never released. The streams are companyslug-<hash>.
	Slugs = claims.New[slug]("companyslug", "CompanySlugClaimed", "CompanySlugReleased")
	// Domains are the claims of companies' domains. Each domain belongs to one company. The streams are companydomain-<hash>.
	Domains = claims.New[domain]("companydomain", "CompanyDomainClaimed", "CompanyDomainReleased")
)

// Errors that commands return.
var (
	ErrNotFound = fault.New(fault.NotFound, "Company not found")
	ErrNotYours = fault.New(fault.Forbidden, "Not enough permissions to modify this company")
)

// DomainTaken is the error text for another company's domain.
const DomainTaken = "Company domain already registered"

// State is the state for decisions and responses.
type State struct {
	Name      string // empty: there is no company
	Slug      string
	Profile   Profile // each field absent or given
	DomainKey string  // keyed hash that names the claim of the domain; empty: no claim
	Verified  bool

	Email          event.Personal // address for enquiries; only members see it
	EmailKey       string         // keyed hash of it
	Emails         int            // number of addresses so far; each address has its own key
	EmailConfirmed bool
}

// Profile has a company's public data except the name. An empty text equals null.
type Profile struct {
	Description  patch.Field[string] `json:"description,omitzero"   maxLength:"5000" doc:"Description of the company"`
	Category     patch.Field[string] `json:"category,omitzero"      maxLength:"100" doc:"Category"`
	SubCategory  patch.Field[string] `json:"sub_category,omitzero"  maxLength:"100" doc:"Subcategory"`
	Website      patch.Field[string] `json:"website,omitzero"       maxLength:"2048" doc:"URL of the website"`
	Domain       patch.Field[string] `json:"domain,omitzero"        maxLength:"253"  doc:"Domain of one company only; a mail provider's domain belongs to none"`
	AddressLine1 patch.Field[string] `json:"address_line1,omitzero" maxLength:"500" doc:"Street and number"`
	City         patch.Field[string] `json:"city,omitzero"          maxLength:"100" doc:"City"`
	State        patch.Field[string] `json:"state,omitzero"         maxLength:"100" doc:"State"`
	Country      patch.Field[string] `json:"country,omitzero"       maxLength:"100" doc:"Country"`
	Pincode      patch.Field[string] `json:"pincode,omitzero"       maxLength:"20" doc:"Postal code"`
	GSTIN        patch.Field[string] `json:"gstin,omitzero"         maxLength:"40" doc:"GSTIN of the company"`
	Phone        patch.Field[string] `json:"phone,omitzero"         maxLength:"40" doc:"Phone number in E.164 form"`
}

// Created records a new company.
type Created struct {
	Profile

	Name      string `json:"name"`
	Slug      string `json:"slug"`
	DomainKey string `json:"domain_key,omitempty"`
}

// Edited records the changed fields.
type Edited struct {
	Profile

	Name      patch.Field[string] `json:"name,omitzero"`
	DomainKey patch.Field[string] `json:"domain_key,omitzero"`
	Verified  patch.Field[bool]   `json:"verified,omitzero"`
}

// Deleted records that the company was deleted, with all its products.
type Deleted struct{}

// Evolve creates the company.
func (e Created) Evolve(State) State {
	return State{Name: e.Name, Slug: e.Slug, Profile: Profile{}.after(e.Profile), DomainKey: e.DomainKey}
}

// Evolve sets the changed fields.
func (e Edited) Evolve(s State) State {
	s.Name, s.Profile = e.Name.Or(s.Name), s.Profile.after(e.Profile)
	s.DomainKey, s.Verified = e.DomainKey.Or(s.DomainKey), e.Verified.Or(s.Verified)
	return s
}

// Evolve deletes the company.
func (Deleted) Evolve(State) State { return State{} }

// after returns the profile after a change.
func (p Profile) after(change Profile) Profile {
	patch.Apply(&p, &change)
	return p
}

// tidied returns a normalised change of a profile without unchanged fields, or all its faults.
func (p Profile) tidied(change Profile, anyGSTIN bool) (Profile, error) {
	phone, wrongPhone := change.Phone.With(func(text string) (string, error) { return wording.Phone("phone", text) })
	change.Phone = phone
	wrong := fault.Join(wrongPhone, wording.TidyAll(&p, &change, formatsFor(anyGSTIN)))
	if after := p.after(change); after.Pincode.Present() && (change.Pincode.Present() || change.Country.Present()) {
		code, err := pincode(after.Pincode.Value, after.Country.Value)
		if wrong = fault.Join(wrong, err); code != p.Pincode.Value {
			change.Pincode = patch.Set(code)
		}
	}
	return change, wrong
}

// named returns a company's normalised name.
func named(text string) (string, error) { return wording.Required("name", text, maxName) }

const maxName = 200 // CONTRACT.md D19

// Create creates a company.
type Create struct {
	Profile
	Own

	Name      string `json:"name" maxLength:"1000" doc:"1 to 200 characters"`
	Slug      string `json:"-"` // name of the slug's claim; empty before the company has an id
	DomainKey string `json:"-"` // keyed hash of the domain; empty: no claim
}

// Decide normalises the values.
func (c Create) Decide(State) ([]event.Event[State], error) {
	name, wrongName := named(c.Name)
	profile, wrongProfile := Profile{}.tidied(c.Profile, c.AnyGSTIN)
	if err := fault.Join(wrongName, wrongProfile, c.tidy()); err != nil {
		return nil, err
	}
	events := []event.Event[State]{Created{Name: name, Slug: c.Slug, Profile: profile, DomainKey: c.DomainKey}}
	return append(events, c.named(State{})...), nil
}

// Edit changes the given fields of a company. It does not change the slug, so that links stay valid.
type Edit struct {
	Profile
	Own

	Name       patch.Field[string] `json:"name,omitzero"     nullable:"false" maxLength:"1000" doc:"1 to 200 characters"`
	Verified   patch.Field[bool]   `json:"verified,omitzero" nullable:"false" doc:"Only operators can set it; ignored from others. A change of name, gstin or domain clears it"`
	ByOperator bool                `json:"-"`
	DomainKey  string              `json:"-"` // keyed hash of a given domain, if it must be claimed
}

// Decide records the fields that differ.
func (c Edit) Decide(s State) ([]event.Event[State], error) {
	if s.Name == "" {
		return nil, ErrNotFound
	}
	name, wrongName := c.Name.With(named)
	profile, wrongProfile := s.Profile.tidied(c.Profile, c.AnyGSTIN)
	if err := fault.Join(wrongName, wrongProfile, c.tidy()); err != nil {
		return nil, err
	}
	e := Edited{Name: patch.Differing(name, s.Name), Profile: profile}
	if profile.Domain.Present() {
		e.DomainKey = patch.Differing(patch.Set(c.DomainKey), s.DomainKey)
	}
	verified := s.Verified && !e.Name.Present() && !profile.GSTIN.Present() && !profile.Domain.Present()
	if c.ByOperator {
		verified = c.Verified.Or(verified)
	}
	e.Verified = patch.Differing(patch.Set(verified), s.Verified)
	events := c.named(s)
	if e != (Edited{}) {
		events = append([]event.Event[State]{e}, events...)
	}
	return events, nil
}

// Delete deletes a company.
type Delete struct{}

// Decide refuses a missing company.
func (Delete) Decide(s State) ([]event.Event[State], error) {
	if s.Name == "" {
		return nil, ErrNotFound
	}
	return append(s.forgotten(), Deleted{}), nil
}
