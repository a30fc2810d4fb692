// Package orderdraft is a draft of client orders that a parser read from a chat message. Staff review it and convert it.
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

// Kind registers the events of streams orderdraft-<number>. Stored names are permanent.
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

// SenderKind registers the events of streams ordersender-<keyed hash>. The hash is of the sender's phone, or of the
// network's user id.
var SenderKind = event.NewKind("ordersender",
	event.Of[SenderRegistered]("OrderSenderMet", 1),
	event.Of[SenderErased]("OrderSenderErased", 1),
).Sealing(Senders)

// Senders are the data subjects who send orders. One key per sender seals the phone, the messages and the names in all
// drafts.
const Senders event.SubjectType = "ordersender"

// Entries is the series of entry ids.
const Entries = "orderdraftentry"

// Errors that commands return.
var (
	ErrNotFound = fault.New(fault.NotFound, "Order draft not found") // also returned to callers without access to the draft
	ErrNoEntry  = fault.New(fault.NotFound, "Order draft entry not found")
	ErrEmpty    = fault.New(fault.Conflict, "Order draft has no entries")
	errNotReady = fault.New(fault.Conflict, "Order draft is not ready")
)

// The parsers of an entry.
const (
	Rules = "rules" // the parser without a model
	Model = "model"
	staff = "staff"
)

// Entry is one item of a draft. Its names are as written by the sender. Unknown fields are nil.
type Entry struct {
	ID         int64          `json:"id"`
	Item       event.Personal `json:"item_name"`
	Weight     *unit.Grams    `json:"weight"`
	Quantity   *int64         `json:"quantity"`
	ClientID   *int64         `json:"client_id"`
	Client     event.Personal `json:"client_name"` // as written; with an id, the client's name
	Slip       *string        `json:"slip_number"`
	Parser     string         `json:"parser"`
	Confidence unit.Share     `json:"confidence"`
	Proposals  []Proposal     `json:"client_proposals"` // sorted by descending similarity
}

// Proposal is a possible client of an entry.
type Proposal struct {
	ClientID   int64      `json:"client_id" doc:"ID of the client"`
	Name       string     `json:"name" doc:"Name of the client"`
	Confidence unit.Share `json:"confidence" doc:"Similarity of the names, from 0 to 1"`
}

// State is the state that decisions, replies and responses require.
type State struct {
	Sender    string // empty: the draft does not exist
	Phone     event.Personal
	PhoneText event.Personal // unreadable phone as given; zero: none
	Raw       event.Personal
	Media     event.Personal
	Unused    event.Personal
	Cut       bool
	Details   Details
	Entries   []Entry
	Reply     bool      // a confirmation is to be sent
	Replied   bool      // the confirmation was sent or cannot be sent
	Orders    []Ordered // made from the draft
	Deleted   bool
}

// Open reports whether the draft awaits its review.
func (s State) Open() bool { return s.Sender != "" && s.Orders == nil && !s.Deleted }

// Details are the fields of the whole order that staff enter.
type Details struct {
	Client   *int64     `json:"client_id" doc:"ID of the client"`
	Date     *unit.Date `json:"date" doc:"Date of the order"`
	Delivery *unit.Date `json:"delivery_date" doc:"Promised date of delivery"`
	Notes    *book.Text `json:"notes" doc:"Notes"`
}

// Ordered is an order made from a draft.
type Ordered struct {
	ID int64 `json:"id"`
	order.Order
}

// Received records a new draft.
type Received struct {
	Sender  string         `json:"sender"` // keyed hash of the phone
	Phone   event.Personal `json:"phone_number,omitzero"`
	Raw     event.Personal `json:"raw_message,omitzero"`
	Media   event.Personal `json:"media,omitzero"`    // JSON: the attachments of the message
	Unused  event.Personal `json:"warnings,omitzero"` // JSON: unused parts of the message
	Entries []Entry        `json:"entries"`
	Cut     bool           `json:"cut,omitempty"` // the message has more entries
	Reply   bool           `json:"reply,omitempty"`
}

// Replied records the outcome of sending the confirmation: sent, kept if no gateway is configured, failed or unknown.
type Replied struct {
	Status string `json:"status"`
	Text   string `json:"text"`
	ID     string `json:"gateway_id,omitempty"`
}

