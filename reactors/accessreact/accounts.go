// Package accessreact has the side effects for users: mails and erasures.
package accessreact

import (
	"context"

	"github.com/google/uuid"

	"bahi/domain/access/user"
	"bahi/domain/access/workspace"
	"bahi/domain/event"
	"bahi/reactors"
)

// Accounts mails users about their accounts, and erases users when they are due.
var Accounts = reactors.Define("accounts",
	reactors.OnID(func(q *reactors.Queue, id uuid.UUID, e event.Recorded[user.Registered]) {
		if !e.Data.Verified {
			q.Add(SendVerification{User: id})
		}
	}),
	reactors.OnID(func(q *reactors.Queue, id uuid.UUID, e event.Recorded[user.EmailChanged]) {
		q.Add(SendVerification{User: id})
		if !e.Data.Before.IsZero() {
			q.Add(SendEmailNotice{User: id, Revision: e.Revision})
		}
	}),
	reactors.OnID(func(q *reactors.Queue, id uuid.UUID, e event.Recorded[user.EmailRestored]) {
		q.Add(SendReset{EmailKey: e.Data.EmailKey})
		q.Add(SendEmailNotice{User: id, Revision: e.Revision})
		q.Add(SendDeletionReceipt{User: id}) // the new address may have received one
	}),
	reactors.OnID(func(q *reactors.Queue, id uuid.UUID, e event.Recorded[user.DeletionRequested]) {
		q.Add(SendDeletionNotice{User: id})
		q.Add(SendDeletionReceipt{User: id})
		q.AddAt(e.Data.DeleteAfter, EraseUser{User: id})
	}),
	reactors.OnID(func(q *reactors.Queue, id uuid.UUID, e event.Recorded[workspace.Invited]) {
		q.Add(SendInvitation{Workspace: id, Invitation: e.Data.Invitation})
	}),
	reactors.OnID(func(q *reactors.Queue, id uuid.UUID, e event.Recorded[workspace.AddressMismatched]) {
		q.Add(SendStrayNotice{Workspace: id, Invitation: e.Data.Invitation})
	}),
)

// Endings erases the subjects of all areas whose erasure an event has requested.
var Endings = reactors.Define("endings", reactors.OnErasure(func(q *reactors.Queue, end event.Erasure) {
	q.AddAt(end.At, EraseSubject{Subject: end.Subject, Unlisted: end.Unlisted})
})...)

// SendVerification mails the token that verifies a user's address.
type SendVerification struct {
	User uuid.UUID `json:"user_id"`
}

// SendReset mails the token that sets a new password, if a user has the address.
type SendReset struct {
	EmailKey string `json:"email_key"`
}

// SendEmailNotice mails to the previous address that it was replaced, and how to undo that.
type SendEmailNotice struct {
	User     uuid.UUID `json:"user_id"`
	Revision int64     `json:"revision"` // revision of the event
}

// SendDeletionNotice mails to the administrator that a user requested deletion.
type SendDeletionNotice struct {
	User uuid.UUID `json:"user_id"`
}

// SendDeletionReceipt notifies the user of a requested deletion, in case another person requested it.
type SendDeletionReceipt struct {
	User uuid.UUID `json:"user_id"`
}

// SendInvitation mails the token of an invitation to a workspace.
type SendInvitation struct {
	Workspace  uuid.UUID `json:"workspace_id"`
	Invitation uuid.UUID `json:"invitation_id"`
}

// SendStrayNotice mails to the owner of a workspace that a user with another address tried to accept an invitation.
type SendStrayNotice struct {
	Workspace  uuid.UUID `json:"workspace_id"`
	Invitation uuid.UUID `json:"invitation_id"`
}

// EraseSubject destroys the key of a subject and deletes its data outside the log.
type EraseSubject struct {
	Subject  string `json:"subject"`
	Unlisted bool   `json:"unlisted"` // no table has its values
}

// EraseUser erases a user after the requested time of deletion.
type EraseUser struct {
	User uuid.UUID `json:"user_id"`
}

// ScrubTables makes Postgres remove old row versions of subjects with destroyed keys.
type ScrubTables struct {
	Subject   string `json:"subject"` // the newest one, which distinguishes the job from a running one
	Immediate bool   `json:"at_once,omitempty"`
}

// SweepErasures erases users who are due, and due subjects that are still readable. It finishes begun erasures.
type SweepErasures struct{}

// The kinds of jobs, which implement [reactors.Args].

func (SendVerification) Kind() string    { return "send_verification" }
func (SendReset) Kind() string           { return "send_password_reset" }
func (SendEmailNotice) Kind() string     { return "send_email_notice" }
func (SendDeletionNotice) Kind() string  { return "send_deletion_notice" }
func (SendDeletionReceipt) Kind() string { return "send_deletion_receipt" }
func (SendInvitation) Kind() string      { return "send_invitation" }
func (SendStrayNotice) Kind() string     { return "send_stray_notice" }
func (EraseSubject) Kind() string        { return "erase_subject" }
func (EraseUser) Kind() string           { return "erase_user" }
func (ScrubTables) Kind() string         { return "scrub_tables" }
func (SweepErasures) Kind() string       { return "sweep_erasures" }

// Post adds a job for each requested mail.
type Post struct{ Jobs reactors.Adder }

// VerifyEmail implements Post of package accesscmd.
func (p Post) VerifyEmail(ctx context.Context, id uuid.UUID) error {
	return p.Jobs.Add(ctx, SendVerification{User: id})
}

// ResetPassword implements Post of package accesscmd.
func (p Post) ResetPassword(ctx context.Context, emailKey string) error {
	return p.Jobs.Add(ctx, SendReset{EmailKey: emailKey})
}
