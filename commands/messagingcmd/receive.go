package messagingcmd

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

// Sender is a person as a network names them. At least one of From and UserID is set.
type Sender struct {
	From     string // phone; empty: unknown
	UserID   string // the network's id; empty: unknown
	Name     string // if the network reports it
	Username string
	Social   bool // from a network without phones
}

// InboundMessage is an incoming message of a channel.
type InboundMessage struct {
	Sender

	Channel      int64
	Type         string // empty: text
	Text         string
	Ref, RefType string // the network's reference of the file and its type; empty: no file
	ProviderID   string
	SentAt       time.Time
	ArrivedAt    time.Time // zero: now
	Reacts       string    // the network's id of the message to which it is a reaction
	Code         int       // why the network does not deliver the content; 0: it does
	Title        string
	Details      string
	Print        []byte // fingerprint of the request if a client of Bahi chose the ProviderID; empty: a network chose it
}

// claimed returns the record with a claimed value, or 0. It uses this process's cache.
func claimed[S any](
	ctx context.Context, h *commands.Handler, v claims.Value, records *event.Kind[S], key string, has func(S, string) bool,
) (id int64, s S, err error) {
	for _, from := range []commands.Source{h.Cached(), h.Fresh()} {
		if id, s, err = claimedIn(ctx, from, v, records, key, has); err != nil || id != 0 {
			return id, s, err
		}
	}
	return 0, s, nil
}

func claimedIn[S any](
	ctx context.Context, from commands.Source, v claims.Value, records *event.Kind[S], key string, has func(S, string) bool,
) (id int64, s S, err error) {
	if key == "" {
		return 0, s, nil
	}
	claim, err := commands.Load(ctx, from, v.Kind, key)
	if err != nil || claim.State.Holder == "" {
		return 0, s, err
	}
	l, err := commands.Load(ctx, from, records, claim.State.Holder)
	if err != nil || !has(l.State, key) {
		return 0, s, err
	}
	id, err = strconv.ParseInt(claim.State.Holder, 10, 64)
	return id, l.State, err
}

// from returns the request for a report of a channel's network.
func (f *Messages) from(ctx context.Context, id int64) (of commands.Loaded[channel.State], req commands.Request, err error) {
	of, err = f.atHand(ctx, id)
	if err == nil && of.State.Type == "" {
		err = channel.ErrNotFound
	}
	return of, commands.Request{Actor: actor.Actor{Type: "provider", ID: of.State.Type, Workspace: of.Workspace}, Workspace: of.Workspace}, err
}

// errNobody refuses a message without a sender.
var errNobody = fault.Wrong("from", "the sender is missing")

// Receive stores an incoming message. It stores a repeated delivery once. An unknown sender becomes a contact. The message reopens a
// resolved contact, and its text may give or withdraw consent. A reaction does neither, and a removed reaction creates no contact.
func (f *Messages) Receive(ctx context.Context, a InboundMessage) (commands.Outcome[message.State], error) {
	of, req, err := f.from(ctx, a.Channel)
	if err != nil {
		return commands.Outcome[message.State]{Revision: -1}, err
	}
	phone := ""
	if of.State.Type == channel.Chat && !a.Social {
		phone = network.Phone(a.From)
	}
	req.Key, req.Operation = strconv.FormatInt(a.Channel, 10)+" "+a.ProviderID, "receive-message" // ids are unique in a network only
	req.Fingerprint = a.Print
	return commands.Do(ctx, f.Commands, req, message.Kind, func(ctx context.Context, tx *commands.Tx) error {
		reaction := a.Type == "reaction"
		if reaction && a.Text == "" {
			if id, err := f.contactOf(ctx, tx, req.Workspace, a.Channel, a.Sender); err != nil || id == 0 {
				return err
			}
		}
		sender, err := f.sender(ctx, tx, req.Workspace, a.Channel, a.Sender)
		if err == nil && !reaction {
			err = f.reopen(ctx, tx, sender, a.Text, network.Moment{At: a.SentAt, ArrivedAt: a.ArrivedAt})
		}
		if err != nil {
			return err
		}
		c := message.Receive{
			Draft: message.Draft{Channel: a.Channel, Text: a.Text}, Contact: sender, Type: a.Type, Ref: a.Ref, RefType: a.RefType,
			Reacts: a.Reacts, ProviderID: a.ProviderID, Phone: phone, SentAt: a.SentAt, ArrivedAt: a.ArrivedAt, Now: tx.Now(),
			Code: a.Code, Title: a.Title, Details: a.Details,
		}
		newID := f.Commands.IDFromSeries(message.Kind.Category(), 1)
		_, err = commands.DecideNew(ctx, tx, message.Kind, newID, func(string) event.Command[message.State] { return c })
		return err
	})
}