// Edited records the changed fields.
type Edited struct {
	Client     patch.Field[int64]          `json:"client_id,omitzero"`
	ClientName event.Personal              `json:"client_name,omitzero"` // name of a given client; entries without a client get both fields
	Date       patch.Field[unit.Date]      `json:"date,omitzero"`
	Delivery   patch.Field[unit.Date]      `json:"delivery_date,omitzero"`
	Notes      patch.Field[book.Text]      `json:"notes,omitzero"`
	Phone      patch.Field[event.Personal] `json:"phone_number,omitzero"` // digits
	PhoneText  event.Personal              `json:"phone_text,omitzero"`   // unreadable phone as given; the phone is null
}

// EntryAdded records a new entry.
type EntryAdded struct {
	Entry Entry `json:"entry"`
}

// EntryEdited records the changed fields of an entry.
type EntryEdited struct {
	ID       int64                       `json:"id"`
	Item     patch.Field[event.Personal] `json:"item_name,omitzero"`
	Weight   patch.Field[unit.Grams]     `json:"weight,omitzero"`
	Quantity patch.Field[int64]          `json:"quantity,omitzero"`
	ClientID patch.Field[int64]          `json:"client_id,omitzero"`
	Client   patch.Field[event.Personal] `json:"client_name,omitzero"`
	Slip     patch.Field[string]         `json:"slip_number,omitzero"`
}

// EntryDeleted records the deletion of an entry.
type EntryDeleted struct {
	ID int64 `json:"id"`
}

// SlipsAssigned records slip numbers of entries.
type SlipsAssigned struct {
	Slips []Assigned `json:"slips"`
}

// Assigned is the slip number of an entry.
type Assigned struct {
	ID   int64  `json:"id"`
	Slip string `json:"slip_number"`
}

// Converted records the conversion of the draft. The same transaction adds its client orders.
type Converted struct {
	Orders []Ordered `json:"orders"`
}

// Deleted records the deletion of the draft.
type Deleted struct{}

// SenderRegistered records the phone of a network's user. Later messages may name only the user (CONTRACT.md 0.9).
type SenderRegistered struct {
	Sender string         `json:"sender"` // keyed hash of the phone
	Phone  event.Personal `json:"phone_number"`
}

// SenderErased records that a sender's data is to be erased.
type SenderErased struct{}

// Evolve creates the draft.
func (e Received) Evolve(State) State {
	return State{Sender: e.Sender, Phone: e.Phone, Raw: e.Raw, Media: e.Media, Unused: e.Unused, Cut: e.Cut, Entries: e.Entries,
		Reply: e.Reply}
}

// Evolve marks the draft as replied.
func (Replied) Evolve(s State) State { s.Replied = true; return s }

// Evolve sets the changed fields.
func (e Edited) Evolve(s State) State {
	d := &s.Details
	d.Client, d.Date, d.Delivery, d.Notes = e.Client.Of(d.Client), e.Date.Of(d.Date), e.Delivery.Of(d.Delivery), e.Notes.Of(d.Notes)
	if e.Phone.Present() {
		s.Phone, s.PhoneText = e.Phone.Value, e.PhoneText
	}
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

// Evolve sets the changed fields.
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

// Evolve removes the entry.
func (e EntryDeleted) Evolve(s State) State {
	s.Entries = slices.DeleteFunc(slices.Clone(s.Entries), func(entry Entry) bool { return entry.ID == e.ID })
	return s
}

// Evolve sets the slip numbers.
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

// Evolve stores the orders. A retry of the request returns them.
func (e Converted) Evolve(s State) State { s.Orders = e.Orders; return s }

// Evolve marks the draft as deleted.
func (Deleted) Evolve(s State) State { s.Deleted = true; return s }

// Sender is the state of a sender.
type Sender struct {
	Erased bool
	Is     string // for a user of the network: the sender with the user's phone; empty: unknown
	Phone  event.Personal
}

// Evolve sets the newest phone.
func (e SenderRegistered) Evolve(s Sender) Sender { s.Is, s.Phone = e.Sender, e.Phone; return s }

// Evolve marks the sender as erased.
func (SenderErased) Evolve(Sender) Sender { return Sender{Erased: true} }

// Erases implements [event.ErasureTrigger].
func (SenderErased) Erases(id string) event.Erasure { return event.Erasure{Subject: Senders.Of(id)} }
