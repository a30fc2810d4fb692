// Package access has the side effects that concern people: mails and erasure.
package access

import (
	"context"

	"github.com/google/uuid"

	"bahi/domain/access/user"
	"bahi/domain/access/workspace"
	"bahi/domain/event"
	"bahi/reactors"
)

// Accounts mails what people have to know of their accounts, and erases them when it is time.
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
			q.Add(SendDeletionReceipt{User: id}) // which another address was sent, if any
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
	reactors.On(func(q *reactors.Queue, e event.Recorded[user.Erased]) error {
		q.Add(ScrubTables{Erased: e.Position})
		return nil
	}),
	reactors.On(func(q *reactors.Queue, e event.Recorded[workspace.Invited]) error {
		id, err := uuid.Parse(e.StreamID())
		if err == nil {
			q.Add(SendInvitation{Workspace: id, Invitation: e.Data.Invitation})
		}
		return err
	}),
)

// SendVerification mails the token that proves a user's address.
type SendVerification struct {
	User uuid.UUID `json:"user_id"`
}

// SendReset mails the token that sets another password, if somebody has the address.
type SendReset struct {
	EmailKey string `json:"email_key"`
}

// SendEmailNotice tells the address before that it is the user's no more, and how to have it back.
type SendEmailNotice struct {
	User     uuid.UUID `json:"user_id"`
	Revision int64     `json:"revision"` // of the event
}

// SendDeletionNotice tells the administrator that somebody wants to be deleted.
type SendDeletionNotice struct {
	User uuid.UUID `json:"user_id"`
}

// SendDeletionReceipt tells the user that they asked to be deleted, in case it was somebody else.
type SendDeletionReceipt struct {
	User uuid.UUID `json:"user_id"`
}

// SendInvitation mails the token that lets somebody into a workspace.
type SendInvitation struct {
	Workspace  uuid.UUID `json:"workspace_id"`
	Invitation uuid.UUID `json:"invitation_id"`
}

// EraseUser erases a user whose time has come.
type EraseUser struct {
	User uuid.UUID `json:"user_id"`
}

// ScrubTables makes Postgres forget who was erased.
type ScrubTables struct {
	Erased event.Position `json:"erased"` // where the log says so
}

// SweepErasures looks for users whose time has come, and for erasures that were begun and not ended.
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
func (EraseUser) Kind() string { return "erase_user" }

// Kind implements [reactors.Args].
func (ScrubTables) Kind() string { return "scrub_tables" }

// Kind implements [reactors.Args].
func (SweepErasures) Kind() string { return "sweep_erasures" }

// Adder adds jobs.
type Adder interface {
	Add(ctx context.Context, args reactors.Args) error
}

// Post turns requests for a mail into jobs.
type Post struct{ Jobs Adder }

// VerifyEmail implements the commands' Post.
func (p Post) VerifyEmail(ctx context.Context, id uuid.UUID) error {
	return p.Jobs.Add(ctx, SendVerification{User: id})
}

// ResetPassword implements the commands' Post.
func (p Post) ResetPassword(ctx context.Context, emailKey string) error {
	return p.Jobs.Add(ctx, SendReset{EmailKey: emailKey})
}
