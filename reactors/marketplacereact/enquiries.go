// Package marketplacereact has the side effects of companies, their contacts and their enquiries.
package marketplacereact

import (
	"time"

	"github.com/google/uuid"

	"bahi/domain/event"
	"bahi/domain/marketplace/company"
	"bahi/domain/marketplace/companycontact"
	"bahi/domain/marketplace/enquiry"
	"bahi/reactors"
)

// Companies notifies companies of enquiries, and of changes of their contacts by non-members.
var Companies = reactors.Define("companies",
	reactors.OnID(func(q *reactors.Queue, id uuid.UUID, e event.Recorded[enquiry.Sent]) {
		if !e.Data.Spam {
			q.Add(notify[byMail]{one(id)})
			q.Add(notify[byChat]{one(id)})
			q.Add(notify[toCRM]{one(id)})
		}
	}),
	reactors.OnID(func(q *reactors.Queue, id uuid.UUID, e event.Recorded[company.EmailNamed]) {
		if e.Data.Key != "" {
			q.Add(confirmCompanyEmail{Company: id})
		}
	}),
	reactors.OnID(func(q *reactors.Queue, id uuid.UUID, e event.Recorded[companycontact.Edited]) {
		if e.Data.ByNonMember {
			q.Add(notifyContactChange{Contact: id})
		}
	}),
).WithBatchDelay(gather)

// gather is the maximum wait of an enquiry for others, so that the same jobs handle them.
const gather = 100 * time.Millisecond

// EnquiryBatch has the enquiries for which one job notifies companies.
type EnquiryBatch struct {
	Enquiry   uuid.UUID   `json:"enquiry_id,omitzero"` // set by older programs only
	Enquiries []uuid.UUID `json:"enquiries,omitempty"`
}

// maxAsked is the maximum number of enquiries of a job. Their notifications are sent one after the other.
const maxAsked = 16

func one(id uuid.UUID) EnquiryBatch { return EnquiryBatch{Enquiries: []uuid.UUID{id}} }

// with adds other enquiries. It returns false if the batch is full.
func (a EnquiryBatch) with(more EnquiryBatch) (EnquiryBatch, bool) {
	if len(a.Enquiries) >= maxAsked {
		return a, false
	}
	return EnquiryBatch{Enquiries: append(a.Enquiries, more.Enquiries...)}, true
}

// all returns the enquiries.
func (a EnquiryBatch) all() []uuid.UUID {
	if a.Enquiry != uuid.Nil {
		return append(a.Enquiries, a.Enquiry)
	}
	return a.Enquiries
}

// notify notifies companies of enquiries in one way.
type notify[By interface{ kind() string }] struct{ EnquiryBatch }

// The ways: a mail, a chat message, a lead in the CRM.
type (
	byMail struct{}
	byChat struct{}
	toCRM  struct{}
)

func (byMail) kind() string { return "notify_by_mail" }
func (byChat) kind() string { return "notify_by_chat" }
func (toCRM) kind() string  { return "push_lead" }

// Join implements [reactors.Mergeable].
func (a notify[By]) Join(other reactors.Args) (reactors.Args, bool) {
	more, _ := other.(notify[By]) // other has this kind
	all, taken := a.with(more.EnquiryBatch)
	return notify[By]{all}, taken
}

// sendDigest mails to a company the number of enquiries within a busy hour.
type sendDigest struct {
	Company uuid.UUID `json:"company_id"`
	Hour    int64     `json:"hour"` // in Unix seconds
}

// confirmCompanyEmail mails the token that confirms a company's address.
type confirmCompanyEmail struct {
	Company uuid.UUID `json:"company_id"`
}

// notifyContactChange mails to a company that a non-member changed one of its contacts.
type notifyContactChange struct {
	Contact uuid.UUID `json:"contact_id"`
}

// The kinds of jobs, which implement [reactors.Args].

func (notify[By]) Kind() string          { var by By; return by.kind() }
func (sendDigest) Kind() string          { return "send_digest" }
func (confirmCompanyEmail) Kind() string { return "confirm_company_email" }
func (notifyContactChange) Kind() string { return "notify_contact_change" }
