package marketplacereact

import (
	"cmp"
	"context"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	netmail "net/mail"
	"strconv"
	"strings"
	"text/template"
	"time"
	"unicode"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/commands/accesscmd"
	"bahi/commands/accesscmd/credentials"
	"bahi/commands/marketplacecmd"
	"bahi/domain/access/user"
	"bahi/domain/actor"
	"bahi/domain/event"
	"bahi/domain/marketplace/company"
	"bahi/domain/marketplace/companycontact"
	"bahi/domain/marketplace/enquiry"
	"bahi/domain/messaging/network"
	"bahi/domain/person"
	"bahi/providers/chat"
	"bahi/providers/crm"
	"bahi/providers/mail"
	"bahi/reactors"
	"bahi/reactors/accessreact"
	"bahi/readmodels"
	"bahi/readmodels/accessview"
	"bahi/readmodels/marketplaceview"
	"bahi/readmodels/messagingview"
)

// CRM accepts leads. To returns its display name. An error of Push is a [*crm.Refused] if a retry is useless.
type CRM interface {
	Push(ctx context.Context, l crm.Lead) (id string, err error)
	To() string
}

// Sender is the deployment's own sender on the chat network.
type Sender struct {
	Networks *chat.Networks
	Account  network.Account
	Template network.Filled // no name: a text is sent, which reaches only phones that wrote within a day
}

// Send notifies a phone of an enquiry by the text, or by the template with its values, which are one line each. A retry has the same id.
func (s Sender) Send(ctx context.Context, id, to, text string, values []string) error {
	m := network.Message{ID: id, To: to, Text: text}
	if s.Template.Name != "" {
		filled := s.Template
		for i, v := range values {
			filled.Body = append(filled.Body, network.Value{Name: strconv.Itoa(i + 1), Text: v})
		}
		m.Text, m.Template = "", &filled
	}
	_, err := s.Networks.Send(ctx, s.Account, m)
	// A message with an unknown outcome is sent again: a company may get it twice.
	if f := chat.AsFailure(err); f != nil && !f.Reason.Retryable() && f.Reason != network.Unknown {
		err = ended{err.Error()}
	}
	return err
}

// Notices notifies companies.
type Notices struct {
	Commands   *commands.Handler
	Accounts   *accesscmd.Accounts
	People     *accessview.Views
	Views      *marketplaceview.Views
	Heard      *messagingview.Views
	Mailer     accessreact.Mailer
	Chat       Sender
	CRM        CRM
	Jobs       reactors.Adder
	Frontend   string // base of links: https://example.org
	MaxNotices int64  // maximum notifications of a company within an hour, before it gets digests; 0: 300
}

// policy makes eight attempts within about 24 hours (CONTRACT.md 3.6).
var policy = reactors.Policy{Attempts: 8, First: 79 * time.Second}

// notifyTimeout is the timeout for one enquiry. notifyPolicy has the timeout for a whole job.
const notifyTimeout = 30 * time.Second

var notifyPolicy = reactors.Policy{Attempts: policy.Attempts, First: policy.First, Timeout: (maxAsked + 1) * notifyTimeout}

// maxPerHour is the maximum of single notifications of a company within an hour (CONTRACT.md M15).
const maxPerHour = 300

// Workers returns the workers of notices.
func (n *Notices) Workers() reactors.Workers {
	return reactors.Workers{
		worker[byMail](n, enquiry.Email, n.mail), worker[byChat](n, enquiry.Chat, n.chat), worker[toCRM](n, enquiry.CRM, n.push),
		reactors.Work(policy, n.digest),
		reactors.Work(policy, n.confirm),
		reactors.Work(policy, n.contactChange),
	}
}

// worker returns the worker of notifications in one way.
func worker[By interface{ kind() string }](n *Notices, port enquiry.Port, do sendOne) reactors.Worker {
	return reactors.Work(notifyPolicy, func(ctx context.Context, job reactors.Job[notify[By]]) error {
		return n.sendAll(ctx, port, job.Args.all(), job.Attempt, do, func(a EnquiryBatch) reactors.Args { return notify[By]{a} })
	})
}

//go:embed texts/*.txt
var texts embed.FS

var templates = template.Must(template.ParseFS(texts, "texts/*.txt"))

// letter has the values of the templates.
type letter struct {
	Company, Link                        string
	Name, Email, Phone, Product, Message string
	Quantity, Count                      int64
}

