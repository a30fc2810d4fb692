package message

import (
	"strconv"

	"bahi/domain/event"
)

// ThreadKind names what a stream messagethread-<channel>.<contact> holds: where a network of mails keeps the messages of a channel to a
// contact together.
var ThreadKind = event.NewKind("messagethread",
	event.Of[Threaded]("MessageThreaded", 1),
)

// ThreadID returns the id of the thread of a channel with a contact.
func ThreadID(channel, contact int64) string {
	return strconv.FormatInt(channel, 10) + "." + strconv.FormatInt(contact, 10)
}

// Threaded records the network's thread to which a message went. A message goes to a thread only under the thread's subject.
type Threaded struct {
	Thread  string `json:"thread"`
	Subject string `json:"subject"` // the channel's name
}

// Thread is the newest thread of a channel with a contact.
type Thread struct{ ID, Subject string }

// Under returns the thread's id for a message with a subject, "" if the message begins another thread.
func (t Thread) Under(subject string) string {
	if t.Subject != subject {
		return ""
	}
	return t.ID
}

// Evolve keeps the newest.
func (e Threaded) Evolve(Thread) Thread { return Thread{ID: e.Thread, Subject: e.Subject} }

// Join notes the thread to which a message went.
type Join Threaded

// Decide passes over a thread that is known.
func (c Join) Decide(s Thread) ([]event.Event[Thread], error) {
	if c.Thread == "" || s == (Thread{ID: c.Thread, Subject: c.Subject}) {
		return nil, nil
	}
	return []event.Event[Thread]{Threaded(c)}, nil
}
