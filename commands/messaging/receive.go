package messaging

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/commands/unique"
	"bahi/domain/actor"
	"bahi/domain/claims"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/messaging/channel"
	"bahi/domain/messaging/contact"
	"bahi/domain/messaging/message"
	"bahi/domain/messaging/network"
	"bahi/domain/messaging/template"
	"bahi/domain/patch"
	"bahi/domain/person"
)

// Writer is a person as a network names them. From, UserID or both are there.
type Writer struct {
	From     string // phone; empty: unknown
	UserID   string // the network's id; empty: unknown
	Name     string // as far as the network tells it
	Username string
	Social   bool // of a network where people have no phones
}

// Arrival is a message that came in on a channel.
type Arrival struct {
	Writer

	Channel      int64
	Type         string // empty: text, or image if there is one
	Text, Image  string
	Ref, RefType string // of a file, as the network names it; empty: there is none
	ProviderID   string
	SentAt       time.Time
	ArrivedAt    time.Time // zero: now
	Reacts       string    // the network's id of the message to which it is a reaction
	Code         int       // why its network does not pass it on; 0: it does
	Title        string
	Details      string
	Print        []byte // of the request, where a client of ours has chosen the ProviderID; empty: a network did
}

// claimed returns the record that has a claimed value, 0 for none. One that had it a moment ago, and that this process has at hand, still has it.
func claimed[S any](ctx context.Context, h *commands.Handler, v claims.Value, records *event.Kind[S], key string, of func(S) string) (id int64, s S, err error) {
	for _, from := range []commands.Source{h.Cached(), h.Fresh()} {
		if id, s, err = claimedIn(ctx, from, v, records, key, of); err != nil || id != 0 {
			return id, s, err
		}
	}
	return 0, s, nil
}

func claimedIn[S any](ctx context.Context, from commands.Source, v claims.Value, records *event.Kind[S], key string, of func(S) string) (id int64, s S, err error) {
	claim, err := commands.Load(ctx, from, v.Kind, key)
	if err != nil || claim.State.Holder == "" {
		return 0, s, err
	}
	l, err := commands.Load(ctx, from, records, claim.State.Holder)
	if err != nil || of(l.State) != key {
		return 0, s, err
	}
	id, err = strconv.ParseInt(claim.State.Holder, 10, 64)
	return id, l.State, err
}

// from returns the request of what a channel's network tells.
func (f *Messages) from(ctx context.Context, id int64) (of commands.Loaded[channel.State], req commands.Request, err error) {
	of, err = f.atHand(ctx, id)
	if err == nil && of.State.Type == "" {
		err = channel.ErrNotFound
	}
	return of, commands.Request{Actor: actor.Actor{Type: "provider", ID: of.State.Type, Workspace: of.Workspace}, Workspace: of.Workspace}, err
}

// errNobody refuses a message without a sender.
var errNobody = fault.Fields(fault.Field{Field: "from", Message: "the sender is not named"})

// Receive keeps a message that came in, once however often it comes. A sender who is no contact becomes one. It opens a resolved contact again, and heeds
// the words that withdraw or give consent. A reaction does neither, and a removed reaction creates no contact.
func (f *Messages) Receive(ctx context.Context, a Arrival) (commands.Outcome[message.State], error) {
	none := commands.Outcome[message.State]{Revision: -1}
	of, req, err := f.from(ctx, a.Channel)
	if err != nil {
		return none, err
	}
	phone := ""
	if of.State.Type == channel.Chat && !a.Social {
		phone = network.Phone(a.From)
	}
	first := req
	first.Key, first.Operation = strconv.FormatInt(a.Channel, 10)+" "+a.ProviderID, "receive-message" // a network's ids are its own
	first.Fingerprint = a.Print
	if out, done, err := commands.Earlier(ctx, f.Commands, first, message.Kind); done || err != nil {
		return out, err
	}
	reaction := a.Type == "reaction"
	if reaction && a.Text == "" {
		if id, err := f.contactOf(ctx, req, a.Channel, a.Writer); err != nil || id == 0 {
			return none, err
		}
	}
	sender, err := f.sender(ctx, req, a.Channel, a.Writer)
	if err != nil {
		return none, err
	}
	// What follows from the message comes before it: after a crash in between, the message comes again, and is not known.
	if !reaction {
		who, err := commands.Load(ctx, f.Commands.Cached(), contact.Kind, strconv.FormatInt(sender, 10))
		if err == nil && who.State.Status == contact.Resolved {
			_, err = commands.Handle(ctx, f.Commands, req, contact.Kind, strconv.FormatInt(sender, 10), contact.Reopen{})
		}
		if err == nil {
			err = f.heed(ctx, req, sender, a.Text, network.Moment{At: a.SentAt, ArrivedAt: a.ArrivedAt})
		}
		if err != nil {
			return none, err
		}
	}
	return commands.Create(ctx, f.Commands, first, message.Kind, f.Commands.Numbered(message.Kind.Category(), 1), message.Receive{
		Draft: message.Draft{Channel: a.Channel, Text: a.Text, Image: a.Image}, Contact: sender, Type: a.Type, Ref: a.Ref, RefType: a.RefType, Reacts: a.Reacts,
		ProviderID: a.ProviderID, Phone: phone, SentAt: a.SentAt, ArrivedAt: a.ArrivedAt, Now: f.Commands.Now(), Code: a.Code, Title: a.Title, Details: a.Details,
	})
}

