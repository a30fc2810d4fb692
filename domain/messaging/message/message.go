// Package message is a message to or from a contact. Each is a stream of its own; a conversation is a projection. What it says is sealed
// with the contact's key, and gone with the contact.
package message

import (
	"cmp"
	"strconv"
	"time"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/messaging/network"
)

// Kind registers the events of streams message-<number>. Stored names are permanent.
var Kind = event.NewKind("message",
	event.Of[Queued]("MessageQueued", 1),
	event.Of[Accepted]("MessageAccepted", 1),
	event.Of[Failed]("MessageFailed", 1),
	event.Of[Requeued]("MessageRequeued", 1),
	event.Of[Received]("MessageReceived", 1),
	event.Of[Reported]("MessageReported", 1),
	event.Of[Skipped]("MessagePassedOver", 1),
	event.Of[Identified]("MessageIdentified", 1),
	event.Of[Edited]("MessageRevised", 1),
	event.Of[Revoked]("MessageRevoked", 1),
	event.Of[MarkedRead]("MessageSeen", 1),
	event.Of[FileStored]("MessageFiled", 1),
).Sealing(contacts)

// contacts are whose values messages have sealed.
const contacts event.SubjectType = "messagingcontact"

// The statuses, in the order of their ranks (CONTRACT.md N3). A message that came in is read or not by people, and has none of them.
const (
	Waiting   = "queued"
	Sent      = "sent"
	NotSent   = "failed"
	Delivered = "delivered"
	Read      = "read"
	Inbound   = "received"
	Unwanted  = "passed over"
)

var ranks = map[string]int{Waiting: 1, Sent: 2, NotSent: 3, Delivered: 4, Read: 5}

// Name returns the id of a message in requests and answers.
func Name(stream string) string { return "msg_" + stream }

// State is what decisions and answers need.
type State struct {
	Channel    int64
	Contact    int64
	To         event.Personal
	Status     string // empty: there is no message
	ProviderID string
	NetworkID  string         // where the network has another id than the one who took it; empty: none is known
	Ref        event.Personal // of a file that came with it and is not kept yet, as its network names it
	File       string         // key of its file, that is kept
	Seen       bool           // by people of the workspace
	At         network.Moment // when it was sent, of one that came in
	Changed    network.Moment // when the contact changed it last; zero: never
	Reason     network.Reason // of the last failure; empty: none
	Code       int
	Said       event.Personal // of one that came in
	Phone      event.Personal // of its sender, as the network proves it
	Revoked    bool           // by the contact
	Doubts     int            // how often it was sent again though it may have been sent
}

// Subject returns whose key seals what the message says.
func (s State) Subject() string { return contacts.Of(strconv.FormatInt(s.Contact, 10)) }

// Content is what a message says.
type Content struct {
	Type  string         `json:"type"` // text, image or template; of one that came in also others of the network's
	Text  event.Personal `json:"text,omitzero"`
	Image event.Personal `json:"image,omitzero"` // URL
	Media *Media         `json:"media,omitempty"`
}

// Media is a file that came with a message, as its network names it.
type Media struct {
	Ref         event.Personal `json:"ref,omitzero"` // the network's id of it, or its URL
	ContentType string         `json:"content_type,omitempty"`
}

// Queued records a message that is about to be sent.
type Queued struct {
	Content

	Channel int64          `json:"channel"`
	Contact int64          `json:"contact"`
	To      event.Personal `json:"to"`

	Template int64 `json:"template,omitempty"` // it is of; 0: none
}

// Accepted records that the network took the message, under an id of its own.
type Accepted struct {
	ProviderID string `json:"provider_id"`
}

// Failed records that the network did not take the message, or that nobody knows whether it did: then it stays queued.
type Failed struct {
	Reason  network.Reason `json:"reason"`
	Code    int            `json:"code,omitempty"`
	Title   event.Personal `json:"title,omitzero"` // in the network's words, which may name the person
	Details event.Personal `json:"details,omitzero"`
}

// Requeued records that a message which was not sent is sent again.
type Requeued struct{}

