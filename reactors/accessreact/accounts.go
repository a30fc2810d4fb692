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
	reactors.On(func(q *reactors.Queue, e event.Recorded[user.Registered]) error {
		id, err := uuid.Parse(e.StreamID())
		if err == nil && !e.Data.Verified {
			q.Add(SendVerification{User: id})
		}
		return err
	}),
	reactors.On(func(q *reactors.Queue, e event.Recorded[user.EmailChanged]) error {
		id, err := uuid.Parse(e.StreamID())
		if err == nil {
			q.Add(SendVerification{User: id})
		}
		if err == nil && !e.Data.Before.IsZero() {
			q.Add(SendEmailNotice{User: id, Revision: e.Revision})
		}
		return err
	}),
	reactors.On(func(q *reactors.Queue, e event.Recorded[user.EmailRestored]) error {
		id, err := uuid.Parse(e.StreamID())
		if err == nil {
			q.Add(SendReset{EmailKey: e.Data.EmailKey})
			q.Add(SendEmailNotice{User: id, Revision: e.Revision})
			q.Add(SendDeletionReceipt{User: id}) // the new address may have received one
		}
		return err
	}),
	reactors.On(func(q *reactors.Queue, e event.Recorded[user.DeletionRequested]) error {
		id, err := uuid.Parse(e.StreamID())
		if err == nil {
			q.Add(SendDeletionNotice{User: id})
			q.Add(SendDeletionReceipt{User: id})
			q.AddAt(e.Data.DeleteAfter, EraseUser{User: id})
		}
		return err
	}),
	reactors.On(func(q *reactors.Queue, e event.Recorded[workspace.Invited]) error {
		id, err := uuid.Parse(e.StreamID())
		if err == nil {
			q.Add(SendInvitation{Workspace: id, Invitation: e.Data.Invitation})
		}
		return err
	}),
	reactors.On(func(q *reactors.Queue, e event.Recorded[workspace.AddressMismatched]) error {
		id, err := uuid.Parse(e.StreamID())
		if err == nil {
			q.Add(SendStrayNotice{Workspace: id, Invitation: e.Data.Invitation})
		}
		return err
	}),
)

// Endings erases the subjects of all areas whose erasure an event has requested.
var Endings = reactors.Define("endings", reactors.OnErasure(func(q *reactors.Queue, end event.Erasure) {
	q.AddAt(end.At, ForgetSubject{Subject: end.Subject, Unlisted: end.Unlisted})
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

// ForgetSubject destroys the key of a subject and deletes its data outside the log.
type ForgetSubject struct {
	Subject  string `json:"subject"`
	Unlisted bool   `json:"unlisted"` // no table has its values
}

// EraseUser erases a user after the requested time of deletion.
type EraseUser struct {
	User uuid.UUID `json:"user_id"`
}

// ScrubTables makes Postgres remove old row versions of subjects with destroyed keys.
type ScrubTables struct {
	Subject string `json:"subject"` // the newest one, which distinguishes the job from a running one
	AtOnce  bool   `json:"at_once,omitempty"`
}

// SweepErasures erases users who are due, and due subjects that are still readable. It finishes begun erasures.
type SweepErasures struct{}

// Kind implements [reactors.Args].
func (SendVerification) Kind() string { return "send_verification" }

// Kind implements [reactors.Args].
func (SendReset) Kind() string { return "send_password_reset" }

// Kind implements [reactors.Args].
func (SendEmailNotice) Kind() string { return "send_email_notice" }

// Kind implements [reactors.Args].
func (SendDeletionNotice) Kind() string { return "send_deletion_notice" }

// Kind implements [reactors.Args].
func (SendDeletionReceipt) Kind() string { return "send_deletion_receipt" }

// Kind implements [reactors.Args].
func (SendInvitation) Kind() string { return "send_invitation" }

// Kind implements [reactors.Args].
func (SendStrayNotice) Kind() string { return "send_stray_notice" }

// Kind implements [reactors.Args].
func (ForgetSubject) Kind() string { return "forget_subject" }

// Kind implements [reactors.Args].
func (EraseUser) Kind() string { return "erase_user" }

// Kind implements [reactors.Args].
func (ScrubTables) Kind() string { return "scrub_tables" }

// Kind implements [reactors.Args].
func (SweepErasures) Kind() string { return "sweep_erasures" }

// Adder adds jobs.
type Adder interface {
	Add(ctx context.Context, args reactors.Args) error
}

// Post adds a job for each requested mail.
type Post struct{ Jobs Adder }

// VerifyEmail implements Post of package accesscmd.
func (p Post) VerifyEmail(ctx context.Context, id uuid.UUID) error {
	return p.Jobs.Add(ctx, SendVerification{User: id})
}

// ResetPassword implements Post of package accesscmd.
func (p Post) ResetPassword(ctx context.Context, emailKey string) error {
	return p.Jobs.Add(ctx, SendReset{EmailKey: emailKey})
}
