package marketplace

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"text/template"
	"time"

	"github.com/google/uuid"

	"bahi/commands"
	flows "bahi/commands/marketplace"
	"bahi/commands/marketplace/credentials"
	"bahi/domain/event"
	"bahi/domain/marketplace/user"
	"bahi/domain/marketplace/workspace"
	"bahi/eventstore"
	"bahi/reactors"
)

// Mailer sends mails. The id names a mail, so that one that is sent again is known as the same. An error
// for which Permanent is true is answered by no further try.
type Mailer interface {
	Mail(ctx context.Context, id, to, subject, text string) error
	Permanent(err error) bool
}

// Mails writes to people.
type Mails struct {
	Accounts *flows.Accounts
	Commands *commands.Handler
	Store    eventstore.Store
	Mailer   Mailer
	Frontend string // where the links lead: https://example.org
	Admin    string // whom deletions are told; empty: nobody
	Zone     *time.Location
}

// Workers are those who do it.
func (m *Mails) Workers() reactors.Workers {
	return reactors.Workers{
		reactors.Work(reactors.Policy{}, m.verification),
		reactors.Work(reactors.Policy{}, m.reset),
		reactors.Work(reactors.Policy{}, m.emailNotice),
		reactors.Work(reactors.Policy{}, m.deletionNotice),
		reactors.Work(reactors.Policy{}, m.invitation),
	}
}

//go:embed mails/*.txt
var texts embed.FS

var templates = template.Must(template.ParseFS(texts, "mails/*.txt"))

// letter is what the texts are made with.
type letter struct {
	Name  string
	Link  string
	User  uuid.UUID
	Until string
}

// send mails a text, whose first line is its subject.
func (m *Mails) send(ctx context.Context, name string, job int64, event uuid.UUID, to event.Personal, l letter) error {
	address, err := m.Accounts.Text(ctx, to)
	if err != nil {
		return gone(err)
	}
	return m.sendTo(ctx, name, job, event, address, l)
}

func (m *Mails) sendTo(ctx context.Context, name string, job int64, event uuid.UUID, address string, l letter) error {
	var text strings.Builder
	if err := templates.ExecuteTemplate(&text, name+".txt", l); err != nil {
		return fmt.Errorf("write a mail: %w", err)
	}
	subject, body, _ := strings.Cut(text.String(), "\n")
	id := fmt.Sprintf("%s-%d", name, job)
	if event != uuid.Nil {
		id = name + "-" + event.String()
	}
	err := m.Mailer.Mail(ctx, id, address, subject, strings.TrimLeft(body, "\n"))
	if err != nil && m.Mailer.Permanent(err) {
		return reactors.GiveUp(err)
	}
	return err
}

// gone says that there is nobody to write to any more: the job is done.
func gone(err error) error {
	if errors.Is(err, event.ErrErased) || errors.Is(err, user.ErrNotFound) {
		return nil
	}
	return err
}

// link leads to a page of the frontend that asks for a token.
func (m *Mails) link(path, token string) string {
	return m.Frontend + path + "?" + url.Values{"token": {token}}.Encode()
}

func (m *Mails) name(ctx context.Context, s user.State) string {
	name, err := m.Accounts.Text(ctx, s.FirstName)
	if err != nil {
		return ""
	}
	return name
}

func (m *Mails) verification(ctx context.Context, job reactors.Job[SendVerification]) error {
	s, err := m.Accounts.Load(ctx, job.Args.User)
	if err != nil || s.Verified {
		return gone(err)
	}
	token, err := m.Accounts.IssueToken(ctx, credentials.Verify, job.Args.User, s)
	if err != nil {
		return err
	}
	return m.send(ctx, "verification", job.ID, job.Event, s.Email, letter{Name: m.name(ctx, s), Link: m.link("/auth/verify-email", token)})
}

func (m *Mails) reset(ctx context.Context, job reactors.Job[SendReset]) error {
	id, s, err := m.Accounts.HolderOf(ctx, job.Args.EmailKey)
	if err != nil || id == uuid.Nil || s.Provider != user.ByEmail || !s.Trusted() {
		return err
	}
	token, err := m.Accounts.IssueToken(ctx, credentials.Reset, id, s)
	if err != nil {
		return err
	}
	return m.send(ctx, "password-reset", job.ID, job.Event, s.Email, letter{Name: m.name(ctx, s), Link: m.link("/auth/reset-password", token)})
}

func (m *Mails) emailNotice(ctx context.Context, job reactors.Job[SendEmailNotice]) error {
	stream := user.Kind.Stream(job.Args.User.String())
	for stored, err := range m.Store.ReadStream(ctx, stream, job.Args.Revision, eventstore.Forwards) {
		if err != nil {
			return err
		}
		r, err := user.Kind.Decode(stored)
		if err != nil {
			return err
		}
		changed, ok := r.Data.(user.EmailChanged)
		if !ok {
			return reactors.GiveUp(fmt.Errorf("revision %d is no change of an address", stored.Revision))
		}
		return m.send(ctx, "email-changed", job.ID, job.Event, changed.Before, letter{})
	}
	return nil
}

func (m *Mails) deletionNotice(ctx context.Context, job reactors.Job[SendDeletionNotice]) error {
	s, err := m.Accounts.Load(ctx, job.Args.User)
	if err != nil || s.DeleteAfter == nil || m.Admin == "" {
		return gone(err)
	}
	// Without a name: this mail stays where nobody erases it.
	return m.sendTo(ctx, "deletion-requested", job.ID, job.Event, m.Admin, letter{
		User: job.Args.User, Until: s.DeleteAfter.In(m.Zone).Format("2 January 2006, 15:04 MST"),
	})
}

func (m *Mails) invitation(ctx context.Context, job reactors.Job[SendInvitation]) error {
	l, err := commands.Load(ctx, m.Commands.Fresh(), workspace.Kind, job.Args.Workspace.String())
	if err != nil {
		return err
	}
	i, open := l.State.Invitations[job.Args.Invitation]
	if !open {
		return nil
	}
	token, err := m.Accounts.Credentials.Mailed.Issue(ctx, credentials.Invitation, job.Args.Invitation)
	if err != nil {
		return err
	}
	return m.send(ctx, "invitation", job.ID, job.Event, i.Email, letter{
		Link:  m.link("/invitations/accept", flows.InvitationToken(job.Args.Workspace, token)),
		Until: i.ExpiresAt.In(m.Zone).Format("2 January 2006"),
	})
}
