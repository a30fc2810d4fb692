package message

import (
	"strconv"

	"bahi/domain/event"
)

// ThreadKind registers the events of streams messagethread-<channel>.<contact>, the mail thread of a channel with a contact.
var ThreadKind = event.NewKind("messagethread",
	event.Of[Threaded]("MessageThreaded", 1),
)

// ThreadID returns the id of the thread of a channel with a contact.
func ThreadID(channel, contact int64) string {
	return strconv.FormatInt(channel, 10) + "." + strconv.FormatInt(contact, 10)
}

// Threaded records the network's thread of a message. Only messages with the thread's subject continue it.
type Threaded struct {
	Thread  string `json:"thread"`
	Subject string `json:"subject"` // subject of the thread
}

// Thread is the newest thread of a channel with a contact.
type Thread struct{ ID, Subject string }

// Under returns the thread's id for a message with a subject, or "" if the message starts a new thread.
func (t Thread) Under(subject string) string {
	if t.Subject != subject {
		return ""
	}
	return t.ID
}

// Evolve sets the newest thread.
func (e Threaded) Evolve(Thread) Thread { return Thread{ID: e.Thread, Subject: e.Subject} }

// Join records the thread of a message.
type Join Threaded

// Decide returns no events for a known thread.
func (c Join) Decide(s Thread) ([]event.Event[Thread], error) {
	if c.Thread == "" || s == (Thread{ID: c.Thread, Subject: c.Subject}) {
		return nil, nil
	}
	return []event.Event[Thread]{Threaded(c)}, nil
}