// reopen reopens a resolved contact, and changes the consent if the text is a keyword.
func (f *Messages) reopen(ctx context.Context, tx *commands.Tx, id int64, text string, at network.Moment) error {
	stream := strconv.FormatInt(id, 10)
	who, err := commands.Load(ctx, tx, contact.Kind, stream)
	if err == nil && who.State.Status == contact.Resolved {
		_, err = commands.Decide(ctx, tx, contact.Kind, stream, contact.Reopen{})
	}
	if err != nil {
		return err
	}
	return f.applyKeyword(ctx, tx, id, text, at)
}

// applyKeyword changes a contact's consent if a text is a keyword.
func (f *Messages) applyKeyword(ctx context.Context, tx *commands.Tx, id int64, text string, at network.Moment) error {
	optIn, is := contact.ConsentKeyword(text)
	if !is {
		return nil
	}
	return consent(ctx, tx, id, contact.ChangeConsent{OptIn: optIn, By: contact.ByWord, Moment: f.past(at)})
}

// past returns a time in the precision of events, not later than now.
func (f *Messages) past(m network.Moment) network.Moment {
	if now := f.Commands.Now(); m.At.After(now) {
		m.At = now
	}
	return network.Moment{At: m.At.UTC(), ArrivedAt: m.ArrivedAt.UTC()}
}

// reachedBy reports whether a contact has a phone in any spelling.
func reachedBy(s contact.State, key string) bool { return s.PhoneKey == key || s.SenderKey(key) != "" }

// owner returns the contact with a phone, or 0, and its state.
func (f *Messages) owner(ctx context.Context, tx *commands.Tx, workspace uuid.UUID, phone string) (id int64, s contact.State, err error) {
	key, err := f.phoneKey(ctx, workspace, phone)
	if err != nil {
		return 0, s, err
	}
	return claimedIn(ctx, tx, contact.Phones, contact.Kind, key, reachedBy)
}

// phoneKey returns the name of a phone's claim, which is the same for all spellings.
func (f *Messages) phoneKey(ctx context.Context, workspace uuid.UUID, phone string) (string, error) {
	one, _ := network.Spelling(phone)
	return unique.Key(ctx, f.Commands, contact.Phones, workspace[:], []byte(one))
}

// senders claims each id at a channel's network for one contact of a workspace.
func senders(key string) unique.Field[contact.State] {
	return unique.Field[contact.State]{
		Records: contact.Kind, Claims: contact.Senders, Key: func(s contact.State) string { return s.SenderKey(key) }, Name: "sender",
		Taken: "Another contact has this id",
	}
}

// at returns the stored form of an id at a channel's network.
func (f *Messages) at(ctx context.Context, workspace uuid.UUID, of int64, user string) (s contact.Sender, err error) {
	s = contact.Sender{Channel: of, InClear: user}
	s.Key, err = unique.Key(ctx, f.Commands, contact.Senders, workspace[:], []byte(strconv.FormatInt(of, 10)), []byte(user))
	return s, err
}

// sentBy reports whether a contact has an id at a network.
func sentBy(s contact.State, key string) bool { return s.SenderKey(key) != "" }

// known returns the contact with an id at a network, or 0, and the stored form of the id.
func (f *Messages) known(
	ctx context.Context, tx *commands.Tx, workspace uuid.UUID, of int64, user string,
) (id int64, who contact.State, s contact.Sender, err error) {
	if s, err = f.at(ctx, workspace, of, user); err != nil {
		return 0, who, s, err
	}
	id, who, err = claimedIn(ctx, tx, contact.Senders, contact.Kind, s.Key, sentBy)
	return id, who, s, err
}

// named returns the phone and the id of a sender. A text that is no phone is an id.
func (w Sender) named() (phone, user string) {
	phone = network.Phone(w.From)
	if phone == "" {
		return "", cmp.Or(w.UserID, w.From)
	}
	return phone, w.UserID
}

// contactOf returns the contact of a sender, or 0.
func (f *Messages) contactOf(ctx context.Context, tx *commands.Tx, workspace uuid.UUID, of int64, w Sender) (int64, error) {
	phone, user := w.named()
	id, _, _, err := f.known(ctx, tx, workspace, of, user)
	if err == nil && id == 0 {
		id, _, err = f.owner(ctx, tx, workspace, phone)
	}
	return id, err
}

