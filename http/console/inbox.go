package console

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"bahi/commands"
	access "bahi/commands/access"
	"bahi/commands/access/credentials"
	flows "bahi/commands/messaging"
	"bahi/domain/actor"
	"bahi/domain/fault"
	"bahi/domain/messaging/channel"
	"bahi/domain/messaging/contact"
	"bahi/domain/messaging/message"
	"bahi/domain/patch"
	"bahi/http/api"
	"bahi/readmodels"
	memberships "bahi/readmodels/access"
	views "bahi/readmodels/messaging"
)

// InboxPath is the path of the inbox.
const InboxPath = "/inbox"

const inboxCookie = "bahi_inbox"

// InboxConfig has what the inbox needs beside what every site does.
type InboxConfig struct {
	Accounts  *access.Accounts
	Sessions  *credentials.Sessions
	Entrance  api.Workspaces
	Members   *memberships.Views
	Commands  *commands.Handler
	Views     *views.Views
	Messaging Conversations
	Bots      Trials
	Live      Changes
}

// Changes tells of contacts that have changed or have written. 0 stands for any contact.
type Changes interface {
	Changed(ctx context.Context, workspace uuid.UUID, tell func(contacts []int64) error) error
}

// Conversations writes to contacts.
type Conversations interface {
	SendTo(ctx context.Context, req commands.Request, contact int64, b message.ToContact, admit func(channel int64) error) (commands.Outcome[message.State], error)
	Read(ctx context.Context, req commands.Request, contact, upTo int64) (commands.Outcome[message.State], error)
}

// NewInbox returns the pages on which members of a workspace answer its contacts. They are a client of the same views and commands as the API.
func NewInbox(config Config, inbox InboxConfig) (*Console, error) {
	config.Sessions = inbox.Sessions
	return complete(&Console{Config: config, inbox: &inbox, site: site{
		path: InboxPath, name: "inbox", folder: "templates/inbox", cookie: inboxCookie, enter: (*visit).enterMember, signIn: (*visit).signInMember,
		sections:  []section{{"/", "Open"}, {"/pending", "Pending"}, {"/resolved", "Resolved"}, {"/all", "All"}, {"/bots", "Bots"}},
		confirmed: map[string]string{"sent": "Sent.", "status": "The status was set.", "bot": "Saved.", "workspace": "You are in another workspace now."},
	}}, (*Console).inboxRoutes)
}

func (c *Console) inboxRoutes() {
	c.everywhere()
	for _, status := range []string{"", "pending", "resolved", "all"} {
		c.show("GET /"+pattern(status), func(v *visit) (page, error) { return v.conversations(status, "") })
		c.show("GET /live/"+status, func(v *visit) (page, error) { return v.conversations(status, "live") })
	}
	c.show("GET /news", (*visit).news)
	c.show("GET /contacts/{id}", func(v *visit) (page, error) { return v.conversation("") })
	c.show("GET /contacts/{id}/live", func(v *visit) (page, error) { return v.conversation("live") })
	c.act("POST /contacts/{id}/messages", (*visit).answer)
	c.act("POST /contacts/{id}/status", (*visit).setStatus)
	c.act("POST /contacts/{id}/bot", (*visit).setBot)
	c.act("POST /workspace", (*visit).chooseWorkspace)
	c.botRoutes()
}

func pattern(status string) string {
	if status == "" {
		return "{$}"
	}
	return status
}

var errNoMember = fault.New(fault.Forbidden, "Your account may not read the messages of this workspace")