// heed moves a contact's consent if a text is one of the words for it.
func (f *Messages) heed(ctx context.Context, req commands.Request, id int64, text string, at network.Moment) error {
	optIn, is := contact.Word(text)
	if !is {
		return nil
	}
	return f.consent(ctx, req, id, contact.MoveConsent{OptIn: optIn, By: contact.ByWord, Moment: f.past(at)})
}

// past returns a moment as events have it, never one that is yet to come.
func (f *Messages) past(m network.Moment) network.Moment {
	if now := f.Commands.Now(); m.At.After(now) {
		m.At = now
	}
	return network.Moment{At: m.At.UTC(), ArrivedAt: m.ArrivedAt.UTC()}
}

// holder returns the contact that has a phone, 0 for none.
func (f *Messages) holder(ctx context.Context, workspace uuid.UUID, phone string) (int64, error) {
	id, _, err := f.owner(ctx, workspace, phone)
	return id, err
}

// owner is holder with the contact's state.
func (f *Messages) owner(ctx context.Context, workspace uuid.UUID, phone string) (id int64, s contact.State, err error) {
	key, err := f.phoneKey(ctx, workspace, phone)
	if err != nil || key == "" {
		return 0, s, err
	}
	return claimed(ctx, f.Commands, contact.Phones, contact.Kind, key, func(s contact.State) string { return cmp.Or(s.SenderKey(key), s.PhoneKey) })
}

// phoneKey names the claim of a phone, in whichever spelling.
func (f *Messages) phoneKey(ctx context.Context, workspace uuid.UUID, phone string) (string, error) {
	one, _ := network.Spelling(phone)
	return unique.Key(ctx, f.Commands, contact.Phones, workspace[:], []byte(one))
}

// senders lets one contact of a workspace have an id at a channel's network.
func senders(key string) unique.Field[contact.State] {
	return unique.Field[contact.State]{
		Records: contact.Kind, Claims: contact.Senders, Key: func(s contact.State) string { return s.SenderKey(key) }, Name: "sender", Taken: "Another contact has this id",
	}
}

// known returns the contact that a network knows by an id, 0 for none, and the id as it is kept.
func (f *Messages) known(ctx context.Context, workspace uuid.UUID, of int64, user string) (id int64, s contact.Sender, err error) {
	id, _, s, err = f.knownAs(ctx, workspace, of, user)
	return id, s, err
}

// knownAs is known with the contact's state.
func (f *Messages) knownAs(ctx context.Context, workspace uuid.UUID, of int64, user string) (id int64, who contact.State, s contact.Sender, err error) {
	s = contact.Sender{Channel: of, InClear: user}
	if s.Key, err = unique.Key(ctx, f.Commands, contact.Senders, workspace[:], []byte(strconv.FormatInt(of, 10)), []byte(user)); err != nil || s.Key == "" {
		return 0, who, s, err
	}
	id, who, err = claimed(ctx, f.Commands, contact.Senders, contact.Kind, s.Key, senders(s.Key).Key)
	return id, who, s, err
}

// named returns the phone by which a network names a writer, "" for none, and the id: what is no phone is an id.
func (w Writer) named() (phone, user string) {
	phone = network.Phone(w.From)
	if phone == "" {
		return "", cmp.Or(w.UserID, w.From)
	}
	return phone, w.UserID
}

