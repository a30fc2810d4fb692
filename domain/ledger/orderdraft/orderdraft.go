// Package orderdraft is an order that somebody wrote in a chat, as a parser has read it, until staff turn it into client orders.
package orderdraft

import (
	"slices"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/order"
	"bahi/domain/patch"
	"bahi/domain/unit"
)

// Kind names what a stream orderdraft-<number> holds. A name is for ever: old logs have it.
var Kind = event.NewKind("orderdraft",
	event.Of[Received]("OrderDraftReceived", 1),
	event.Of[Replied]("OrderDraftReplied", 1),
	event.Of[Edited]("OrderDraftEdited", 1),
	event.Of[EntryAdded]("OrderDraftEntryAdded", 1),
	event.Of[EntryEdited]("OrderDraftEntryEdited", 1),
	event.Of[EntryDeleted]("OrderDraftEntryDeleted", 1),
	event.Of[SlipsAssigned]("OrderDraftSlipsAssigned", 1),
	event.Of[Converted]("OrderDraftConverted", 1),
	event.Of[Deleted]("OrderDraftDeleted", 1),
).Sealing(Senders)

// SenderKind names what a stream ordersender-<keyed hash of the phone, or of the network's user id> holds.
var SenderKind = event.NewKind("ordersender",
	event.Of[SenderRegistered]("OrderSenderMet", 1),
	event.Of[SenderErased]("OrderSenderErased", 1),
).Sealing(Senders)

// Senders are those who write orders. Each has one key for the phone, the messages and the names in the entries of all drafts.
const Senders event.SubjectType = "ordersender"

// Entries is the series of ids.
const Entries = "orderdraftentry"

// The refusals of drafts.
var (
	ErrNotFound = fault.New(fault.NotFound, "Order draft not found") // also for those who may not know that the draft exists
	ErrNoEntry  = fault.New(fault.NotFound, "Order draft entry not found")
	ErrEmpty    = fault.New(fault.Conflict, "Order draft has no entries")
	ErrNotReady = fault.New(fault.Conflict, "Order draft is not ready")
)

// Who read an entry.
const (
	Rules = "rules" // the parser without a model
	Model = "model"
	Staff = "staff"
)

// Entry is one item of a draft. Its names are the sender's words. What is unknown is nil.
type Entry struct {
	ID         int64          `json:"id"`
	Item       event.Personal `json:"item_name"`
	Weight     *unit.Grams    `json:"weight"`
	Quantity   *int64         `json:"quantity"`
	ClientID   *int64         `json:"client_id"`
	Client     event.Personal `json:"client_name"` // as it was written; with an id, the client's name
	Slip       *string        `json:"slip_number"`
	Parser     string         `json:"parser"`
	Confidence unit.Share     `json:"confidence"`
	Proposals  []Proposal     `json:"client_proposals"` // the likest first
}

// Proposal is a client whom an entry may be for.
type Proposal struct {
	ClientID   int64      `json:"client_id" doc:"ID of the client"`
	Name       string     `json:"name" doc:"Name of the client"`
	Confidence unit.Share `json:"confidence" doc:"How alike the names are, from 0 to 1"`
}

// State is what decisions, replies and answers need.
type State struct {
	Sender  string // empty: there was no draft
	Phone   event.Personal
	Raw     event.Personal
	Media   event.Personal
	Unused  event.Personal
	Cut     bool
	Details Details
	Entries []Entry
	Reply   bool      // the sender is to get one
	Replied bool      // the sender got one, or cannot
	Orders  []Ordered // that the draft was converted into
	Deleted bool
}

// Open reports whether the draft waits for its review.
func (s State) Open() bool { return s.Sender != "" && s.Orders == nil && !s.Deleted }

// Details are what staff know of the whole order.
type Details struct {
	Client   *int64     `json:"client_id" doc:"ID of the client"`
	Date     *unit.Date `json:"date" doc:"Date of the order"`
	Delivery *unit.Date `json:"delivery_date" doc:"Promised date of delivery"`
	Notes    *book.Text `json:"notes" doc:"Notes"`
}

// Ordered is an order that a draft was converted into.
type Ordered struct {
	ID int64 `json:"id"`
	order.Order
}

// Received begins a draft.
type Received struct {
	Sender  string         `json:"sender"` // keyed hash of the phone
	Phone   event.Personal `json:"phone_number,omitzero"`
	Raw     event.Personal `json:"raw_message,omitzero"`
	Media   event.Personal `json:"media,omitzero"`    // JSON: what the message refers to
	Unused  event.Personal `json:"warnings,omitzero"` // JSON: what of the message was not used
	Entries []Entry        `json:"entries"`
	Cut     bool           `json:"cut,omitempty"` // the message has more entries
	Reply   bool           `json:"reply,omitempty"`
}

// Replied records what became of the confirmation: sent, kept where no gateway is configured, failed or unknown.
type Replied struct {
	Status string `json:"status"`
	Text   string `json:"text"`
	ID     string `json:"gateway_id,omitempty"`
}

// Edited changes what is named.
type Edited struct {
	Client     patch.Field[int64]          `json:"client_id,omitzero"`
	ClientName event.Personal              `json:"client_name,omitzero"` // of a client who is given: entries without a client get both
	Date       patch.Field[unit.Date]      `json:"date,omitzero"`
	Delivery   patch.Field[unit.Date]      `json:"delivery_date,omitzero"`
	Notes      patch.Field[book.Text]      `json:"notes,omitzero"`
	Phone      patch.Field[event.Personal] `json:"phone_number,omitzero"` // digits
}

