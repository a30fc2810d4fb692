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
			q.Add(sendVerification{User: id})
		}
	}),
	reactors.OnID(func(q *reactors.Queue, id uuid.UUID, e event.Recorded[user.EmailChanged]) {
		q.Add(sendVerification{User: id})
		if !e.Data.Before.IsZero() {
			q.Add(sendEmailNotice{User: id, Revision: e.Revision})
		}
	}),
	reactors.OnID(func(q *reactors.Queue, id uuid.UUID, e event.Recorded[user.EmailRestored]) {
		q.Add(sendReset{EmailKey: e.Data.EmailKey})
		q.Add(sendEmailNotice{User: id, Revision: e.Revision})
		q.Add(sendDeletionReceipt{User: id}) // the new address may have received one
	}),
	reactors.OnID(func(q *reactors.Queue, id uuid.UUID, e event.Recorded[user.DeletionRequested]) {
		q.Add(sendDeletionNotice{User: id})
		q.Add(sendDeletionReceipt{User: id})
		q.AddAt(e.Data.DeleteAfter, eraseUser{User: id})
	}),
	reactors.OnID(func(q *reactors.Queue, id uuid.UUID, e event.Recorded[workspace.Invited]) {
		q.Add(sendInvitation{Workspace: id, Invitation: e.Data.Invitation})
	}),
	reactors.OnID(func(q *reactors.Queue, id uuid.UUID, e event.Recorded[workspace.AddressMismatched]) {
		q.Add(sendStrayNotice{Workspace: id, Invitation: e.Data.Invitation})
	}),
)

// Endings erases the subjects of all areas whose erasure an event has requested.
var Endings = reactors.Define("endings", reactors.OnErasure(func(q *reactors.Queue, end event.Erasure) {
	q.AddAt(end.At, eraseSubject{Subject: end.Subject, Unlisted: end.Unlisted})
})...)

// sendVerification mails the token that verifies a user's address.
type sendVerification struct {
	User uuid.UUID `json:"user_id"`
}

// sendReset mails the token that sets a new password, if a user has the address.
type sendReset struct {
	EmailKey string `json:"email_key"`
}

// sendEmailNotice mails to the previous address that it was replaced, and how to undo that.
type sendEmailNotice struct {
	User     uuid.UUID `json:"user_id"`
	Revision int64     `json:"revision"` // revision of the event
}

// sendDeletionNotice mails to the administrator that a user requested deletion.
type sendDeletionNotice struct {
	User uuid.UUID `json:"user_id"`
}

// sendDeletionReceipt notifies the user of a requested deletion, in case another person requested it.
type sendDeletionReceipt struct {
	User uuid.UUID `json:"user_id"`
}

// sendInvitation mails the token of an invitation to a workspace.
type sendInvitation struct {
	Workspace  uuid.UUID `json:"workspace_id"`
	Invitation uuid.UUID `json:"invitation_id"`
}

// sendStrayNotice mails to the owner of a workspace that a user with another address tried to accept an invitation.
type sendStrayNotice struct {
	Workspace  uuid.UUID `json:"workspace_id"`
	Invitation uuid.UUID `json:"invitation_id"`
}

// eraseSubject destroys the key of a subject and deletes its data outside the log.
type eraseSubject struct {
	Subject  string `json:"subject"`
	Unlisted bool   `json:"unlisted"` // no table has its values
}

// eraseUser erases a user after the requested time of deletion.
type eraseUser struct {
	User uuid.UUID `json:"user_id"`
}

// scrubTables makes Postgres remove old row versions of subjects with destroyed keys.
type scrubTables struct {
	Subject   string `json:"subject"` // the newest one, which distinguishes the job from a running one
	Immediate bool   `json:"at_once,omitempty"`
}

// SweepErasures erases users who are due, and due subjects that are still readable. It finishes begun erasures.
type SweepErasures struct{}

// The kinds of jobs, which implement [reactors.Args].

func (sendVerification) Kind() string    { return "send_verification" }
func (sendReset) Kind() string           { return "send_password_reset" }
func (sendEmailNotice) Kind() string     { return "send_email_notice" }
func (sendDeletionNotice) Kind() string  { return "send_deletion_notice" }
func (sendDeletionReceipt) Kind() string { return "send_deletion_receipt" }
func (sendInvitation) Kind() string      { return "send_invitation" }
func (sendStrayNotice) Kind() string     { return "send_stray_notice" }
func (eraseSubject) Kind() string        { return "erase_subject" }
func (eraseUser) Kind() string           { return "erase_user" }
func (scrubTables) Kind() string         { return "scrub_tables" }
func (SweepErasures) Kind() string       { return "sweep_erasures" }

// Post adds a job for each requested mail.
type Post struct{ Jobs reactors.Adder }

// VerifyEmail implements Post of package accesscmd.
func (p Post) VerifyEmail(ctx context.Context, id uuid.UUID) error {
	return p.Jobs.Add(ctx, sendVerification{User: id})
}

// ResetPassword implements Post of package accesscmd.
func (p Post) ResetPassword(ctx context.Context, emailKey string) error {
	return p.Jobs.Add(ctx, sendReset{EmailKey: emailKey})
}