// contactOf returns the contact of a sender, 0 for none.
func (f *Messages) contactOf(ctx context.Context, req commands.Request, of int64, w Writer) (int64, error) {
	phone, user := w.named()
	id, _, err := f.known(ctx, req.Workspace, of, user)
	if err == nil && id == 0 && phone != "" {
		id, err = f.holder(ctx, req.Workspace, phone)
	}
	return id, err
}

// sender returns the contact who is a writer, or makes one: the network's id goes before the phone. Who has both keeps both (CONTRACT.md 0.9).
func (f *Messages) sender(ctx context.Context, req commands.Request, of int64, w Writer) (int64, error) {
	phone, user := w.named()
	if phone == "" && user == "" {
		return 0, errNobody
	}
	id, who, s, err := f.knownAs(ctx, req.Workspace, of, user)
	if err != nil || id != 0 {
		return f.met(ctx, req, of, id, who, phone, err)
	}
	if phone != "" {
		if id, err = f.holder(ctx, req.Workspace, phone); err != nil {
			return 0, err
		}
	}
	if id == 0 {
		if id, err = f.begin(ctx, req, w, phone, s); err != nil || phone == "" {
			return id, err
		}
	}
	if s.Key == "" {
		return id, nil
	}
	stream := strconv.FormatInt(id, 10)
	_, err = senders(s.Key).Handle(ctx, f.Commands, req, stream, &s.Key, contact.Identify{Sender: s, Contact: stream})
	return id, err
}

// begin makes a contact of a writer: of the phone, else of the network's id.
func (f *Messages) begin(ctx context.Context, req commands.Request, w Writer, phone string, s contact.Sender) (int64, error) {
	c := contact.Add{Name: w.Name, Source: "chat"}
	if w.Social {
		c.Source = "social"
	}
	if _, err := person.Name("name", c.Name); err != nil {
		switch {
		case w.Username != "":
			c.Name = "@" + w.Username
		case phone != "":
			c.Name = "+" + phone
		case !w.Social:
			c.Name = s.InClear
		}
	}
	if _, err := person.Name("name", c.Name); err != nil {
		c.Name = contact.Nameless
	}
	var (
		out commands.Outcome[contact.State]
		err error
	)
	if phone != "" {
		c.Reach = contact.Reach{Phone: patch.Set(phone)}
		out, err = AddContact(ctx, f.Commands, req, c)
	} else {
		c.Sender = s
		out, err = senders(s.Key).Create(ctx, f.Commands, req, s.Key, f.Commands.Numbered(contact.Kind.Category(), 1), func(id string) event.Command[contact.State] {
			c.ID = id
			return c
		})
	}
	refused, isRefused := errors.AsType[*fault.Error](err)
	switch { // another message of theirs was faster
	case isRefused && refused.Code == "phone_taken":
		return f.holder(ctx, req.Workspace, phone)
	case isRefused && refused.Code == "sender_taken":
		id, _, err := f.known(ctx, req.Workspace, s.Channel, s.InClear)
		return id, err
	case err != nil:
		return 0, err
	}
	return strconv.ParseInt(out.ID, 10, 64)
}

// OptedOut takes back a contact's consent if a network's code says so.
func (f *Messages) OptedOut(ctx context.Context, req commands.Request, id int64, code int) error {
	if code != codeOptOut || id == 0 {
		return nil
	}
	who, err := living(ctx, f.Commands, id)
	if err == nil {
		err = f.consent(ctx, req.FollowUp(), who, contact.MoveConsent{By: contact.ByNetwork})
	}
	if errors.Is(err, contact.ErrNotFound) { // deleted, with its consent
		return nil
	}
	return err
}

func (f *Messages) consent(ctx context.Context, req commands.Request, id int64, c contact.MoveConsent) error {
	_, err := commands.Handle(ctx, f.Commands, req, contact.Kind, strconv.FormatInt(id, 10), c)
	return err
}

// Consent notes what a person has told the network about messages, and returns whose values that has. Who is no contact is nobody.
func (f *Messages) Consent(ctx context.Context, of int64, w Writer, optIn bool, at network.Moment) (subject string, err error) {
	_, req, err := f.from(ctx, of)
	if err != nil {
		return "", err
	}
	id, err := f.contactOf(ctx, req, of, w)
	if err != nil || id == 0 {
		return "", err
	}
	return contact.Subjects.Of(strconv.FormatInt(id, 10)), f.consent(ctx, req, id, contact.MoveConsent{OptIn: optIn, By: contact.ByNetwork, Moment: f.past(at)})
}

