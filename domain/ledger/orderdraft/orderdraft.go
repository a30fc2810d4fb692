// Package orderdraft is an order that somebody wrote in a chat, as a parser has read it, until staff turn it into client orders.
package orderdraft

import (
	"fmt"
	"strings"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/ledger/ordertext"
	"bahi/domain/unit"
)

// Kind names what a stream orderdraft-<number> holds. A name is for ever: old logs have it.
var Kind = event.NewKind("orderdraft",
	event.Of[Received]("OrderDraftReceived", 1),
	event.Of[Replied]("OrderDraftReplied", 1),
	event.Of[Deleted]("OrderDraftDeleted", 1),
).Sealing(Senders)

// SenderKind names what a stream ordersender-<keyed hash of the phone> holds.
var SenderKind = event.NewKind("ordersender",
	event.Of[SenderErased]("OrderSenderErased", 1),
).Sealing(Senders)

// Senders are those who write orders. Each has one key for the phone and the messages of all drafts.
const Senders event.Subjects = "ordersender"

// The series of ids.
const Entries = "orderdraftentry"

// ErrNotFound also answers those who may not know that the draft exists.
var ErrNotFound = fault.New(fault.NotFound, "Order draft not found")

// Rules is the parser without a model.
const Rules = "rules"

// Entry is one item of a draft. What is unknown is nil.
type Entry struct {
	ID         int64        `json:"id"`
	Item       string       `json:"item_name"`
	Weight     *unit.Grams  `json:"weight"`
	Quantity   *int64       `json:"quantity"`
	Client     *string      `json:"client_name"`
	Slip       *string      `json:"slip_number"`
	Parser     string       `json:"parser"`
	Confidence unit.Percent `json:"confidence"` // in percent
}

// State is what decisions and replies need.
type State struct {
	Sender  string // empty: there was no draft
	Phone   event.Personal
	Entries []Entry
	Reply   bool // the sender is to get one
	Replied bool
	Deleted bool
}

// Received begins a draft.
type Received struct {
	Sender  string         `json:"sender"` // keyed hash of the phone
	Phone   event.Personal `json:"phone_number,omitzero"`
	Raw     event.Personal `json:"raw_message,omitzero"`
	Media   event.Personal `json:"media,omitzero"` // JSON: what the message refers to
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

// Deleted ends a draft.
type Deleted struct{}

// SenderErased records that a sender is to be forgotten.
type SenderErased struct{}

// Evolve begins the draft.
func (e Received) Evolve(State) State {
	return State{Sender: e.Sender, Phone: e.Phone, Entries: e.Entries, Reply: e.Reply}
}

// Evolve notes the reply.
func (Replied) Evolve(s State) State { s.Replied = true; return s }

// Evolve ends the draft.
func (Deleted) Evolve(s State) State { s.Deleted = true; return s }

// Sender is a sender's state.
type Sender struct{ Erased bool }

// Evolve ends the sender.
func (SenderErased) Evolve(Sender) Sender { return Sender{Erased: true} }

// Ends implements [event.Ending].
func (SenderErased) Ends(id string) event.End { return event.End{Subject: Senders.Of(id)} }

// Receive makes a draft of a message.
type Receive struct {
	Sender string
	Phone  string // digits
	Raw    string
	Media  string
	Read   ordertext.Order
	First  int64 // id of the first entry; the others follow
	Reply  bool
}

// Decide makes the draft, also without an entry, so that staff see the message.
func (c Receive) Decide(State) ([]event.Event[State], error) {
	e := Received{
		Sender: c.Sender, Phone: Senders.Personal(c.Sender, c.Phone), Raw: Senders.Personal(c.Sender, c.Raw), Media: Senders.Personal(c.Sender, c.Media),
		Entries: make([]Entry, len(c.Read.Entries)), Cut: c.Read.Cut, Reply: c.Reply,
	}
	for i, read := range c.Read.Entries {
		e.Entries[i] = Entry{
			ID: c.First + int64(i), Item: read.Item, Weight: known(read.Weight), Quantity: known(read.Quantity), Client: known(read.Client),
			Slip: known(c.Read.Slip), Parser: Rules, Confidence: unit.Percent(read.Confidence) * unit.Whole / 100,
		}
	}
	return []event.Event[State]{e}, nil
}

func known[T comparable](value T) *T {
	var none T
	if value == none {
		return nil
	}
	return &value
}

// NoteReply records what became of the confirmation.
type NoteReply struct {
	Status, Text, ID string
}

// Decide records the first outcome.
func (c NoteReply) Decide(s State) ([]event.Event[State], error) {
	if s.Sender == "" {
		return nil, ErrNotFound
	}
	if s.Replied {
		return nil, nil
	}
	return []event.Event[State]{Replied(c)}, nil
}

// Delete ends a draft.
type Delete struct{}

// Decide refuses a draft that is not there.
func (Delete) Decide(s State) ([]event.Event[State], error) {
	if s.Sender == "" || s.Deleted {
		return nil, ErrNotFound
	}
	return []event.Event[State]{Deleted{}}, nil
}

// EraseSender forgets a sender: the phone and the messages of all drafts.
type EraseSender struct{}

// Decide erases a sender once.
func (EraseSender) Decide(s Sender) ([]event.Event[Sender], error) {
	if s.Erased {
		return nil, nil
	}
	return []event.Event[Sender]{SenderErased{}}, nil
}

// Confirmation returns the text that a sender gets: how many items, their weight, the draft's number; no prices.
func Confirmation(draft string, entries []Entry) string {
	var weight unit.Grams
	for _, e := range entries {
		if e.Weight != nil {
			weight += *e.Weight
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Order draft %s received", draft)
	switch len(entries) {
	case 0:
	case 1:
		b.WriteString(": 1 item")
	default:
		fmt.Fprintf(&b, ": %d items", len(entries))
	}
	if weight > 0 {
		fmt.Fprintf(&b, ", %s g", weight)
	}
	b.WriteString(". Our staff will confirm it.")
	return b.String()
}