// sender returns the contact of a sender, or creates it. The network's id takes precedence over the phone. A contact with both keeps both
// (CONTRACT.md 0.9).
func (f *Messages) sender(ctx context.Context, tx *commands.Tx, workspace uuid.UUID, of int64, w Sender) (int64, error) {
	phone, user := w.named()
	if phone == "" && user == "" {
		return 0, errNobody
	}
	id, who, s, err := f.known(ctx, tx, workspace, of, user)
	if err != nil || id != 0 && (phone == "" || who.PhoneKey != "") {
		return id, err
	}
	if id != 0 {
		return f.met(ctx, tx, workspace, of, id, phone)
	}
	if id, _, err = f.owner(ctx, tx, workspace, phone); err != nil {
		return 0, err
	}
	if id == 0 {
		if id, err = f.begin(ctx, tx, workspace, w, phone, s); err != nil || phone == "" {
			return id, err
		}
	}
	if s.Key == "" {
		return id, nil
	}
	return id, identify(ctx, tx, senders(s.Key), id, s)
}

// identify records a contact's id at a network.
func identify(ctx context.Context, tx *commands.Tx, of unique.Field[contact.State], id int64, s contact.Sender) error {
	stream := strconv.FormatInt(id, 10)
	return of.Decide(ctx, tx, stream, &s.Key, contact.Identify{Sender: s, Contact: stream})
}

// begin creates the contact of a sender with its phone, or else with the network's id.
func (f *Messages) begin(
	ctx context.Context, tx *commands.Tx, workspace uuid.UUID, w Sender, phone string, s contact.Sender,
) (int64, error) {
	c := contact.Add{Name: person.Printable(w.Name), Source: "chat"}
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
	field, key := senders(s.Key), s.Key
	if phone != "" {
		var err error
		if c.Addresses, err = dialled(ctx, f.Commands, workspace, phone); err != nil {
			return 0, err
		}
		field, key = phones, c.PhoneKey
	} else {
		c.Sender = s
	}
	newID := f.Commands.IDFromSeries(contact.Kind.Category(), 1)
	id, err := field.DecideNew(ctx, tx, key, newID, func(id string) event.Command[contact.State] {
		c.ID = id
		return c
	})
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(id, 10, 64)
}

// dialled returns a phone in the form for commands.
func dialled(ctx context.Context, h *commands.Handler, workspace uuid.UUID, phone string) (contact.Addresses, error) {
	r := contact.Addresses{Phone: patch.Set(phone)}
	return r, name(ctx, h, workspace, &r)
}

// OptedOut records a contact's opt-out if the network's code reports an opt-out.
func (f *Messages) OptedOut(ctx context.Context, req commands.Request, id int64, code int) error {
	if code != codeOptOut || id == 0 {
		return nil
	}
	_, err := commands.Do(ctx, f.Commands, req.FollowUp(), contact.Kind, func(ctx context.Context, tx *commands.Tx) error {
		who, err := living(ctx, tx, id)
		if err != nil {
			return err
		}
		return consent(ctx, tx, who, contact.ChangeConsent{By: contact.ByNetwork})
	})
	if errors.Is(err, contact.ErrNotFound) { // the contact and its consent were deleted
		return nil
	}
	return err
}

func consent(ctx context.Context, tx *commands.Tx, id int64, c contact.ChangeConsent) error {
	_, err := commands.Decide(ctx, tx, contact.Kind, strconv.FormatInt(id, 10), c)
	return err
}

// Consent records a person's consent choice at the network, and returns the data subject of its values. It ignores senders without a
// contact.
func (f *Messages) Consent(ctx context.Context, of int64, w Sender, optIn bool, at network.Moment) (subject string, err error) {
	return f.change(ctx, of, w, func(ctx context.Context, tx *commands.Tx, id int64, _ uuid.UUID) error {
		return consent(ctx, tx, id, contact.ChangeConsent{OptIn: optIn, By: contact.ByNetwork, Moment: f.past(at)})
	})
}