// Move notes that a person has another phone, or another id at the network, and returns whose values that has. A phone that another contact has stays there,
// and the one who moved has none.
func (f *Messages) Move(ctx context.Context, of int64, before string, w Writer) (subject string, err error) {
	_, req, err := f.from(ctx, of)
	if err != nil {
		return "", err
	}
	id, err := f.contactOf(ctx, req, of, Writer{From: before, UserID: before})
	if err != nil || id == 0 {
		return "", err
	}
	stream := strconv.FormatInt(id, 10)
	subject = contact.Subjects.Of(stream)
	phone, user := w.named()
	if user != "" {
		taken, s, err := f.known(ctx, req.Workspace, of, user)
		if err == nil && taken == 0 {
			_, err = senders(s.Key).Handle(ctx, f.Commands, req, stream, &s.Key, contact.Identify{Sender: s, Contact: stream})
		}
		if err != nil {
			return subject, err
		}
	}
	if phone == "" {
		return subject, nil
	}
	c := contact.Edit{ID: stream, Reach: contact.Reach{Phone: patch.Set(phone)}}
	_, err = EditContact(ctx, f.Commands, req, c)
	if refused, ok := errors.AsType[*fault.Error](err); ok && refused.Code == "phone_taken" {
		c.Phone = patch.Clear[string]()
		_, err = EditContact(ctx, f.Commands, req, c)
	}
	return subject, err
}

// told returns the message that a network names, and the request of what it tells of it. It returns [ErrUnmatched] for a message that is not known.
func (f *Messages) told(ctx context.Context, of int64, providerID string) (id string, req commands.Request, err error) {
	_, req, err = f.from(ctx, of)
	if err != nil {
		return "", req, err
	}
	named, err := f.Known.MessagesNamed(ctx, req.Workspace, of, []string{providerID})
	if err != nil || named[providerID] == 0 {
		return "", req, cmp.Or(err, ErrUnmatched)
	}
	return strconv.FormatInt(named[providerID], 10), req, nil
}

// Revise notes that a person has changed a message, and returns whose values it has. It heeds the words about consent.
func (f *Messages) Revise(ctx context.Context, of int64, providerID, text string, at network.Moment) (subject string, err error) {
	id, req, err := f.told(ctx, of, providerID)
	if err != nil {
		return "", err
	}
	out, err := commands.Handle(ctx, f.Commands, req, message.Kind, id, message.Revise{Text: text, Moment: f.past(at)})
	if err != nil || out.State.Status != message.Inbound {
		return out.State.Subject(), err
	}
	who, err := living(ctx, f.Commands, out.State.Contact)
	if err == nil {
		err = f.heed(ctx, req.FollowUp(), who, text, at)
	}
	return out.State.Subject(), err
}

// Revoke notes that a person has taken back a message. Its file is deleted.
func (f *Messages) Revoke(ctx context.Context, of int64, providerID string, at network.Moment) error {
	id, req, err := f.told(ctx, of, providerID)
	if err != nil {
		return err
	}
	out, err := commands.Handle(ctx, f.Commands, req, message.Kind, id, message.Revoke{Moment: f.past(at)})
	if err != nil {
		return err
	}
	return f.Files.Delete(ctx, fileOf(out.State, id))
}

// OfAccount returns the channels of an account at the chat network, of whatever workspace: some networks tell of a template by its account alone.
func (f *Messages) OfAccount(ctx context.Context, account string) ([]int64, error) {
	return f.Known.OfAccount(ctx, account)
}

// Template notes a template's status.
func (f *Messages) Template(ctx context.Context, of int64, providerID, status string) error {
	_, req, err := f.from(ctx, of)
	if err != nil {
		return err
	}
	ids, err := f.Known.TemplateIDs(ctx, req.Workspace, of)
	if err != nil || ids[providerID] == 0 {
		return err
	}
	_, err = commands.Handle(ctx, f.Commands, req, template.Kind, strconv.FormatInt(ids[providerID], 10), template.MoveStatus{Status: strings.ToUpper(status)})
	return err
}
