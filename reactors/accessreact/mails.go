package accessreact

import (
	"context"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	netmail "net/mail"
	"net/url"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/commands/accesscmd"
	"bahi/commands/accesscmd/credentials"
	"bahi/domain/access/user"
	"bahi/domain/access/workspace"
	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/providers/mail"
	"bahi/reactors"
)

// Mailer sends mails. A retry has the same id, which identifies the mail. Its error is a [*mail.Permanent] if a retry is useless.
type Mailer interface {
	Send(ctx context.Context, m mail.Message) error
}

// Mails writes the mails to people.
type Mails struct {
	Accounts *accesscmd.Accounts
	Commands *commands.Handler
	Store    eventstore.Store
	Mailer   Mailer
	Frontend string // base of links: https://example.org
	Admin    string // address for requests for deletion; empty: none
	Zone     *time.Location
	Log      *slog.Logger
}

// Workers returns the workers of mails.
func (m *Mails) Workers() reactors.Workers {
	return reactors.Workers{
		reactors.Work(reactors.Policy{}, m.verification),
		reactors.Work(reactors.Policy{}, m.reset),
		reactors.Work(reactors.Policy{}, m.emailNotice),
		reactors.Work(reactors.Policy{}, m.deletionNotice),
		reactors.Work(reactors.Policy{}, m.deletionReceipt),
		reactors.Work(reactors.Policy{}, m.invitation),
		reactors.Work(reactors.Policy{}, m.strayNotice),
	}
}

//go:embed mails/*.txt
var texts embed.FS

var templates = template.Must(template.ParseFS(texts, "mails/*.txt"))

// letter has the values of the templates.
type letter struct {
	Name  string // set only for a user with a verified address: otherwise any user could mail any text to any address
	Link  string
	User  uuid.UUID
	Until string
}

// about has the owners of a mail. The mail's name contains them, so an erasure finds it even without the user's key.
type about struct {
	of       uuid.UUID // the user or the invitation; [uuid.Nil]: none
	emailKey string    // key of the recipient's address; empty: the administrator
}

// Mark returns the mark of an id in mail names, one word between hyphens.
func Mark(id uuid.UUID) string { return hex.EncodeToString(id[:]) }

// name returns the id of a job's mail, the same for each retry.
func (a about) name(kind string, job int64) string {
	parts := []string{kind}
	if a.of != uuid.Nil {
		parts = append(parts, Mark(a.of))
	}
	if a.emailKey != "" {
		parts = append(parts, Mark(accesscmd.Recipient(a.emailKey)))
	}
	return strings.Join(append(parts, strconv.FormatInt(job, 10)), "-")
}

// send mails a text to a sealed address. The text's first line is the subject. send does nothing if the address was erased.
func (m *Mails) send(ctx context.Context, kind string, job int64, a about, to event.Personal, l letter) error {
	address, err := m.Accounts.Text(ctx, to)
	if err != nil || address == "" {
		return gone(err)
	}
	return m.sendTo(ctx, kind, job, a, address, l)
}

func (m *Mails) sendTo(ctx context.Context, kind string, job int64, a about, address string, l letter) error {
	var text strings.Builder
	if err := templates.ExecuteTemplate(&text, kind+".txt", l); err != nil {
		return fmt.Errorf("write a mail: %w", err)
	}
	subject, body, _ := strings.Cut(text.String(), "\n")
	err := m.Mailer.Send(ctx, mail.Message{ID: a.name(kind, job), To: netmail.Address{Address: address}, Subject: subject,
		Text: strings.TrimLeft(body, "\n")})
	if _, permanent := errors.AsType[*mail.Permanent](err); permanent {
		return reactors.GiveUp(err)
	}
	return err
}

// spared returns the result of a job that sends no mail now.
func spared(err error) error {
	switch {
	case errors.Is(err, credentials.ErrMailed):
		return nil
	case errors.Is(err, credentials.ErrTooMany): // operators see it in the list of jobs
		return reactors.GiveUp(err)
	default:
		return err
	}
}

// gone returns nil if err means that the recipient no longer exists: the job is done.
func gone(err error) error {
	if errors.Is(err, event.ErrErased) || errors.Is(err, user.ErrNotFound) {
		return nil
	}
	return err
}

// link returns the URL of a page of the frontend for a token.
func (m *Mails) link(path, token string) string {
	return m.Frontend + path + "?" + url.Values{"token": {token}}.Encode()
}

func (m *Mails) verification(ctx context.Context, job reactors.Job[sendVerification]) error {
	s, err := m.Accounts.Load(ctx, job.Args.User)
	if err != nil || s.Verified || s.EmailKey == "" {
		return gone(err)
	}
	token, err := m.Accounts.IssueToken(ctx, credentials.Verify, job.Args.User, s, job.ID)
	if err != nil {
		return spared(err)
	}
	return m.send(ctx, "verification", job.ID, about{job.Args.User, s.EmailKey}, s.Email, letter{Link: m.link("/auth/verify-email", token)})
}

