package companycontact

import (
	"time"

	"github.com/google/uuid"

	"bahi/domain/event"
)

// PrimaryKind is the kind of the streams contactprimary-<uuid of a company>, which have the company's primary contact.
var PrimaryKind = event.NewKind("contactprimary",
	event.Of[PrimaryNamed]("ContactPrimarySet", 1),
)

// Primary is the primary contact, uuid.Nil for none.
type Primary struct{ Contact uuid.UUID }

// PrimaryNamed records the company's new primary contact, or that it has none.
type PrimaryNamed struct {
	Contact uuid.UUID `json:"contact_id,omitzero"`
}

// Evolve sets the primary contact.
func (e PrimaryNamed) Evolve(Primary) Primary { return Primary(e) }

// NamePrimary makes a contact the primary one. For a non-member, it does so only if no existing contact is primary.
type NamePrimary struct {
	Contact uuid.UUID
	Member  bool
	Gone    uuid.UUID
}

// Decide returns no events for the primary contact, and for a change that a non-member may not make.
func (c NamePrimary) Decide(s Primary) ([]event.Event[Primary], error) {
	if s.Contact == c.Contact || !c.Member && s.Contact != uuid.Nil && s.Contact != c.Gone {
		return nil, nil
	}
	return []event.Event[Primary]{PrimaryNamed{Contact: c.Contact}}, nil
}

// DropPrimary removes the mark of the primary contact.
type DropPrimary struct{ Contact uuid.UUID }

// Decide returns no events for a contact that is not primary.
func (c DropPrimary) Decide(s Primary) ([]event.Event[Primary], error) {
	if s.Contact != c.Contact {
		return nil, nil
	}
	return []event.Event[Primary]{PrimaryNamed{}}, nil
}

// NoticeKind is the kind of the streams contactnotice-<uuid of a contact>. They have the time of the last notice to the company about a
// non-member's change.
var NoticeKind = event.NewKind("contactnotice",
	event.Of[NoticeSent]("ContactChangeNotified", 1),
)

// Notice is the time of the last notice, the zero time for none.
type Notice struct{ At time.Time }

// NoticeSent records that a notice is sent to the company.
type NoticeSent struct {
	At time.Time `json:"at"`
}

// Evolve sets the time.
func (e NoticeSent) Evolve(Notice) Notice { return Notice(e) }

// Tell records a notice to the company.
type Tell struct{ Now time.Time }

// noticeInterval is the minimum interval between two notices of one contact (CONTRACT.md M1).
const noticeInterval = time.Hour

// Decide returns no events for a contact with a recent notice.
func (c Tell) Decide(s Notice) ([]event.Event[Notice], error) {
	if c.Now.Sub(s.At) < noticeInterval {
		return nil, nil
	}
	return []event.Event[Notice]{NoticeSent{At: c.Now.UTC().Truncate(time.Microsecond)}}, nil
}