// text fills a template.
func text(name string, l letter) (string, error) {
	var b strings.Builder
	if err := templates.ExecuteTemplate(&b, name+".txt", l); err != nil {
		return "", fmt.Errorf("write a notice: %w", err)
	}
	return strings.TrimSpace(b.String()), nil
}

// harmless replaces the parts of a buyer's text that mail programs turn into links.
var harmless = strings.NewReplacer("://", "[:]//", "www.", "www[.]", "WWW.", "WWW[.]")

// line returns a text as one line without links.
func line(s string) string {
	return harmless.Replace(strings.Join(strings.FieldsFunc(s, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) }), " "))
}

// asked is an enquiry with the data that a notice needs.
type asked struct {
	enquiry.State

	id        uuid.UUID
	position  event.Position // position of its last event
	company   company.State
	workspace uuid.UUID
	product   string
}

// errGone ends a notification of an erased enquiry.
var errGone = errors.New("the buyer was erased")

// skip is the reason why a notification is not sent at all.
type skip string

func (s skip) Error() string { return string(s) }

// ended is a failure that excludes another attempt.
type ended struct{ why string }

func (e ended) Error() string { return e.why }

// load returns an enquiry with its buyer's personal values opened.
func (n *Notices) load(ctx context.Context, id uuid.UUID) (a asked, err error) {
	l, err := commands.Load(ctx, n.Commands.Cached(), enquiry.Kind, id.String())
	if err != nil || l.State.Status == "" {
		return a, err
	}
	a.id, a.workspace, a.position = id, l.Workspace, l.Position
	if a.State, err = commands.Reveal(ctx, n.Commands, l.State); err != nil {
		return a, err
	}
	to, err := commands.Load(ctx, n.Commands.Cached(), company.Kind, l.State.Company.String())
	if err != nil {
		return a, err
	}
	a.company = to.State
	if l.State.Product != nil {
		p, err := marketplacecmd.LoadProduct(ctx, n.Commands, *l.State.Product)
		if err != nil {
			return a, err
		}
		a.product = p.Name
	}
	return a, nil
}

// letter returns the values of a text about an enquiry, or errGone.
func (n *Notices) letter(a asked) (letter, error) {
	if a.Email.Erased() {
		return letter{}, errGone
	}
	shown := func(p event.Personal) string { return line(*cmp.Or(p.Shown(), new(""))) }
	l := letter{
		Company: line(a.company.Name), Link: n.Frontend + "/enquiries/" + a.id.String(), Name: shown(a.Name), Email: shown(a.Email),
		Phone: shown(a.Phone), Product: line(a.product),
	}
	if a.Message.Shown() != nil {
		l.Message = harmless.Replace(*a.Message.Shown())
	}
	if a.Quantity != nil {
		l.Quantity = *a.Quantity
	}
	return l, nil
}

// maxOfPlace is the maximum length of a template's parameter, in characters.
const maxOfPlace = 500

// places returns a template's parameters {{1}} to {{5}}: the company, the buyer's name and address, the product, and a link. The network
// requires one line of text in each.
func (l letter) places() []string {
	about := l.Product
	if l.Quantity > 0 {
		about = fmt.Sprintf("%d %s", l.Quantity, about)
	}
	values := []string{l.Company, l.Name, line(l.Email + " " + l.Phone), line(about + " " + l.Message), l.Link}
	for i, v := range values[:4] {
		if runes := []rune(v); len(runes) > maxOfPlace {
			v = string(runes[:maxOfPlace])
		}
		values[i] = cmp.Or(v, "-")
	}
	return values
}

// crowded returns a skip if a company has too many enquiries in this hour, and schedules a digest of them.
func (n *Notices) crowded(ctx context.Context, at *readmodels.At, a asked) error {
	hour := n.Commands.Now().Truncate(time.Hour)
	most := cmp.Or(n.MaxNotices, maxPerHour)
	count, err := n.Views.CountEnquiries(ctx, at, a.workspace, a.Company, hour, most+1)
	if err != nil || count <= most {
		return err
	}
	if err := n.Jobs.Add(ctx, sendDigest{Company: a.Company, Hour: hour.Unix()}); err != nil {
		return err
	}
	return skip("too many enquiries within an hour: a digest follows")
}

func (n *Notices) mail(ctx context.Context, at *readmodels.At, a asked) (note enquiry.Note, err error) {
	l, err := n.letter(a)
	if err == nil {
		err = n.crowded(ctx, at, a)
	}
	if err != nil {
		return note, err
	}
	to, err := n.recipient(ctx, at, a.Company, a.company, a.workspace)
	if err != nil {
		return note, err
	}
	return note, n.send(ctx, "enquiry", base64.RawURLEncoding.EncodeToString(a.id[:]), to, l, accessreact.MarkOf(enquiry.Buyers.Of(a.Buyer)))
}