func (m *Mails) reset(ctx context.Context, job reactors.Job[sendReset]) error {
	id, s, err := m.Accounts.HolderOf(ctx, job.Args.EmailKey)
	if err != nil || id == uuid.Nil || s.Provider != user.ByEmail || !s.Trusted() {
		return err
	}
	l := letter{}
	if s.Verified {
		if l.Name, err = m.Accounts.Text(ctx, s.FirstName); err != nil {
			return gone(err)
		}
	}
	token, err := m.Accounts.IssueToken(ctx, credentials.Reset, id, s, job.ID)
	if err != nil {
		return spared(err)
	}
	l.Link = m.link("/auth/reset-password", token)
	return m.send(ctx, "password-reset", job.ID, about{id, s.EmailKey}, s.Email, l)
}

// emailNotice mails the previous address only if it was verified, because a user can enter another person's address and then change it. The
// mail explains how to undo the change, unless the change was itself an undo.
func (m *Mails) emailNotice(ctx context.Context, job reactors.Job[sendEmailNotice]) error {
	var (
		before, s user.State
		kind      string
	)
	for stored, err := range m.Store.ReadStream(ctx, user.Kind.Stream(job.Args.User.String()), 0, eventstore.Forwards) {
		if err != nil {
			return err
		}
		r, err := user.Kind.Decode(stored)
		if err != nil {
			return err
		}
		if stored.Revision == job.Args.Revision {
			before = s
			switch r.Data.(type) {
			case user.EmailChanged:
				kind = "email-changed"
			case user.EmailRestored:
				kind = "email-restored"
			default:
				return reactors.GiveUp(fmt.Errorf("revision %d is not a change of the address", stored.Revision))
			}
		}
		s = user.Kind.Evolve(s, r)
	}
	if !before.Verified || !s.Active() {
		return nil
	}
	l := letter{}
	if left, open := s.LeftBy(before.Changes); open && kind == "email-changed" {
		token, err := m.Accounts.IssueUndo(ctx, job.Args.User, left, job.ID)
		switch {
		case err == nil:
			l.Link = m.link("/auth/undo-email-change", token)
		case !errors.Is(err, credentials.ErrMailed) && !errors.Is(err, credentials.ErrTooMany): // send the notice without a link
			return err
		}
	}
	return m.send(ctx, kind, job.ID, about{job.Args.User, before.EmailKey}, before.Email, l)
}

func (m *Mails) deletionNotice(ctx context.Context, job reactors.Job[sendDeletionNotice]) error {
	s, err := m.Accounts.Load(ctx, job.Args.User)
	if err != nil || s.DeleteAfter == nil {
		return gone(err)
	}
	if m.Admin == "" {
		m.Log.Warn("deletion requested, but BAHI_ADMIN_EMAIL names no administrator", "user", job.Args.User)
		return nil
	}
	// The mail does not contain the user's name, because erasures do not reach it.
	return m.sendTo(ctx, "deletion-requested", job.ID, about{}, m.Admin, letter{User: job.Args.User, Until: m.until(*s.DeleteAfter)})
}

func (m *Mails) deletionReceipt(ctx context.Context, job reactors.Job[sendDeletionReceipt]) error {
	s, err := m.Accounts.Load(ctx, job.Args.User)
	if err != nil || s.DeleteAfter == nil || s.EmailKey == "" {
		return gone(err)
	}
	return m.send(ctx, "deletion-receipt", job.ID, about{job.Args.User, s.EmailKey}, s.Email, letter{Until: m.until(*s.DeleteAfter)})
}

func (m *Mails) until(at time.Time) string { return at.In(m.Zone).Format("2 January 2006, 15:04 MST") }

func (m *Mails) invitation(ctx context.Context, job reactors.Job[sendInvitation]) error {
	l, err := commands.Load(ctx, m.Commands.Fresh(), workspace.Kind, job.Args.Workspace.String())
	if err != nil {
		return err
	}
	i, open := l.State.Invitations[job.Args.Invitation]
	if !open {
		return nil
	}
	address, err := m.Accounts.Text(ctx, i.Email)
	if err != nil {
		return gone(err)
	}
	key, err := m.Accounts.EmailKey(ctx, address)
	if err != nil {
		return err
	}
	token, err := m.Accounts.Credentials.Mailed.Issue(ctx, credentials.Invitation, credentials.Mailing{
		Subject: job.Args.Invitation, Recipient: accesscmd.Recipient(key), Number: job.ID,
	})
	if err != nil {
		return spared(err)
	}
	return m.sendTo(ctx, "invitation", job.ID, about{job.Args.Invitation, key}, address, letter{
		Link:  m.link("/invitations/accept", accesscmd.InvitationToken(job.Args.Workspace, token)),
		Until: i.ExpiresAt.In(m.Zone).Format("2 January 2006"),
	})
}

// strayNotice writes to the owner of the workspace.
func (m *Mails) strayNotice(ctx context.Context, job reactors.Job[sendStrayNotice]) error {
	l, err := commands.Load(ctx, m.Commands.Fresh(), workspace.Kind, job.Args.Workspace.String())
	if err != nil {
		return err
	}
	i, open := l.State.Invitations[job.Args.Invitation]
	owner := l.State.Owner
	if !open || owner == uuid.Nil {
		return nil
	}
	s, err := m.Accounts.Load(ctx, owner)
	if err != nil || !s.Verified {
		return gone(err)
	}
	return m.send(ctx, "invitation-strayed", job.ID, about{owner, s.EmailKey}, s.Email,
		letter{Until: i.ExpiresAt.In(m.Zone).Format("2 January 2006")})
}
