package enquiry

import (
	"cmp"
	"maps"
	"time"

	"bahi/domain/event"
)

// NotificationKind is the kind of the streams enquirynotification-<uuid of an enquiry>, which have the results of notifying the company.
var NotificationKind = event.NewKind("enquirynotification",
	event.Of[Notified]("EnquiryNotified", 1),
).Sealing(Buyers)

// Port is a way to notify the company.
type Port string

// The ports.
const (
	Chat  Port = "chat"
	Email Port = "email"
	CRM   Port = "crm"
)

// The results of a notification. Before a result, it is queued.
const (
	Queued  = "queued"
	Done    = "sent"
	Failed  = "failed"
	Skipped = "skipped"
)

// Notified records the result of one notification.
type Notified struct {
	Port   Port           `json:"port"`
	At     time.Time      `json:"at"`
	Status string         `json:"status"`          // sent, failed or skipped
	Error  string         `json:"error,omitempty"` // a text of Bahi that names no person
	Lead   string         `json:"lead_id,omitempty"`
	To     string         `json:"to,omitempty"` // the company's phone, or the crm
	Text   event.Personal `json:"text,omitzero"`

	Delivered bool `json:"delivered,omitempty"` // the network has reported the delivery
}

// Evolve stores the last result of each port, and the first lead.
func (e Notified) Evolve(s Notifications) Notifications {
	of := map[Port]outcome{}
	maps.Copy(of, s.Of)
	of[e.Port] = outcome{Status: e.Status, Error: e.Error, At: e.At, Delivered: e.Delivered}
	s.Lead = cmp.Or(s.Lead, e.Lead)
	return Notifications{Of: of, Lead: s.Lead}
}

// outcome is the result of a notification.
type outcome struct {
	Status string
	Error  string
	At     time.Time

	Delivered bool
}

// ranks orders the receipts of a notification by chat, so that late, repeated and reordered receipts have no effect (CONTRACT.md N3).
var ranks = map[string]int{Skipped: 1, Done: 2, Failed: 3}

func (o outcome) rank() int {
	if o.Delivered {
		return len(ranks) + 1
	}
	return ranks[o.Status]
}

// NoticePrefix is the prefix of a notification's id at the chat network. The enquiry's id follows.
const NoticePrefix = "enq_"

// Notifications has the results of notifying the company.
type Notifications struct {
	Of   map[Port]outcome
	Lead string // the crm's id
}

// Note records the result of a notification.
type Note struct {
	Notified

	Buyer string // id of the subject
	Said  string
}

// Decide records the first final result. A later receipt of a notification by chat may change it, because only the network knows whether it
// was delivered.
func (c Note) Decide(s Notifications) ([]event.Event[Notifications], error) {
	before := s.Of[c.Port]
	e := c.Notified
	known := before.Status == Done || before.Status == e.Status && before.Error == e.Error
	if e.Port == Chat {
		known = before.rank() >= outcome{Status: e.Status, Delivered: e.Delivered}.rank()
	}
	if known {
		return nil, nil
	}
	if c.Buyer != "" {
		e.Text = Buyers.Personal(c.Buyer, c.Said)
	}
	return []event.Event[Notifications]{e}, nil
}