// Received records a message that came in.
type Received struct {
	Content

	Channel    int64     `json:"channel"`
	Contact    int64     `json:"contact"`
	ProviderID string    `json:"provider_id"`
	SentAt     time.Time `json:"sent_at"` // by the network, never after it came in
	ArrivedAt  time.Time `json:"arrived_at,omitzero"`

	// the network's id of the message to which it is a reaction; one without text takes back the one before
	Reacts string `json:"reacts,omitempty"`

	Phone event.Personal `json:"phone,omitzero"` // of the sender, as the network proves it; zero: it names none

	Code    int            `json:"code,omitempty"` // why the network does not pass it on; 0: it does
	Title   event.Personal `json:"title,omitzero"` // in the network's words
	Details event.Personal `json:"details,omitzero"`
}

// Reported records what the network says became of the message.
type Reported struct {
	Status  string         `json:"status"`
	At      time.Time      `json:"at,omitzero"` // as the network tells
	Code    int            `json:"code,omitempty"`
	Title   event.Personal `json:"title,omitzero"` // of a failure, in the network's words
	Details event.Personal `json:"details,omitzero"`
}

// Identified records a further id under which receipts tell of the message: the network's, beside that of an aggregator.
type Identified struct {
	NetworkID string `json:"network_id"`
}

// Edited records that the contact has changed what a message says.
type Edited struct {
	Text event.Personal `json:"text"`
	network.Moment
}

// Revoked records that the contact has taken back a message.
type Revoked struct{ network.Moment }

// MarkedRead records that people of the workspace have read the conversation up to this message.
type MarkedRead struct {
	Contact int64     `json:"contact"`
	At      time.Time `json:"at"` // the message's
}

// Skipped records that a campaign does not write to a contact after all.
type Skipped struct {
	Contact int64 `json:"contact"`
}

// Evolve keeps that there is no message.
func (Skipped) Evolve(State) State { return State{Status: Unwanted} }

// Evolve begins a message that goes out.
func (e Queued) Evolve(State) State {
	return State{Channel: e.Channel, Contact: e.Contact, To: e.To, Status: Waiting}
}

// Evolve keeps the network's id. A receipt may have come before.
func (e Accepted) Evolve(s State) State {
	s.ProviderID = e.ProviderID
	if s.Status == Waiting {
		s.Status, s.Reason, s.Code = Sent, "", 0
	}
	return s
}

// Evolve keeps the failure.
func (e Failed) Evolve(s State) State {
	s.Reason, s.Code = e.Reason, e.Code
	if e.Reason != network.Unknown {
		s.Status = NotSent
	}
	return s
}

// Evolve queues it again.
func (Requeued) Evolve(s State) State {
	if s.Status == Waiting {
		s.Doubts++
	}
	s.Status, s.Reason, s.Code = Waiting, "", 0
	return s
}

// Evolve begins a message that came in.
func (e Received) Evolve(State) State {
	s := State{Channel: e.Channel, Contact: e.Contact, ProviderID: e.ProviderID, Status: Inbound,
		At: network.Moment{At: e.SentAt, ArrivedAt: e.ArrivedAt}, Said: e.Text, Phone: e.Phone}
	if e.Media != nil {
		s.Ref = e.Media.Ref
	}
	return s
}

// Evolve takes the message on.
func (e Reported) Evolve(s State) State {
	s.Status, s.Reason, s.Code = e.Status, "", 0
	if e.Status == NotSent {
		s.Reason, s.Code = network.Recipient, e.Code
	}
	return s
}

// Evolve keeps the id.
func (e Identified) Evolve(s State) State {
	s.NetworkID = e.NetworkID
	return s
}

// Evolve keeps when.
func (e Edited) Evolve(s State) State {
	s.Changed = e.Moment
	return s
}

// Evolve forgets what it said, and its file.
func (Revoked) Evolve(s State) State {
	s.Revoked, s.Said, s.Ref = true, event.Personal{}, event.Personal{}
	return s
}

// Evolve notes it.
func (MarkedRead) Evolve(s State) State {
	s.Seen = true
	return s
}

// Failure returns why the message is not known to be sent, nil if it is.
func (s State) Failure() *network.Failure {
	switch {
	case ranks[s.Status] >= ranks[Delivered], s.Status == Sent:
		return nil
	default: // without a reason, the process ended between the call and its record
		return &network.Failure{Reason: cmp.Or(s.Reason, network.Unknown), Code: s.Code}
	}
}

