// Package message is a message to or from a contact. Each message has its own stream. A conversation is a projection. The contact's key
// seals the content and is destroyed with the contact.
package message

import (
	"cmp"
	"strconv"
	"strings"
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
	event.Of[Skipped]("MessageSkipped", 1),
	event.Of[Identified]("MessageIdentified", 1),
	event.Of[Edited]("MessageEdited", 1),
	event.Of[Revoked]("MessageRevoked", 1),
	event.Of[MarkedRead]("MessageMarkedRead", 1),
	event.Of[FileStored]("MessageFileStored", 1),
).Sealing(contacts)

// contacts are the data subjects of messages.
const contacts event.SubjectType = "messagingcontact"

// The statuses of outgoing messages in the order of their ranks (CONTRACT.md N3). Incoming messages are read or unread.
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

// Name returns the id of a message in requests and responses.
func Name(stream string) string { return "msg_" + stream }

// State is the state that decisions and responses require.
type State struct {
	Channel    int64
	Contact    int64
	To         event.Personal
	Status     string // empty: the message does not exist
	ProviderID string
	NetworkID  string         // id at the network if an aggregator has another one; empty: unknown
	Ref        event.Personal // the network's id of the message's file until the file is stored
	File       string         // key of its stored file
	Seen       bool           // read by users of the workspace
	At         network.Moment // when an incoming message was sent
	Changed    network.Moment // when the contact last edited it; zero: never
	Reason     network.Reason // reason of the last failure; empty: none
	Code       int
	Said       event.Personal // text of an incoming message
	Phone      event.Personal // phone of the sender, as the network reports
	Revoked    bool           // the contact deleted it
	Doubts     int            // number of resends after an unknown result
}

// Subject returns the data subject of the content.
func (s State) Subject() string { return contacts.Of(strconv.FormatInt(s.Contact, 10)) }

// Content is the content of a message.
type Content struct {
	Type  string         `json:"type"` // text, image or template; an incoming message may have other types of the network
	Text  event.Personal `json:"text,omitzero"`
	Image event.Personal `json:"image,omitzero"` // URL
	Media *media         `json:"media,omitempty"`
}

// media is the file of an incoming message.
type media struct {
	Ref         event.Personal `json:"ref,omitzero"` // id at the network, or URL
	ContentType string         `json:"content_type,omitempty"`
}

// Queued records a message to send.
type Queued struct {
	Content

	Channel int64          `json:"channel"`
	Contact int64          `json:"contact"`
	To      event.Personal `json:"to"`

	Template int64 `json:"template,omitempty"` // id of its template; 0: none
}

// Accepted records that the network accepted the message, with the network's id.
type Accepted struct {
	ProviderID string `json:"provider_id"`
}

// Failed records that the network refused the message, or that the result is unknown. A message with an unknown result stays queued.
type Failed struct {
	Reason  network.Reason `json:"reason"`
	Code    int            `json:"code,omitempty"`
	Title   event.Personal `json:"title,omitzero"` // text from the network, which may name the person
	Details event.Personal `json:"details,omitzero"`
}

// Requeued records that an unsent message is sent again.
type Requeued struct{}

// Received records an incoming message.
type Received struct {
	Content

	Channel    int64     `json:"channel"`
	Contact    int64     `json:"contact"`
	ProviderID string    `json:"provider_id"`
	SentAt     time.Time `json:"sent_at"` // time by the network, not after its arrival
	ArrivedAt  time.Time `json:"arrived_at,omitzero"`

	// Reacts is the network's id of the message to which this is a reaction. A reaction without text removes the
	// previous one.
	Reacts string `json:"reacts,omitempty"`

	Phone event.Personal `json:"phone,omitzero"` // phone of the sender, as the network reports; zero: unknown

	Code    int            `json:"code,omitempty"` // why the network does not deliver the content; 0: it does
	Title   event.Personal `json:"title,omitzero"` // text from the network
	Details event.Personal `json:"details,omitzero"`
}

// Reported records a delivery receipt.
type Reported struct {
	Status  string         `json:"status"`
	At      time.Time      `json:"at,omitzero"` // time by the network
	Code    int            `json:"code,omitempty"`
	Title   event.Personal `json:"title,omitzero"` // text from the network about a failure
	Details event.Personal `json:"details,omitzero"`
}

// Identified records the network's id of a message if its receipts contain that id instead of the aggregator's.
type Identified struct {
	NetworkID string `json:"network_id"`
}

// Edited records that the contact has edited a message.
type Edited struct {
	Text event.Personal `json:"text"`
	network.Moment
}