// enterMember signs in the user of the session, in the workspace that they have chosen.
func (v *visit) enterMember(s session) error {
	bearer, err := v.inbox.Sessions.Access(v.r.Context(), credentials.Bearer{User: s.Of, Session: s.ID})
	if err != nil {
		return err
	}
	ctx, who, err := api.Authenticate(v.r.Context(), bearer)
	if refusedAsUnknown(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if s.In != uuid.Nil && s.In != who.Workspace {
		if other, err := v.inbox.Entrance.Enter(ctx, who, s.In); err == nil { // who was removed is at home again
			who, who.Workspace = other, s.In
		}
	}
	v.r = v.r.WithContext(ctx)
	v.who = who
	return nil
}

// signInMember gives the same response for every pair that does not sign in.
func (v *visit) signInMember() (string, error) {
	ctx := v.r.Context()
	if err := api.Count(ctx, limitGroup); err != nil {
		return "", err
	}
	next := v.within(v.r.PostFormValue("next"))
	in, err := v.inbox.Accounts.SignIn(ctx, commands.Request{RequestID: api.RequestID(ctx)}, v.r.PostFormValue("email"), v.r.PostFormValue("password"))
	if refusedAsUnknown(err) {
		return "", wrongKey{next}
	}
	if err != nil {
		return "", err
	}
	return next, v.keep(session{Token: rand.Text(), ID: in.Tokens.Session, Of: in.Tokens.User, Ends: v.Now().Add(sessionLasts)})
}

// chooseWorkspace goes to another workspace of the user's.
func (v *visit) chooseWorkspace() (string, error) {
	to, err := uuid.Parse(v.r.PostFormValue("workspace"))
	if err != nil {
		return "", fault.Fields(fault.Field{Field: "workspace", Message: "expected one of yours"})
	}
	if to != v.who.Workspace {
		if _, err := v.inbox.Entrance.Enter(v.r.Context(), v.who, to); err != nil {
			return "", err
		}
	}
	s := v.session
	s.In = to
	return v.path + "/?done=workspace", v.keep(s)
}

// may refuses who has not the level in the workspace.
func (v *visit) may(level actor.Level) error {
	if !v.who.May(actor.Messaging, level) {
		return errNoMember
	}
	return nil
}

func (v *visit) request() commands.Request {
	return commands.Request{Actor: v.who, Workspace: v.who.Workspace, RequestID: api.RequestID(v.r.Context())}
}

// changed is the event that tells an open page to look again.
type changed struct {
	Contacts []int64 `json:"contacts"` // 0: any
}

// news tells the page of a browser what has changed in the workspace. All pages of a workspace share one reader.
func (v *visit) news() (page, error) {
	if err := v.may(actor.Read); err != nil {
		return page{}, err
	}
	still := func(ctx context.Context) error {
		again := v.visit(v.w, v.r.WithContext(ctx))
		if err := again.recall(); err != nil {
			return err
		}
		if again.who.Workspace != v.who.Workspace {
			return errNoMember
		}
		return again.may(actor.Read)
	}
	return page{events: func() {
		api.Tell(v.r.Context(), map[string]any{"news": changed{}}, still, func(ctx context.Context, send func(api.Event) error) error {
			return v.inbox.Live.Changed(ctx, v.who.Workspace, func(contacts []int64) error { return send(api.Event{Data: changed{contacts}}) })
		})
	}}, nil
}

// pageSize is the number of conversations of a page, and of messages of a conversation.
const pageSize = 30

// inboxList is the content of a list of conversations.
type inboxList struct {
	Status     string // open, pending, resolved or all
	Rows       []views.Contact
	Pages      pages
	Live       string // the address of the list alone
	Workspaces []memberships.Membership
	Here       uuid.UUID
}

func (v *visit) conversations(status, part string) (page, error) {
	if err := v.may(actor.Read); err != nil {
		return page{}, err
	}
	b := inboxList{Status: status, Here: v.who.Workspace}
	if b.Status == "" {
		b.Status = contact.Open
	}
	wanted := b.Status
	if wanted == "all" {
		wanted = ""
	}
	n := number(v.r.URL.Query().Get("page"))
	rows, err := v.inbox.Views.Conversations(v.r.Context(), v.who.Workspace, wanted, int64(n-1)*pageSize, pageSize+1)
	if err != nil {
		return page{}, err
	}
	b.Pages = pages{Now: n, Previous: n - 1, Link: v.path + "/" + status + "?page="}
	if b.Rows = rows[:min(len(rows), pageSize)]; len(rows) > pageSize {
		b.Pages.Next = n + 1
	}
	if id, err := uuid.Parse(v.who.ID); err == nil {
		if b.Workspaces, err = v.inbox.Members.WorkspacesOf(v.r.Context(), id); err != nil {
			return page{}, err
		}
	}
	b.Live = fmt.Sprintf("%s/live/%s?page=%d", v.path, status, n)
	return page{template: "conversations", title: "Conversations", part: part, body: b, live: true}, nil
}

// talk is the content of a conversation.
type talk struct {
	Contact   views.Contact
	Messages  []views.Message // oldest first
	Channels  []views.Channel
	Templates []views.Template
	Once      string // names the form's answer, so that one that is sent twice is one message
	Statuses  []string
	MayWrite  bool
	Live      string
	Earlier   string // the address of the messages before these; empty: there are none
	Past      bool   // these are not the newest
}

func (v *visit) conversation(part string) (page, error) {
	if err := v.may(actor.Read); err != nil {
		return page{}, err
	}
	ctx, in := v.r.Context(), v.who.Workspace
	id := v.contact()
	b := talk{Once: rand.Text(), Statuses: []string{"open", "pending", "resolved"}, MayWrite: v.may(actor.Write) == nil, Live: fmt.Sprintf("%s/contacts/%d/live", v.path, id)}
	var err error
	if b.Contact, err = v.inbox.Views.Contact(ctx, in, id); err != nil {
		return page{}, err
	}
	before, _ := strconv.ParseInt(v.r.URL.Query().Get("before"), 10, 64) // 0 asks for the newest
	if b.Messages, err = v.inbox.Views.Messages(ctx, in, id, before, pageSize+1); err != nil {
		return page{}, err
	}
	if b.Past = before != 0; len(b.Messages) > pageSize {
		b.Messages = b.Messages[:pageSize]
		b.Earlier = fmt.Sprintf("%s/contacts/%d?before=%s", v.path, id, strings.TrimPrefix(b.Messages[pageSize-1].ID, message.Name("")))
	}
	slices.Reverse(b.Messages)
	if part == "" {
		if b.Channels, _, err = v.inbox.Views.Channels(ctx, in, readmodels.Page{Number: 1, Size: 100}, views.ChannelFilter{}); err != nil {
			return page{}, err
		}
		b.Channels = b.reaching(b.Channels)
		if b.Templates, _, err = v.inbox.Views.Templates(ctx, in, readmodels.Page{Number: 1, Size: 100}, views.TemplateFilter{}); err != nil {
			return page{}, err
		}
	}
	if b.MayWrite && b.Contact.Unread > 0 {
		if _, err := v.inbox.Messaging.Read(ctx, v.request(), id, 0); err != nil {
			return page{}, err
		}
	}
	title := "A contact"
	if b.Contact.Name != nil {
		title = *b.Contact.Name
	}
	return page{template: "conversation", title: title, part: part, body: b}, nil // a reload would lose what is being written
}

// reaching returns the channels by which the contact can be written to, that of the newest message first.
func (b talk) reaching(all []views.Channel) []views.Channel {
	last := func(id int64) int {
		for i, m := range slices.Backward(b.Messages) {
			if m.ChannelID == id {
				return i
			}
		}
		return -1
	}
	all = slices.DeleteFunc(all, func(c views.Channel) bool {
		switch {
		case last(c.ID) >= 0:
			return false
		case c.Type == channel.Chat:
			return b.Contact.Phone == nil
		default:
			return c.Type != channel.Gmail || b.Contact.Email == nil
		}
	})
	slices.SortStableFunc(all, func(x, y views.Channel) int { return last(y.ID) - last(x.ID) })
	return all
}

// answer sends what the form has: a text, an image, or a template.
func (v *visit) answer() (string, error) {
	if err := v.may(actor.Write); err != nil {
		return "", err
	}
	form := v.r.PostForm
	b := message.ToContact{Text: strings.TrimSpace(form.Get("text")), ImageURL: strings.TrimSpace(form.Get("image")), TemplateParams: map[string]string{}}
	b.ChannelID, _ = strconv.ParseInt(form.Get("channel"), 10, 64)   // 0 is refused
	b.TemplateID, _ = strconv.ParseInt(form.Get("template"), 10, 64) // 0 is none
	if b.ImageURL != "" {
		b.Caption, b.Text = b.Text, ""
	}
	for name, value := range form {
		if place, is := strings.CutPrefix(name, "value-"); is && len(value) == 1 && value[0] != "" {
			b.TemplateParams[place] = value[0]
		}
	}
	id, req := v.contact(), v.request()
	req.Key, req.Operation = form.Get("once"), "inbox-answer"
	_, err := v.inbox.Messaging.SendTo(v.r.Context(), req, id, b, func(of int64) error {
		return api.CountFor(v.r.Context(), "chat_send", strconv.FormatInt(of, 10))
	})
	return v.talkAt(id, "sent"), err
}

func (v *visit) talkAt(id int64, done string) string {
	return fmt.Sprintf("%s/contacts/%d?done=%s#write", v.path, id, done)
}

func (v *visit) setStatus() (string, error) {
	return v.edit("status", contact.Edit{Status: patch.Set(v.r.PostFormValue("status"))})
}

func (v *visit) setBot() (string, error) {
	return v.edit("bot", contact.Edit{ReplyBot: patch.Set(v.r.PostFormValue("bot") == "on")})
}

func (v *visit) edit(done string, c contact.Edit) (string, error) {
	if err := v.may(actor.Write); err != nil {
		return "", err
	}
	if status := c.Status; status.Named() && !slices.Contains([]string{"open", "pending", "resolved"}, status.Value) {
		return "", fault.Fields(fault.Field{Field: "status", Message: "expected one of open, pending, resolved"})
	}
	id := v.contact()
	c.ID = strconv.FormatInt(id, 10)
	_, err := flows.EditContact(v.r.Context(), v.inbox.Commands, v.request(), c)
	return v.talkAt(id, done), err
}

// contact returns the id in the path, 0 for none.
func (v *visit) contact() int64 {
	id, err := strconv.ParseInt(v.r.PathValue("id"), 10, 64)
	if err != nil {
		return 0
	}
	return id
}

// refusedAsUnknown reports whether an error says that a credential is none.
func refusedAsUnknown(err error) bool {
	refused, is := errors.AsType[*fault.Error](err)
	return is && refused.Kind == fault.Unauthorized
}