// Queue begins a message to a contact.
type Queue struct {
	Draft

	Contact int64
}

// Decide seals what it says.
func (c Queue) Decide(State) ([]event.Event[State], error) {
	said := content(c.Contact, c.Text, c.Image)
	if c.Template != 0 {
		said.Type = "template"
	}
	events := []event.Event[State]{Queued{Content: said, Channel: c.Channel, Contact: c.Contact, To: sealed(c.Contact, c.To),
		Template: c.Template}}
	if p := c.Picture; p != nil {
		events = append(events, FileStored{Key: p.Key, ContentType: p.Type, Size: int64(len(p.Bytes))})
	}
	return events, nil
}

func sealed(contact int64, text string) event.Personal {
	return contacts.Personal(strconv.FormatInt(contact, 10), text)
}

func content(contact int64, text, image string) Content {
	c := Content{Type: "text", Text: sealed(contact, text), Image: sealed(contact, image)}
	if image != "" {
		c.Type = "image"
	}
	return c
}

// Requeue sends a message again that was not sent.
type Requeue struct{}

// errUnderWay refuses to send what may have been sent.
var errUnderWay = (&network.Failure{Reason: network.Unknown}).Fault()

// Decide refuses what may have been sent.
func (Requeue) Decide(s State) ([]event.Event[State], error) {
	if s.Status != NotSent || !s.Reason.Retryable() {
		return nil, errUnderWay
	}
	return []event.Event[State]{Requeued{}}, nil
}

// Resend sends a campaign's message again: one that the network refused for a reason of ours, or one of which nothing was heard for long.
// The latter is sent again once, and then given up (CONTRACT.md N1).
type Resend struct {
	Contact  int64
	Unwanted bool // the contact must not be written to any more
	Refused  bool // a person wants what the network has refused to be sent again
	Mute     bool // the network's receipts do not repeat our ids: of what was sent twice, one would never be known
}

// Decide passes over a message that is settled.
func (c Resend) Decide(s State) ([]event.Event[State], error) {
	free, doubtful := s.Status == NotSent && (s.Reason.Stops() || c.Refused && s.ProviderID == "" && s.Reason != network.Lost),
		s.Status == Waiting
	switch {
	case free && c.Unwanted:
		return []event.Event[State]{Skipped{Contact: c.Contact}}, nil
	case doubtful && (c.Unwanted || c.Mute || s.Doubts > 0):
		return []event.Event[State]{Failed{Reason: network.Lost}}, nil
	case free, doubtful:
		return []event.Event[State]{Requeued{}}, nil
	}
	return nil, nil
}

// Skip begins a message of a campaign that is not written.
type Skip struct{ Contact int64 }

// Decide records it.
func (c Skip) Decide(State) ([]event.Event[State], error) {
	return []event.Event[State]{Skipped(c)}, nil
}

// RecordSendResult notes what the network answered.
type RecordSendResult struct {
	Contact    int64
	ProviderID string
	Failure    *network.Failure // nil: it took the message
}

// Decide notes it. A failure after a receipt changes nothing: the receipt knows better.
func (c RecordSendResult) Decide(s State) ([]event.Event[State], error) {
	f := c.Failure
	switch {
	case f == nil:
		return []event.Event[State]{Accepted{ProviderID: c.ProviderID}}, nil
	case s.Status != Waiting:
		return nil, nil
	}
	return []event.Event[State]{Failed{Reason: f.Reason, Code: f.Code, Title: sealed(c.Contact, f.Title),
		Details: sealed(c.Contact, f.Details)}}, nil
}

// Receipt notes what the network says became of a message.
type Receipt struct {
	Status         string
	Code           int
	Title, Details string
	NetworkID      string // under which the receipt names the message; empty: none
	At             time.Time
}

// synonyms are statuses that networks have beside ours.
var synonyms = map[string]string{"enqueued": Waiting, "played": Read}