// Revoked records that the contact has deleted a message.
type Revoked struct{ network.Moment }

// MarkedRead records that users of the workspace have read the conversation up to this message.
type MarkedRead struct {
	Contact int64     `json:"contact"`
	At      time.Time `json:"at"` // time of the message
}

// Skipped records that a campaign skips a contact.
type Skipped struct {
	Contact int64 `json:"contact"`
}

// Evolve records that no message is sent.
func (Skipped) Evolve(State) State { return State{Status: Unwanted} }

// Evolve creates an outgoing message.
func (e Queued) Evolve(State) State {
	return State{Channel: e.Channel, Contact: e.Contact, To: e.To, Status: Waiting}
}

// Evolve sets the network's id. A receipt may have arrived before.
func (e Accepted) Evolve(s State) State {
	s.ProviderID = e.ProviderID
	if s.Status == Waiting {
		s.Status, s.Reason, s.Code = Sent, "", 0
	}
	return s
}

// Evolve sets the failure.
func (e Failed) Evolve(s State) State {
	s.Reason, s.Code = e.Reason, e.Code
	if e.Reason != network.Unknown {
		s.Status = NotSent
	}
	return s
}

// Evolve queues the message again.
func (Requeued) Evolve(s State) State {
	if s.Status == Waiting {
		s.Doubts++
	}
	s.Status, s.Reason, s.Code = Waiting, "", 0
	return s
}

// Evolve creates an incoming message.
func (e Received) Evolve(State) State {
	s := State{Channel: e.Channel, Contact: e.Contact, ProviderID: e.ProviderID, Status: Inbound,
		At: network.Moment{At: e.SentAt, ArrivedAt: e.ArrivedAt}, Said: e.Text, Phone: e.Phone}
	if e.Media != nil {
		s.Ref = e.Media.Ref
	}
	return s
}

// Evolve advances the status.
func (e Reported) Evolve(s State) State {
	s.Status, s.Reason, s.Code = e.Status, "", 0
	if e.Status == NotSent {
		s.Reason, s.Code = network.Recipient, e.Code
	}
	return s
}

// Evolve sets the id.
func (e Identified) Evolve(s State) State {
	s.NetworkID = e.NetworkID
	return s
}

// Evolve sets the time of the edit.
func (e Edited) Evolve(s State) State {
	s.Changed = e.Moment
	return s
}

// Evolve removes the content and the file.
func (Revoked) Evolve(s State) State {
	s.Revoked, s.Said, s.Ref = true, event.Personal{}, event.Personal{}
	return s
}

// Evolve sets Seen.
func (MarkedRead) Evolve(s State) State {
	s.Seen = true
	return s
}

// Failure returns why the message is not known to be sent, or nil.
func (s State) Failure() *network.Failure {
	switch {
	case ranks[s.Status] >= ranks[Delivered], s.Status == Sent:
		return nil
	default: // without a reason: the process stopped before it recorded the result
		return &network.Failure{Reason: cmp.Or(s.Reason, network.Unknown), Code: s.Code}
	}
}

// Queue queues a message to a contact.
type Queue struct {
	Draft

	Contact int64
}

// Decide seals the content.
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

// Requeue queues an unsent message again.
type Requeue struct{}

// errUnderWay reports that a message to resend may have been sent.
var errUnderWay = (&network.Failure{Reason: network.Unknown}).Fault()

// Decide refuses a message that may have been sent.
func (Requeue) Decide(s State) ([]event.Event[State], error) {
	if s.Status != NotSent || !s.Reason.Retryable() {
		return nil, errUnderWay
	}
	return []event.Event[State]{Requeued{}}, nil
}

// Resend resends a campaign's message. The network refused that message because of the channel, or sent no receipt for a long time. A
// message without a receipt is resent once (CONTRACT.md N1).
type Resend struct {
	Contact  int64
	Unwanted bool // the contact has opted out
	Refused  bool // a user wants to resend a refused message
	Mute     bool // the network's receipts do not contain Bahi's ids, so a second equal message would hide the first one's receipt
}

// Decide returns no events for a message with a final status.
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

// Skip records a message of a campaign that is not sent.
type Skip struct{ Contact int64 }

// Decide records the skipped message.
func (c Skip) Decide(State) ([]event.Event[State], error) {
	return []event.Event[State]{Skipped(c)}, nil
}

// RecordSendResult records the network's response.
type RecordSendResult struct {
	Contact    int64
	ProviderID string
	Failure    *network.Failure // nil: the network accepted the message
}

