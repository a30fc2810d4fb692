package chat

import (
	"errors"
	"strings"
	"time"
)

// Kind is the kind of an event.
type Kind string

// The kinds of events.
const (
	Message  Kind = "message"  // a person wrote
	Status   Kind = "status"   // the delivery status of a sent message
	Moved    Kind = "moved"    // a person has another phone, or another id at the network
	Revised  Kind = "revised"  // a person changed the message of the ID
	Revoked  Kind = "revoked"  // a person deleted the message of the ID
	Template Kind = "template" // a template's status; ID is the network's of the template
	Consent  Kind = "consent"  // a person opts out of messages, or in again: Type is stop or resume
	Failure  Kind = "failure"  // a fault of the account, or of its request
	Group    Kind = "group"    // a message in a group; it has no effect
	Unread   Kind = "unread"   // an unreadable part: Reason is the cause
	Other    Kind = "other"    // anything else; this has no effect
)

// Event is one event of a webhook call.
type Event struct {
	Kind Kind
	ID   string // the message's id; in a status, the network's or the aggregator's; empty: none was given
	// of a message: text, image, file, audio, video, contact, location, sticker, reaction, button_reply, list_reply; of a status: such as
	// delivered
	Type string
	At   *time.Time

	From   string // digits of the sender, mostly of a phone; empty: unknown
	UserID string // the network's id of the sender, if it is not digits; empty: unknown
	Name   string
	Text   string // text, caption or chosen reply of a message
	Media  *Media

	Delivery

	// the network's id of our number or page that received or sent the message; for a template, that of our account; empty: unknown
	Sender   string
	App      string // the name or id of our app at the aggregator; empty: unknown
	Page     bool   // the event is of a page; its people have ids instead of phones
	Username string // username of the sender
	Reacts   string // in a reaction, the network's id of its message
	Place    string // in the body, as in entry[0].changes[0].value.messages[1]; empty: the body is one event
	Before   string // in Moved, the previous phone or id
}

// Delivery is the part of a status, or of a failure, that a message lacks.
type Delivery struct {
	GSID     string // the aggregator's id of the message, beside ID
	Callback string // our own id of the message
	Code     string // code of a failed status, of a message that the network withholds, or of Failure
	Title    string
	Reason   string
}

// Media is a file that a message refers to.
type Media struct {
	URL         string `json:"url,omitempty"` // empty: the network gives one for the ID
	ID          string `json:"id,omitempty"`
	ContentType string `json:"content_type,omitempty"`
}

// Part returns the kind of the event with its place.
func (e Event) Part() string { return strings.TrimSpace(string(e.Kind) + " " + e.Place) }

// ErrUnreadable reports a body in none of the dialects.
var ErrUnreadable = errors.New("the body is in no known dialect")
