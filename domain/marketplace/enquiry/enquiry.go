// Package enquiry is the aggregate of a buyer's question to a company. The key of the buyer's address seals the buyer's data and the texts
// in the log. An erasure of the buyer destroys the key. The enquiry stays.
package enquiry

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/patch"
	"bahi/domain/person"
	"bahi/domain/wording"
)

// Kind is the kind of the streams enquiry-<uuid>. Names never change: old logs have them.
var Kind = event.NewKind("enquiry",
	event.Of[Sent]("EnquirySent", 1),
	event.Of[StatusChanged]("EnquiryStatusChanged", 1),
	event.Of[NotesWritten]("EnquiryNotesWritten", 1),
).Sealing(Buyers)

// Errors that commands return.
var (
	ErrNotFound = fault.New(fault.NotFound, "Enquiry not found") // callers without access receive it too
	ErrNotYours = fault.New(fault.Forbidden, "Not enough permissions to access this company's enquiries")
)

// The statuses of an enquiry (CONTRACT.md D21).
const (
	Pending   = "pending"
	Contacted = "contacted"
	Qualified = "qualified"
	Converted = "converted"
	Lost      = "lost"
)

// moves lists the allowed changes of status. Companies skip steps and reopen lost enquiries. A converted enquiry is an order and stays
// converted.
var moves = map[string][]string{
	Pending:   {Contacted, Qualified, Converted, Lost},
	Contacted: {Qualified, Converted, Lost},
	Qualified: {Contacted, Converted, Lost},
	Lost:      {Contacted, Qualified},
}

// State is the state for decisions, responses and notices. Its personal values are sealed.
type State struct {
	Sent

	Status string // empty: there is no enquiry
	Notes  event.Personal
}

// Sent records a buyer's question.
type Sent struct {
	Company  uuid.UUID      `json:"to_company_id"`
	Product  *uuid.UUID     `json:"product_id,omitempty"`
	Quantity *int64         `json:"quantity,omitempty"`
	Source   string         `json:"source_platform"`
	Buyer    string         `json:"buyer"` // id of the subject
	Name     event.Personal `json:"user_name,omitzero"`
	Email    event.Personal `json:"user_email,omitzero"`
	Phone    event.Personal `json:"user_phone,omitzero"`
	Message  event.Personal `json:"message,omitzero"`
	Spam     bool           `json:"spam,omitempty"` // a program has filled in the hidden field
}

// StatusChanged records that the company advanced the enquiry, or reopened it.
type StatusChanged struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// NotesWritten records the company's notes, which may name the buyer.
type NotesWritten struct {
	Notes event.Personal `json:"notes,omitzero"`
}

// Evolve creates the enquiry.
func (e Sent) Evolve(State) State { return State{Sent: e, Status: Pending} }

// Evolve changes the status.
func (e StatusChanged) Evolve(s State) State { s.Status = e.To; return s }

// Evolve replaces the notes.
func (e NotesWritten) Evolve(s State) State { s.Notes = e.Notes; return s }

// Send sends an enquiry to a company.
type Send struct {
	To       uuid.UUID           `json:"to_company_id" doc:"ID of the company that receives the enquiry"`
	Product  *uuid.UUID          `json:"product_id,omitempty"       doc:"ID of an active product of the company"`
	Message  patch.Field[string] `json:"message,omitzero"           maxLength:"5000" doc:"Message to the company"`
	Quantity *int64              `json:"quantity,omitempty"         minimum:"1" maximum:"1000000000" doc:"Number of pieces"`
	Name     string              `json:"user_name"                  maxLength:"400" doc:"1 to 100 characters"`
	Email    string              `json:"user_email"                 maxLength:"254" doc:"Email address of the buyer"`
	Phone    patch.Field[string] `json:"user_phone,omitzero"        maxLength:"40" doc:"Phone number of the buyer"`
	Source   patch.Field[string] `json:"source_platform,omitzero"   maxLength:"50" doc:"Platform on which the buyer sends the enquiry: letters, digits, - and _; absent: web"`
	Website  patch.Field[string] `json:"website,omitzero"           doc:"For forms: a field that people do not see, and leave empty"`
	Buyer    string              `json:"-"` // id of the subject
}

const web = "web"

var sources = regexp.MustCompile(`^[a-z0-9_-]{1,50}$`)

func source(text string) (string, error) {
	text = strings.ToLower(strings.TrimSpace(text))
	if text != "" && !sources.MatchString(text) {
		return "", fault.Wrong("source_platform", "1 to 50 letters, digits, - and _")
	}
	return text, nil
}

const (
	maxText     = 5000
	maxQuantity = 1_000_000_000
)

// Decide normalises the values.
func (c Send) Decide(State) ([]event.Event[State], error) {
	name, wrongName := person.Name("user_name", c.Name)
	email, wrongEmail := person.Email("user_email", c.Email)
	phone, wrongPhone := wording.Phone("user_phone", c.Phone.Value)
	message, wrongMessage := wording.Normalise("message", c.Message.Value, maxText)
	from, wrongSource := source(c.Source.Value)
	var wrongQuantity error
	if q := c.Quantity; q != nil && (*q < 1 || *q > maxQuantity) {
		wrongQuantity = fault.Wrong("quantity", "expected 1 to "+strconv.Itoa(maxQuantity))
	}
	if err := fault.Join(wrongName, wrongEmail, wrongPhone, wrongMessage, wrongQuantity, wrongSource); err != nil {
		return nil, err
	}
	from = cmp.Or(from, web)
	return []event.Event[State]{Sent{
		Company: c.To, Product: c.Product, Quantity: c.Quantity, Source: from, Buyer: c.Buyer, Name: Buyers.Personal(c.Buyer, name),
		Email: Buyers.Personal(c.Buyer, email), Phone: Buyers.Personal(c.Buyer, phone), Message: Buyers.Personal(c.Buyer, message),
		Spam: strings.TrimSpace(c.Website.Value) != "",
	}}, nil
}

// Edit changes the fields that the company may change.
type Edit struct {
	Status patch.Field[string] `json:"status,omitzero" nullable:"false" enum:"pending,contacted,qualified,converted,lost" doc:"New status"`
	Notes  patch.Field[string] `json:"notes,omitzero"  maxLength:"5000" doc:"Notes of the company; the buyer does not see them"`
	Erased bool                `json:"-"` // the buyer is erased, so notes cannot be sealed
}

// Decide records the fields that differ. Sealed notes cannot be compared, so it records all given ones.
func (c Edit) Decide(s State) (events []event.Event[State], err error) {
	if s.Status == "" {
		return nil, ErrNotFound
	}
	notes, err := c.Notes.With(func(text string) (string, error) { return wording.Normalise("notes", text, maxText) })
	if err != nil {
		return nil, err
	}
	if to := c.Status.Or(s.Status); to != s.Status {
		if !slices.Contains(moves[s.Status], to) {
			return nil, fault.Newf(fault.Conflict, "Status cannot change from %s to %s", s.Status, to)
		}
		events = append(events, StatusChanged{From: s.Status, To: to})
	}
	sealed := Buyers.Field(s.Buyer, notes)
	switch {
	case c.Erased && sealed.State == patch.Given:
		return nil, fault.New(fault.Conflict, "The buyer was erased: notes can no longer be stored")
	case sealed.State == patch.Given, sealed.State == patch.Null && !s.Notes.IsZero():
		events = append(events, NotesWritten{Notes: sealed.Value})
	}
	return events, nil
}