// send mails a text. The text's first line is the subject. A retry has the same id.
func (n *Notices) send(ctx context.Context, kind, id string, to recipient, l letter, marks ...string) error {
	said, err := text(kind, l)
	if err != nil {
		return err
	}
	subject, body, _ := strings.Cut(said, "\n")
	name := strings.Join(append(append(append([]string{kind}, marks...), to.marks...), id), "-")
	err = n.Mailer.Send(ctx, mail.Message{ID: name, To: netmail.Address{Address: to.address}, Subject: subject,
		Text: strings.TrimLeft(body, "\n")})
	if _, permanent := errors.AsType[*mail.Permanent](err); permanent {
		return ended{"the mail was refused"}
	}
	return err
}

// recipient is a company's recipient of notices. The names of mails contain the marks, so that an erasure finds the mails.
type recipient struct {
	address string
	marks   []string
}

// recipient returns the company's confirmed address, else the verified address of the oldest member who may write (CONTRACT.md M1).
func (n *Notices) recipient(ctx context.Context, at *readmodels.At, id uuid.UUID, c company.State, workspace uuid.UUID) (recipient, error) {
	if c.EmailConfirmed {
		s, err := commands.Reveal(ctx, n.Commands, c)
		if err != nil || s.Email.Shown() != nil {
			return recipient{*cmp.Or(s.Email.Shown(), new("")), []string{accessreact.MarkOf(c.EmailSubject(id.String()))}}, err
		}
	}
	members, err := n.People.Members(ctx, at, workspace)
	if err != nil {
		return recipient{}, err
	}
	for _, m := range members {
		if !m.Permissions.Level(actor.Marketplace).Allows(actor.Write) {
			continue
		}
		s, err := n.Accounts.Load(ctx, m.UserID)
		if errors.Is(err, user.ErrNotFound) || err == nil && !s.Verified {
			continue
		}
		if err != nil {
			return recipient{}, err
		}
		address, err := n.Accounts.Text(ctx, s.Email)
		if errors.Is(err, event.ErrErased) || err == nil && address == "" {
			continue
		}
		return recipient{address, []string{accessreact.Mark(accesscmd.Recipient(s.EmailKey))}}, err
	}
	return recipient{}, skip("the company has no confirmed address")
}

func (n *Notices) chat(ctx context.Context, at *readmodels.At, a asked) (note enquiry.Note, err error) {
	phone, err := person.Phone("phone", a.company.Profile.Phone.Value)
	if err != nil || phone == "" {
		return note, skip("the company has no phone")
	}
	l, err := n.letter(a)
	if err != nil {
		return note, err
	}
	wrote, err := n.Heard.Wrote(ctx, at, a.workspace, strings.TrimPrefix(phone, "+"))
	if err == nil && !wrote {
		err = skip("the company's phone has never written")
	}
	if err == nil {
		err = n.crowded(ctx, at, a)
	}
	if err != nil {
		return note, err
	}
	note.To, note.Buyer = phone, a.Buyer
	if note.Said, err = text("chat", l); err != nil {
		return note, err
	}
	return note, n.Chat.Send(ctx, enquiry.NoticePrefix+a.id.String(), strings.TrimPrefix(phone, "+"), note.Said, l.places())
}

func (n *Notices) push(ctx context.Context, _ *readmodels.At, a asked) (note enquiry.Note, err error) {
	l, err := n.letter(a)
	if err != nil {
		return note, err
	}
	note.To, note.Buyer = n.CRM.To(), a.Buyer
	if note.Said, err = text("chat", l); err != nil {
		return note, err
	}
	shown := func(p event.Personal) string { return *cmp.Or(p.Shown(), new("")) }
	phone, _ := person.Phone("user_phone", shown(a.Phone)) // an invalid phone is omitted
	note.Lead, err = n.CRM.Push(ctx, crm.Lead{
		ID: a.id.String(), Name: shown(a.Name), Email: shown(a.Email), Phone: phone, Company: a.company.Name, Product: a.product,
		Message: shown(a.Message), Source: a.Source, Quantity: l.Quantity,
	})
	if _, refused := errors.AsType[*crm.Refused](err); refused {
		err = ended{err.Error()}
	}
	return note, err
}