// change handles a network's report about a person, and returns the data subject of the report's values. It ignores senders without a
// contact.
func (f *Messages) change(
	ctx context.Context, of int64, w Sender, decide func(ctx context.Context, tx *commands.Tx, id int64, workspace uuid.UUID) error,
) (subject string, err error) {
	_, req, err := f.from(ctx, of)
	if err != nil {
		return "", err
	}
	_, err = commands.Do(ctx, f.Commands, req, contact.Kind, func(ctx context.Context, tx *commands.Tx) error {
		id, err := f.contactOf(ctx, tx, req.Workspace, of, w)
		if err != nil || id == 0 {
			return err
		}
		subject = contact.Subjects.Of(strconv.FormatInt(id, 10))
		return decide(ctx, tx, id, req.Workspace)
	})
	return subject, err
}

// ChangeSenderID records a person's new phone or new id at the network, and returns the data subject of its values. If
// another contact has the phone, that contact keeps it, and this contact gets none.
func (f *Messages) ChangeSenderID(ctx context.Context, of int64, before string, w Sender) (subject string, err error) {
	phone, user := w.named()
	old := Sender{From: before, UserID: before}
	return f.change(ctx, of, old, func(ctx context.Context, tx *commands.Tx, id int64, workspace uuid.UUID) error {
		if user != "" {
			taken, _, s, err := f.known(ctx, tx, workspace, of, user)
			if err == nil && taken == 0 {
				err = identify(ctx, tx, senders(s.Key), id, s)
			}
			if err != nil {
				return err
			}
		}
		if phone == "" {
			return nil
		}
		other, _, err := f.owner(ctx, tx, workspace, phone)
		if err != nil {
			return err
		}
		if other != 0 && other != id {
			stream := strconv.FormatInt(id, 10)
			return phones.Decide(ctx, tx, stream, new(""), contact.Edit{ID: stream, Addresses: contact.Addresses{Phone: patch.Clear[string]()}})
		}
		return f.setPhone(ctx, tx, workspace, id, phone)
	})
}

// setPhone sets the phone of a contact.
func (f *Messages) setPhone(ctx context.Context, tx *commands.Tx, workspace uuid.UUID, id int64, phone string) error {
	r, err := dialled(ctx, f.Commands, workspace, phone)
	if err != nil {
		return err
	}
	stream := strconv.FormatInt(id, 10)
	return phones.Decide(ctx, tx, stream, &r.PhoneKey, contact.Edit{ID: stream, Addresses: r})
}

// messageOf returns the message of a network's report, and the request for the change. It returns [ErrUnmatched] for an unknown message.
func (f *Messages) messageOf(ctx context.Context, of int64, providerID string) (id string, req commands.Request, err error) {
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

// Revise records that a person has edited a message, and returns the data subject of its values. It applies consent
// keywords.
func (f *Messages) Revise(ctx context.Context, of int64, providerID, text string, at network.Moment) (subject string, err error) {
	id, req, err := f.messageOf(ctx, of, providerID)
	if err != nil {
		return "", err
	}
	out, err := commands.Do(ctx, f.Commands, req, message.Kind, func(ctx context.Context, tx *commands.Tx) error {
		l, err := commands.Decide(ctx, tx, message.Kind, id, message.Edit{Text: text, Moment: f.past(at)})
		if err != nil || l.State.Status != message.Inbound {
			return err
		}
		who, err := living(ctx, tx, l.State.Contact)
		if err == nil {
			err = f.applyKeyword(ctx, tx, who, text, at)
		}
		return err
	})
	return out.State.Subject(), err
}

// Revoke records that a person has deleted a message. The message's file is deleted.
func (f *Messages) Revoke(ctx context.Context, of int64, providerID string, at network.Moment) error {
	id, req, err := f.messageOf(ctx, of, providerID)
	if err != nil {
		return err
	}
	out, err := commands.Handle(ctx, f.Commands, req, message.Kind, id, message.Revoke{Moment: f.past(at)})
	if err != nil {
		return err
	}
	return f.Files.Delete(ctx, fileOf(out.State, id))
}

// OfAccount returns the channels of an account at the chat network in all workspaces. Some networks identify a template
// only by its account.
func (f *Messages) OfAccount(ctx context.Context, account string) ([]int64, error) {
	return f.Known.OfAccount(ctx, account)
}

// Template records a template's status.
func (f *Messages) Template(ctx context.Context, of int64, providerID, status string) error {
	_, req, err := f.from(ctx, of)
	if err != nil {
		return err
	}
	ids, err := f.Known.TemplateIDs(ctx, req.Workspace, of)
	if err != nil || ids[providerID] == 0 {
		return err
	}
	_, err = commands.Handle(ctx, f.Commands, req, template.Kind, strconv.FormatInt(ids[providerID], 10),
		template.MoveStatus{Status: strings.ToUpper(status)})
	return err
}
