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
			q.Add(NotifyByMail{one(id)})
			q.Add(NotifyByChat{one(id)})
			q.Add(PushLead{one(id)})
		}
	}),
	reactors.OnID(func(q *reactors.Queue, id uuid.UUID, e event.Recorded[company.EmailNamed]) {
		if e.Data.Key != "" {
			q.Add(ConfirmCompanyEmail{Company: id})
		}
	}),
	reactors.OnID(func(q *reactors.Queue, id uuid.UUID, e event.Recorded[companycontact.Edited]) {
		if e.Data.ByNonMember {
			q.Add(NotifyContactChange{Contact: id})
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

// NotifyByMail mails enquiries to their companies.
type NotifyByMail struct{ EnquiryBatch }

// NotifyByChat notifies companies of enquiries by chat.
type NotifyByChat struct{ EnquiryBatch }

// PushLead pushes enquiries to the CRM as leads.
type PushLead struct{ EnquiryBatch }

// Join implements [reactors.Mergeable].
func (a NotifyByMail) Join(other reactors.Args) (reactors.Args, bool) {
	more, _ := other.(NotifyByMail) // other has this kind
	all, taken := a.with(more.EnquiryBatch)
	return NotifyByMail{all}, taken
}

// Join implements [reactors.Mergeable].
func (a NotifyByChat) Join(other reactors.Args) (reactors.Args, bool) {
	more, _ := other.(NotifyByChat) // other has this kind
	all, taken := a.with(more.EnquiryBatch)
	return NotifyByChat{all}, taken
}

// Join implements [reactors.Mergeable].
func (a PushLead) Join(other reactors.Args) (reactors.Args, bool) {
	more, _ := other.(PushLead) // other has this kind
	all, taken := a.with(more.EnquiryBatch)
	return PushLead{all}, taken
}

// SendDigest mails to a company the number of enquiries within a busy hour.
type SendDigest struct {
	Company uuid.UUID `json:"company_id"`
	Hour    int64     `json:"hour"` // in Unix seconds
}

// ConfirmCompanyEmail mails the token that confirms a company's address.
type ConfirmCompanyEmail struct {
	Company uuid.UUID `json:"company_id"`
}

// NotifyContactChange mails to a company that a non-member changed one of its contacts.
type NotifyContactChange struct {
	Contact uuid.UUID `json:"contact_id"`
}

// The kinds of jobs, which implement [reactors.Args].

func (NotifyByMail) Kind() string        { return "notify_by_mail" }
func (NotifyByChat) Kind() string        { return "notify_by_chat" }
func (PushLead) Kind() string            { return "push_lead" }
func (SendDigest) Kind() string          { return "send_digest" }
func (ConfirmCompanyEmail) Kind() string { return "confirm_company_email" }
func (NotifyContactChange) Kind() string { return "notify_contact_change" }