// Decide takes a message on only: late, repeated and reordered receipts change nothing, nor do statuses without a rank.
func (c Receipt) Decide(s State) (events []event.Event[State], _ error) {
	if s.Reason == network.Lost { // it is found
		s.Status = Waiting
	}
	if ranks[s.Status] == 0 {
		return nil, nil
	}
	if id := c.NetworkID; id != "" && id != s.ProviderID && s.NetworkID == "" {
		events = append(events, Identified{NetworkID: id})
	}
	status := cmp.Or(synonyms[c.Status], c.Status)
	if ranks[status] > ranks[s.Status] {
		events = append(events, Reported{Status: status, At: c.At, Code: c.Code, Title: sealed(s.Contact, c.Title),
			Details: sealed(s.Contact, c.Details)})
	}
	return events, nil
}

// SimulateReceipts notes what becomes of a message in the sandbox: it is delivered, and read.
type SimulateReceipts struct{}

// Decide passes over what has become of the message already.
func (SimulateReceipts) Decide(s State) (all []event.Event[State], err error) {
	for _, status := range []string{Delivered, Read} {
		events, err := Receipt{Status: status}.Decide(s)
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			all, s = append(all, e), e.Evolve(s)
		}
	}
	return all, nil
}

// MarkRead notes that people have read up to a message.
type MarkRead struct{ Contact int64 } // whose message it is now

// ErrNotFound also answers those who may not know that the message exists.
var ErrNotFound = fault.New(fault.NotFound, "Message not found")

// Decide passes over a message of ours, and one that was read.
func (c MarkRead) Decide(s State) ([]event.Event[State], error) {
	switch {
	case s.Status == "":
		return nil, ErrNotFound
	case s.Status != Inbound || s.Seen:
		return nil, nil
	}
	return []event.Event[State]{MarkedRead{Contact: c.Contact, At: s.At.At}}, nil
}

// MarkNoneRead is [MarkRead] where nobody has written.
type MarkNoneRead struct{}

// Decide decides nothing.
func (MarkNoneRead) Decide(State) ([]event.Event[State], error) { return nil, nil }

// Edit changes the text of a message that came in.
type Edit struct {
	Text string
	network.Moment
}

// Revoke takes back a message that came in.
type Revoke struct{ network.Moment }

// Decide passes over a message of ours, and one that was taken back.
func (c Revoke) Decide(s State) ([]event.Event[State], error) {
	if s.Status != Inbound || s.Revoked {
		return nil, nil
	}
	return []event.Event[State]{Revoked(c)}, nil
}

// Decide seals the text. A change from before the newest one changes nothing.
func (c Edit) Decide(s State) ([]event.Event[State], error) {
	if s.Status != Inbound || s.Revoked || c.Before(s.Changed) {
		return nil, nil
	}
	return []event.Event[State]{Edited{Text: sealed(s.Contact, c.Text), Moment: c.Moment}}, nil
}

// Receive begins a message that came in.
type Receive struct {
	Draft

	Contact    int64
	Type       string // empty: text or image, by what it has
	Ref        string // the network's id of its file, or its URL; empty: there is none
	RefType    string // of the file
	ProviderID string
	Phone      string // of the sender, as the network proves it; empty: it names none
	SentAt     time.Time
	ArrivedAt  time.Time
	Reacts     string // see [Received]
	Now        time.Time

	Code           int // why the network does not pass it on; 0: it does
	Title, Details string
}

// Decide keeps the network's time, unless that is yet to come.
func (c Receive) Decide(State) ([]event.Event[State], error) {
	at := c.SentAt.UTC()
	if at.After(c.Now) {
		at = c.Now.UTC()
	}
	said := content(c.Contact, c.Text, c.Image)
	said.Type = cmp.Or(c.Type, said.Type)
	if c.Ref != "" {
		said.Media = &Media{Ref: sealed(c.Contact, c.Ref), ContentType: c.RefType}
	}
	return []event.Event[State]{Received{
		Content: said, Channel: c.Channel, Contact: c.Contact, ProviderID: c.ProviderID, SentAt: at, ArrivedAt: c.ArrivedAt.UTC(),
		Reacts: c.Reacts,
		Phone:  sealed(c.Contact, c.Phone),
		Code:   c.Code, Title: sealed(c.Contact, c.Title), Details: sealed(c.Contact, c.Details),
	}}, nil
}
