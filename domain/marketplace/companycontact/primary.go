package companycontact

import (
	"time"

	"github.com/google/uuid"

	"bahi/domain/event"
)

// PrimaryKind names what a stream contactprimary-<uuid of a company> holds: which of its contacts is the first to turn to.
var PrimaryKind = event.NewKind("contactprimary",
	event.Of[PrimaryNamed]("ContactPrimaryNamed", 1),
)

// Primary is the contact to turn to first, uuid.Nil for none.
type Primary struct{ Contact uuid.UUID }

// PrimaryNamed records which contact is the first to turn to from now on, or that none is.
type PrimaryNamed struct {
	Contact uuid.UUID `json:"contact_id,omitzero"`
}

// Evolve names it.
func (e PrimaryNamed) Evolve(Primary) Primary { return Primary(e) }

// NamePrimary makes a contact the first to turn to. Unless a member of the company wants it, that is so only where there is none, or only
// one that is gone.
type NamePrimary struct {
	Contact uuid.UUID
	Member  bool
	Gone    uuid.UUID
}

// Decide passes over what is so already, and over what a stranger may not change.
func (c NamePrimary) Decide(s Primary) ([]event.Event[Primary], error) {
	if s.Contact == c.Contact || !c.Member && s.Contact != uuid.Nil && s.Contact != c.Gone {
		return nil, nil
	}
	return []event.Event[Primary]{PrimaryNamed{Contact: c.Contact}}, nil
}

// DropPrimary lets a contact be one of many.
type DropPrimary struct{ Contact uuid.UUID }

// Decide passes over a contact that is not the first.
func (c DropPrimary) Decide(s Primary) ([]event.Event[Primary], error) {
	if s.Contact != c.Contact {
		return nil, nil
	}
	return []event.Event[Primary]{PrimaryNamed{}}, nil
}

// NoticeKind names what a stream contactnotice-<uuid of a contact> holds: when its company was last told of a stranger's change.
var NoticeKind = event.NewKind("contactnotice",
	event.Of[NoticeSent]("ContactChangeTold", 1),
)

// Notice is when the company was told, the zero time for never.
type Notice struct{ At time.Time }

// NoticeSent records that the company is being told.
type NoticeSent struct {
	At time.Time `json:"at"`
}

// Evolve notes when.
func (e NoticeSent) Evolve(Notice) Notice { return Notice(e) }

// Tell notes that the company is told now.
type Tell struct{ Now time.Time }

// tellInterval is the least time between two notices of one contact (CONTRACT.md M1).
const tellInterval = time.Hour

// Decide passes over a contact of which the company was told lately.
func (c Tell) Decide(s Notice) ([]event.Event[Notice], error) {
	if c.Now.Sub(s.At) < tellInterval {
		return nil, nil
	}
	return []event.Event[Notice]{NoticeSent{At: c.Now.UTC().Truncate(time.Microsecond)}}, nil
}
