// Package marketplace has the side effects of companies, their contacts and what they are asked.
package marketplace

import (
	"github.com/google/uuid"

	"bahi/domain/event"
	"bahi/domain/marketplace/company"
	"bahi/domain/marketplace/contact"
	"bahi/domain/marketplace/enquiry"
	"bahi/reactors"
)

// Companies tells companies what they are asked, and what strangers change of their contacts.
var Companies = reactors.Define("companies",
	reactors.On(func(q *reactors.Queue, e event.Recorded[enquiry.Sent]) error {
		id, err := uuid.Parse(e.StreamID())
		if err == nil && !e.Data.Spam {
			q.Add(NotifyByMail{Enquiry: id})
			q.Add(NotifyByChat{Enquiry: id})
			q.Add(PushLead{Enquiry: id})
		}
		return err
	}),
	reactors.On(func(q *reactors.Queue, e event.Recorded[company.EmailNamed]) error {
		id, err := uuid.Parse(e.StreamID())
		if err == nil && e.Data.Key != "" {
			q.Add(ConfirmCompanyEmail{Company: id})
		}
		return err
	}),
	reactors.On(func(q *reactors.Queue, e event.Recorded[contact.Edited]) error {
		id, err := uuid.Parse(e.StreamID())
		if err == nil && e.Data.Stranger {
			q.Add(TellContactChange{Contact: id})
		}
		return err
	}),
)

// NotifyByMail mails an enquiry to the company that was asked.
type NotifyByMail struct {
	Enquiry uuid.UUID `json:"enquiry_id"`
}

// NotifyByChat tells the company by chat.
type NotifyByChat struct {
	Enquiry uuid.UUID `json:"enquiry_id"`
}

// PushLead makes an enquiry a lead in the crm.
type PushLead struct {
	Enquiry uuid.UUID `json:"enquiry_id"`
}

// SendDigest tells a company how much it was asked within an hour of many enquiries.
type SendDigest struct {
	Company uuid.UUID `json:"company_id"`
	Hour    int64     `json:"hour"` // in Unix seconds
}

// ConfirmCompanyEmail mails the token that confirms a company's address.
type ConfirmCompanyEmail struct {
	Company uuid.UUID `json:"company_id"`
}

// TellContactChange tells a company that a stranger changed one of its contacts.
type TellContactChange struct {
	Contact uuid.UUID `json:"contact_id"`
}

// Kind implements [reactors.Args].
func (NotifyByMail) Kind() string { return "notify_by_mail" }

// Kind implements [reactors.Args].
func (NotifyByChat) Kind() string { return "notify_by_chat" }

// Kind implements [reactors.Args].
func (PushLead) Kind() string { return "push_lead" }

// Kind implements [reactors.Args].
func (SendDigest) Kind() string { return "send_digest" }

// Kind implements [reactors.Args].
func (ConfirmCompanyEmail) Kind() string { return "confirm_company_email" }

// Kind implements [reactors.Args].
func (TellContactChange) Kind() string { return "tell_contact_change" }