// digest waits for the hour to end.
func (n *Notices) digest(ctx context.Context, job reactors.Job[sendDigest]) error {
	hour := time.Unix(job.Args.Hour, 0)
	if left := hour.Add(time.Hour).Sub(n.Commands.Now()); left > 0 {
		return reactors.Snooze(left)
	}
	l, err := commands.Load(ctx, n.Commands.Fresh(), company.Kind, job.Args.Company.String())
	if err != nil || l.State.Name == "" {
		return err
	}
	count, err := n.Views.CountEnquiries(ctx, nil, l.Workspace, job.Args.Company, hour, math.MaxInt64)
	if err != nil {
		return err
	}
	return n.write(ctx, nil, notice{"digest", job.ID, job.Args.Company}, l, letter{Link: n.Frontend + "/enquiries", Count: count})
}

// notice is the kind of a mail, the job that sends it, and the company that receives it.
type notice struct {
	kind    string
	job     int64
	company uuid.UUID
}

// write mails a text to a company. It does nothing if the company has no address.
func (n *Notices) write(ctx context.Context, at *readmodels.At, o notice, of commands.Loaded[company.State], l letter,
	marks ...string) error {
	to, err := n.recipient(ctx, at, o.company, of.State, of.Workspace)
	if err == nil {
		l.Company = line(of.State.Name)
		err = n.send(ctx, o.kind, strconv.FormatInt(o.job, 10), to, l, marks...)
	}
	return settled(err)
}

// settled returns nil for a skip, and cancels the job after a final failure.
func settled(err error) error {
	if _, skipped := errors.AsType[skip](err); skipped {
		return nil
	}
	if _, final := errors.AsType[ended](err); final {
		return reactors.GiveUp(err)
	}
	return err
}

func (n *Notices) confirm(ctx context.Context, job reactors.Job[confirmCompanyEmail]) error {
	l, err := commands.Load(ctx, n.Commands.Fresh(), company.Kind, job.Args.Company.String())
	if err != nil || l.State.EmailKey == "" || l.State.EmailConfirmed {
		return err
	}
	s, err := commands.Reveal(ctx, n.Commands, l.State)
	if err != nil || s.Email.Shown() == nil {
		return err
	}
	token, err := n.Accounts.Credentials.Mailed.Issue(ctx, credentials.CompanyEmail, credentials.Mailing{
		Subject: marketplacecmd.EmailToken(job.Args.Company, s.EmailKey), Recipient: accesscmd.Recipient(s.EmailKey), Number: job.ID,
	})
	switch {
	case errors.Is(err, credentials.ErrMailed):
		return nil
	case errors.Is(err, credentials.ErrTooMany):
		return reactors.GiveUp(err)
	case err != nil:
		return err
	}
	link := n.Frontend + "/companies/confirm-email?token=" + job.Args.Company.String() + "." + token
	to := recipient{*s.Email.Shown(), []string{accessreact.MarkOf(s.EmailSubject(job.Args.Company.String()))}}
	return settled(n.send(ctx, "confirm", strconv.FormatInt(job.ID, 10), to, letter{Company: line(s.Name), Link: link}))
}

// contactChange notifies a company of a non-member's change, unless it was notified lately. A retry sends the same notice.
func (n *Notices) contactChange(ctx context.Context, job reactors.Job[notifyContactChange]) error {
	c, err := commands.Load(ctx, n.Commands.Fresh(), companycontact.Kind, job.Args.Contact.String())
	if err != nil || c.State.Company == uuid.Nil {
		return err
	}
	l, err := commands.Load(ctx, n.Commands.Fresh(), company.Kind, c.State.Company.String())
	if err != nil || l.State.Name == "" {
		return err
	}
	req := commands.Request{
		Actor: actor.Actor{Type: "system", ID: "notices", Workspace: l.Workspace}, Workspace: l.Workspace,
		Key: job.Event.String(), Operation: notifyContactChange{}.Kind(), Fingerprint: job.Event[:],
	}
	out, err := commands.Handle(ctx, n.Commands, req, companycontact.NoticeKind, job.Args.Contact.String(),
		companycontact.Tell{Now: n.Commands.Now()})
	if err != nil || !out.Changed {
		return err
	}
	return n.write(ctx, new(readmodels.At).After(out.Position), notice{"contact", job.ID, c.State.Company}, l,
		letter{Link: n.Frontend + "/contacts/" + job.Args.Contact.String()},
		accessreact.MarkOf(companycontact.Subjects.Of(job.Args.Contact.String())))
}