// EntryAdded adds an entry.
type EntryAdded struct {
	Entry Entry `json:"entry"`
}

// EntryEdited changes what is named of an entry.
type EntryEdited struct {
	ID       int64                       `json:"id"`
	Item     patch.Field[event.Personal] `json:"item_name,omitzero"`
	Weight   patch.Field[unit.Grams]     `json:"weight,omitzero"`
	Quantity patch.Field[int64]          `json:"quantity,omitzero"`
	ClientID patch.Field[int64]          `json:"client_id,omitzero"`
	Client   patch.Field[event.Personal] `json:"client_name,omitzero"`
	Slip     patch.Field[string]         `json:"slip_number,omitzero"`
}

// EntryDeleted takes an entry away.
type EntryDeleted struct {
	ID int64 `json:"id"`
}

// SlipsAssigned gives entries slip numbers.
type SlipsAssigned struct {
	Slips []Assigned `json:"slips"`
}

// Assigned is the slip number of an entry.
type Assigned struct {
	ID   int64  `json:"id"`
	Slip string `json:"slip_number"`
}

// Converted ends the draft. The client orders that were made of it begin in the same transaction.
type Converted struct {
	Orders []Ordered `json:"orders"`
}

// Deleted ends a draft.
type Deleted struct{}

// SenderRegistered records with which phone a user of the network writes, since later messages may name the user alone (CONTRACT.md 0.9).
type SenderRegistered struct {
	Sender string         `json:"sender"` // keyed hash of the phone
	Phone  event.Personal `json:"phone_number"`
}

// SenderErased records that a sender is to be forgotten.
type SenderErased struct{}

// Evolve begins the draft.
func (e Received) Evolve(State) State {
	return State{Sender: e.Sender, Phone: e.Phone, Raw: e.Raw, Media: e.Media, Unused: e.Unused, Cut: e.Cut, Entries: e.Entries,
		Reply: e.Reply}
}

// Evolve notes the reply.
func (Replied) Evolve(s State) State { s.Replied = true; return s }

// Evolve changes what is named.
func (e Edited) Evolve(s State) State {
	d := &s.Details
	d.Client, d.Date, d.Delivery, d.Notes = e.Client.Of(d.Client), e.Date.Of(d.Date), e.Delivery.Of(d.Delivery), e.Notes.Of(d.Notes)
	s.Phone = e.Phone.Or(s.Phone)
	if e.Client.State == patch.Given {
		s.Entries = slices.Clone(s.Entries)
		for i := range s.Entries {
			if s.Entries[i].ClientID == nil {
				s.Entries[i].ClientID, s.Entries[i].Client = new(e.Client.Value), e.ClientName
			}
		}
	}
	return s
}

// Evolve adds the entry.
func (e EntryAdded) Evolve(s State) State {
	s.Entries = append(slices.Clip(s.Entries), e.Entry)
	return s
}

// Evolve changes what is named.
func (e EntryEdited) Evolve(s State) State {
	s.Entries = slices.Clone(s.Entries)
	for i := range s.Entries {
		if s.Entries[i].ID == e.ID {
			s.Entries[i] = e.of(s.Entries[i])
		}
	}
	return s
}

// of returns the entry after the change.
func (e EntryEdited) of(old Entry) Entry {
	old.Item, old.Weight, old.Quantity = e.Item.Or(old.Item), e.Weight.Of(old.Weight), e.Quantity.Of(old.Quantity)
	old.ClientID, old.Client, old.Slip = e.ClientID.Of(old.ClientID), e.Client.Or(old.Client), e.Slip.Of(old.Slip)
	return old
}

// Evolve takes the entry away.
func (e EntryDeleted) Evolve(s State) State {
	s.Entries = slices.DeleteFunc(slices.Clone(s.Entries), func(entry Entry) bool { return entry.ID == e.ID })
	return s
}

// Evolve gives the slip numbers.
func (e SlipsAssigned) Evolve(s State) State {
	s.Entries = slices.Clone(s.Entries)
	for _, a := range e.Slips {
		for i := range s.Entries {
			if s.Entries[i].ID == a.ID {
				s.Entries[i].Slip = new(a.Slip)
			}
		}
	}
	return s
}

// Evolve keeps the orders, for repetitions of the request.
func (e Converted) Evolve(s State) State { s.Orders = e.Orders; return s }

// Evolve ends the draft.
func (Deleted) Evolve(s State) State { s.Deleted = true; return s }

// Sender is a sender's state.
type Sender struct {
	Erased bool
	Is     string // of a user: the sender with the phone; empty: unknown
	Phone  event.Personal
}

// Evolve keeps the newest phone.
func (e SenderRegistered) Evolve(s Sender) Sender { s.Is, s.Phone = e.Sender, e.Phone; return s }

// Evolve ends the sender.
func (SenderErased) Evolve(Sender) Sender { return Sender{Erased: true} }

// Erases implements [event.ErasureTrigger].
func (SenderErased) Erases(id string) event.Erasure { return event.Erasure{Subject: Senders.Of(id)} }
