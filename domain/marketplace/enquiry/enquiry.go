// Package enquiry is a buyer's question to a company that sells. The log has who asks and what they wrote only under the key of their
// address, which ends with the buyer; the enquiry stays.
package enquiry

import (
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

// Kind names what a stream enquiry-<uuid> holds. A name is for ever: old logs have it.
var Kind = event.NewKind("enquiry",
	event.Of[Sent]("EnquirySent", 1),
	event.Of[StatusChanged]("EnquiryStatusMoved", 1),
	event.Of[NotesWritten]("EnquiryNotesWritten", 1),
).Sealing(Buyers)

// What is answered where a command does not fit.
var (
	ErrNotFound = fault.New(fault.NotFound, "Enquiry not found") // also for those who may not know that it exists
	ErrNotYours = fault.New(fault.Forbidden, "Not enough permissions to access this company's enquiries")
)

// The states of an enquiry (CONTRACT.md D21).
const (
	Pending   = "pending"
	Contacted = "contacted"
	Qualified = "qualified"
	Converted = "converted"
	Lost      = "lost"
)

// moves lists where a status may go. Companies skip steps and take lost enquiries up again; a converted one is an order, and stays one.
var moves = map[string][]string{
	Pending:   {Contacted, Qualified, Converted, Lost},
	Contacted: {Qualified, Converted, Lost},
	Qualified: {Contacted, Converted, Lost},
	Lost:      {Contacted, Qualified},
}

// State is what decisions, answers and notices need. Its personal values are sealed.
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
	Spam     bool           `json:"spam,omitempty"` // a program filled in what people do not see
}

// StatusChanged records that the company came further with the enquiry, or took it up again.
type StatusChanged struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// NotesWritten records the company's notes, which may name the buyer.
type NotesWritten struct {
	Notes event.Personal `json:"notes,omitzero"`
}

// Evolve begins the enquiry.
func (e Sent) Evolve(State) State { return State{Sent: e, Status: Pending} }

// Evolve moves the status.
func (e StatusChanged) Evolve(s State) State { s.Status = e.To; return s }

// Evolve replaces the notes.
func (e NotesWritten) Evolve(s State) State { s.Notes = e.Notes; return s }

// Send asks a company.
type Send struct {
	To       uuid.UUID           `json:"to_company_id" doc:"ID of the company that receives the enquiry"`
	Product  *uuid.UUID          `json:"product_id,omitempty"       doc:"One that the company sells"`
	Message  patch.Field[string] `json:"message,omitzero"           maxLength:"5000" doc:"Message to the company"`
	Quantity *int64              `json:"quantity,omitempty"         minimum:"1" maximum:"1000000000" doc:"Number of pieces"`
	Name     string              `json:"user_name"                  maxLength:"400" doc:"1 to 100 characters"`
	Email    string              `json:"user_email"                 maxLength:"254" doc:"Email address of the buyer"`
	Phone    patch.Field[string] `json:"user_phone,omitzero"        maxLength:"40" doc:"Phone number of the buyer"`
	Source   patch.Field[string] `json:"source_platform,omitzero"   maxLength:"50" doc:"Where the buyer asks: letters, digits, - and _; absent: web"`
	Website  patch.Field[string] `json:"website,omitzero"           doc:"For forms: a field that people do not see, and leave empty"`
	Buyer    string              `json:"-"` // id of the subject
}

const web = "web"

var sources = regexp.MustCompile(`^[a-z0-9_-]{1,50}$`)

func source(text string) (string, error) {
	text = strings.ToLower(strings.TrimSpace(text))
	if text != "" && !sources.MatchString(text) {
		return "", fault.Fields(fault.Field{Field: "source_platform", Message: "1 to 50 letters, digits, - and _"})
	}
	return text, nil
}

const (
	maxText     = 5000
	maxQuantity = 1_000_000_000
)

// Decide puts the values in order.
func (c Send) Decide(State) ([]event.Event[State], error) {
	name, wrongName := person.Name("user_name", c.Name)
	email, wrongEmail := person.Email("user_email", c.Email)
	phone, wrongPhone := wording.Phone("user_phone", c.Phone.Value)
	message, wrongMessage := wording.Normalise("message", c.Message.Value, maxText)
	from, wrongSource := source(c.Source.Value)
	var wrongQuantity error
	if q := c.Quantity; q != nil && (*q < 1 || *q > maxQuantity) {
		wrongQuantity = fault.Fields(fault.Field{Field: "quantity", Message: "expected 1 to " + strconv.Itoa(maxQuantity)})
	}
	if err := fault.Join(wrongName, wrongEmail, wrongPhone, wrongMessage, wrongQuantity, wrongSource); err != nil {
		return nil, err
	}
	if from == "" {
		from = web
	}
	return []event.Event[State]{Sent{
		Company: c.To, Product: c.Product, Quantity: c.Quantity, Source: from, Buyer: c.Buyer, Name: Buyers.Personal(c.Buyer, name),
		Email: Buyers.Personal(c.Buyer, email), Phone: Buyers.Personal(c.Buyer, phone), Message: Buyers.Personal(c.Buyer, message),
		Spam: strings.TrimSpace(c.Website.Value) != "",
	}}, nil
}

// Edit changes what the company that was asked may change.
type Edit struct {
	Status patch.Field[string] `json:"status,omitzero" nullable:"false" enum:"pending,contacted,qualified,converted,lost" doc:"New status"`
	Notes  patch.Field[string] `json:"notes,omitzero"  maxLength:"5000" doc:"Of the company, for itself"`
	Erased bool                `json:"-"` // the buyer is forgotten: nothing can be sealed any more
}

// Decide changes what is named and differs. Whether notes differ cannot be told: they are sealed.
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
		return nil, fault.New(fault.Conflict, "The buyer was erased: notes can no longer be kept")
	case sealed.State == patch.Given, sealed.State == patch.Null && !s.Notes.IsZero():
		events = append(events, NotesWritten{Notes: sealed.Value})
	}
	return events, nil
}