// Decide records the response. It ignores a failure after a receipt.
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

// Receipt records a delivery receipt.
type Receipt struct {
	Status         string
	Code           int
	Title, Details string
	NetworkID      string // another id of the message in the receipt; empty: none
	At             time.Time
}

// synonyms are the networks' other names of statuses.
var synonyms = map[string]string{"enqueued": Waiting, "played": Read}

// Decide only advances the status. Late, repeated and reordered receipts have no effect, nor have statuses without a rank.
func (c Receipt) Decide(s State) (events []event.Event[State], _ error) {
	if s.Reason == network.Lost { // the message was sent after all
		s.Status = Waiting
	}
	if ranks[s.Status] == 0 {
		return nil, nil
	}
	if id := c.NetworkID; id != "" && id != s.ProviderID && s.NetworkID == "" {
		events = append(events, Identified{NetworkID: id})
	}
	status := strings.ToLower(strings.TrimSpace(c.Status))
	status = cmp.Or(synonyms[status], status)
	if ranks[status] > ranks[s.Status] {
		events = append(events, Reported{Status: status, At: c.At, Code: c.Code, Title: sealed(s.Contact, c.Title),
			Details: sealed(s.Contact, c.Details)})
	}
	return events, nil
}

// SimulateReceipts records the receipts of a message in the sandbox: delivered, and read.
type SimulateReceipts struct{}

// Decide returns no events for known receipts.
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

// MarkRead records that users have read up to a message.
type MarkRead struct{ Contact int64 } // the message's present contact

// ErrNotFound reports an unknown message. Callers without access to the message receive it too.
var ErrNotFound = fault.New(fault.NotFound, "Message not found")

// Decide returns no events for outgoing or already read messages.
func (c MarkRead) Decide(s State) ([]event.Event[State], error) {
	switch {
	case s.Status == "":
		return nil, ErrNotFound
	case s.Status != Inbound || s.Seen:
		return nil, nil
	}
	return []event.Event[State]{MarkedRead{Contact: c.Contact, At: s.At.At}}, nil
}

// MarkNoneRead is [MarkRead] for a conversation without incoming messages.
type MarkNoneRead struct{}

// Decide returns no events.
func (MarkNoneRead) Decide(State) ([]event.Event[State], error) { return nil, nil }

// Edit changes the text of an incoming message.
type Edit struct {
	Text string
	network.Moment
}

// Revoke deletes the content of an incoming message.
type Revoke struct{ network.Moment }

// Decide returns no events for outgoing or already revoked messages.
func (c Revoke) Decide(s State) ([]event.Event[State], error) {
	if s.Status != Inbound || s.Revoked {
		return nil, nil
	}
	return []event.Event[State]{Revoked(c)}, nil
}

// Decide seals the text. It ignores an edit older than the newest one.
func (c Edit) Decide(s State) ([]event.Event[State], error) {
	if s.Status != Inbound || s.Revoked || c.Before(s.Changed) {
		return nil, nil
	}
	return []event.Event[State]{Edited{Text: sealed(s.Contact, c.Text), Moment: c.Moment}}, nil
}

// Receive records an incoming message.
type Receive struct {
	Draft

	Contact    int64
	Type       string // empty: text or image, by its content
	Ref        string // the network's id of its file, or URL; empty: none
	RefType    string // media type of the file
	ProviderID string
	Phone      string // phone of the sender, as the network reports; empty: unknown
	SentAt     time.Time
	ArrivedAt  time.Time
	Reacts     string // see [Received]
	Now        time.Time

	Code           int // why the network does not deliver the content; 0: it does
	Title, Details string
}

// Decide uses the network's time unless it is in the future.
func (c Receive) Decide(State) ([]event.Event[State], error) {
	at := c.SentAt.UTC()
	if at.After(c.Now) {
		at = c.Now.UTC()
	}
	said := content(c.Contact, c.Text, c.Image)
	said.Type = cmp.Or(c.Type, said.Type)
	if c.Ref != "" {
		said.Media = &media{Ref: sealed(c.Contact, c.Ref), ContentType: c.RefType}
	}
	return []event.Event[State]{Received{
		Content: said, Channel: c.Channel, Contact: c.Contact, ProviderID: c.ProviderID, SentAt: at, ArrivedAt: c.ArrivedAt.UTC(),
		Reacts: c.Reacts,
		Phone:  sealed(c.Contact, c.Phone),
		Code:   c.Code, Title: sealed(c.Contact, c.Title), Details: sealed(c.Contact, c.Details),
	}}, nil
}
