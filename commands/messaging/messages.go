package messaging

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/commands/unique"
	"bahi/domain/actor"
	"bahi/domain/claims"
	"bahi/domain/fault"
	"bahi/domain/messaging/channel"
	"bahi/domain/messaging/contact"
	"bahi/domain/messaging/message"
	"bahi/domain/messaging/network"
	"bahi/domain/patch"
	"bahi/domain/person"
)

// Heard tells when a contact last wrote to a channel, the zero time for never.
type Heard interface {
	Heard(ctx context.Context, workspace uuid.UUID, channel, contact int64) (time.Time, error)
}

// Messages sends messages, and keeps those that come in.
type Messages struct {
	*Channels

	Heard     Heard
	Sandboxed func(network.Account) bool
}

const (
	window     = 24 * time.Hour   // in which a person may be answered freely (CONTRACT.md N2)
	sendWithin = 25 * time.Second // all tries of a send
)

var errType = &fault.Error{Kind: fault.Conflict, Detail: "The channel's type does not send to phones", Code: "channel_type_unsupported"}

// Send sends a message to a phone. The request's key sends once: a repetition gets what became of the message, and calls the network again only where
// it was not called, or refused for a moment (CONTRACT.md N1). admit counts the call, of a channel that is not a sandbox.
func (f *Messages) Send(ctx context.Context, req commands.Request, d message.Draft, admit func(channel int64) error) (out commands.Outcome[message.State], err error) {
	if out, err = f.earlier(ctx, req); err != nil || out.Replayed && out.State.Failure() == nil {
		return out, err
	}
	if again := out; again.Replayed && !again.State.Reason.Free() {
		return again, again.State.Failure().Fault()
	}
	if d.To, err = person.Dialled("to", d.To); err == nil && d.To == "" {
		err = fault.Fields(fault.Field{Field: "to", Message: "must not be empty"})
	}
	if err != nil {
		return out, err
	}
	id := strconv.FormatInt(d.Channel, 10)
	of, err := commands.Load(ctx, f.Commands.Fresh(), channel.Kind, id)
	switch {
	case err != nil:
		return out, err
	case of.Workspace != req.Workspace || of.State.Type == "":
		return out, channel.ErrNotFound
	case of.State.Type != channel.Chat:
		return out, errType
	}
	recipient, err := f.holder(ctx, req.Workspace, d.To)
	if err != nil {
		return out, err
	}
	if err := f.open(ctx, req.Workspace, d.Channel, recipient); err != nil {
		return out, err
	}
	account, err := f.account(ctx, id, of.State)
	if err != nil {
		return out, err
	}
	if !f.Sandboxed(account) {
		if err := admit(d.Channel); err != nil {
			return out, err
		}
	}
	out, err = f.queue(ctx, req, out, message.Queue{Draft: d, Contact: recipient})
	if err != nil || out.Replayed {
		if err == nil && out.State.Failure() != nil { // the same request is under way in another place
			err = out.State.Failure().Fault()
		}
		return out, err
	}
	return f.call(ctx, req, of, account, out, message.Queue{Draft: d, Contact: recipient})
}

// earlier returns the message of an earlier request with the same key, as it is now.
func (f *Messages) earlier(ctx context.Context, req commands.Request) (commands.Outcome[message.State], error) {
	out, done, err := commands.Earlier(ctx, f.Commands, req, message.Kind)
	if err != nil || !done {
		return out, err
	}
	l, err := commands.Load(ctx, f.Commands.Fresh(), message.Kind, out.ID)
	out.State = l.State
	return out, err
}

// queue writes the message down before the network is called: a new one, or again one that was not sent.
func (f *Messages) queue(ctx context.Context, req commands.Request, before commands.Outcome[message.State], c message.Queue) (commands.Outcome[message.State], error) {
	if before.Replayed {
		return commands.Handle(ctx, f.Commands, req.FollowUp(), message.Kind, before.ID, message.Requeue{})
	}
	return commands.Create(ctx, f.Commands, req, message.Kind, f.Commands.Numbered(message.Kind.Category(), 1), c)
}

// call calls the network and notes what it answered, whether or not the client still waits.
func (f *Messages) call(
	ctx context.Context, req commands.Request, of commands.Loaded[channel.State], account network.Account, out commands.Outcome[message.State], c message.Queue,
) (commands.Outcome[message.State], error) {
	ctx = context.WithoutCancel(ctx)
	calling, cancel := context.WithTimeout(ctx, sendWithin)
	defer cancel()
	settle := message.Settle{Contact: c.Contact}
	var err error
	settle.ProviderID, err = f.Networks.Send(calling, account, network.Message{ID: message.Name(out.ID), To: c.To, Text: c.Text, Image: c.Image})
	if err != nil {
		failed, ok := errors.AsType[*network.Failure](err)
		if !ok {
			failed = &network.Failure{Reason: network.Unknown}
		}
		settle.Failure = failed
	}
	settled, err := commands.Handle(ctx, f.Commands, req.FollowUp(), message.Kind, out.ID, settle)
	if err != nil {
		return out, err
	}
	if err := f.learn(ctx, of, strconv.FormatInt(c.Channel, 10), settle.Failure); err != nil {
		f.Log.Warn("what a network said of a channel was not noted", "channel", c.Channel, "error", err)
	}
	if settle.Failure != nil {
		return settled, settle.Failure.Fault()
	}
	return settled, nil
}

// learn notes what a send says of the channel. An aggregator says it by nothing else, so that its channel has its sender from then on.
func (f *Messages) learn(ctx context.Context, of commands.Loaded[channel.State], id string, failed *network.Failure) (err error) {
	r := channel.Report{IdentityKey: of.State.IdentityKey}
	r.Status, r.Error = of.State.StatusAfter(failed)
	if s := of.State.Settings; failed == nil && r.IdentityKey == "" && cmp.Or(s.Dialect, "cloud") != "cloud" && s.AppName != "" {
		if r.IdentityKey, err = unique.Key(ctx, f.Commands, channel.Identities, []byte(of.State.Type), []byte("app:"+s.AppName)); err != nil {
			return err
		}
	}
	_, err = f.note(ctx, of.Workspace, id, of.State, r)
	return err
}

// holder returns the contact that has a phone, 0 for none.
func (f *Messages) holder(ctx context.Context, workspace uuid.UUID, phone string) (int64, error) {
	key, err := unique.Key(ctx, f.Commands, contact.Phones, workspace[:], []byte(phone))
	if err != nil {
		return 0, err
	}
	claim, err := commands.Load(ctx, f.Commands.Fresh(), contact.Phones.Kind, key)
	if err != nil || claim.State == (claims.State{}) {
		return 0, err
	}
	l, err := commands.Load(ctx, f.Commands.Fresh(), contact.Kind, claim.State.Holder)
	if err != nil || l.State.PhoneKey != key {
		return 0, err
	}
	return strconv.ParseInt(claim.State.Holder, 10, 64)
}

// open refuses to write to a person who has not written to the channel lately.
func (f *Messages) open(ctx context.Context, workspace uuid.UUID, channel, recipient int64) error {
	var last time.Time
	if recipient != 0 {
		var err error
		if last, err = f.Heard.Heard(ctx, workspace, channel, recipient); err != nil {
			return err
		}
	}
	if f.Commands.Now().Sub(last) >= window {
		return (&network.Failure{Reason: network.WindowClosed}).Fault()
	}
	return nil
}

// Arrival is a message that came in on a channel.
type Arrival struct {
	Channel    int64
	From, Name string // the sender's phone, and name as far as the network tells it
	Text       string
	Image      string
	ProviderID string
	SentAt     time.Time
}

// Receive keeps a message that came in, once however often it comes. A sender who is no contact becomes one. It opens a resolved contact again.
func (f *Messages) Receive(ctx context.Context, a Arrival) (commands.Outcome[message.State], error) {
	none := commands.Outcome[message.State]{Revision: -1}
	of, err := commands.Load(ctx, f.Commands.Fresh(), channel.Kind, strconv.FormatInt(a.Channel, 10))
	if err != nil || of.State.Type == "" {
		return none, cmp.Or(err, error(channel.ErrNotFound))
	}
	req := commands.Request{Actor: actor.Actor{Type: "provider", ID: of.State.Type, Workspace: of.Workspace}, Workspace: of.Workspace}
	phone, err := person.Dialled("from", a.From)
	if err != nil {
		return none, err
	}
	sender, err := f.sender(ctx, req, phone, a.Name)
	if err != nil {
		return none, err
	}
	req.Key, req.Operation = strconv.FormatInt(a.Channel, 10)+" "+a.ProviderID, "receive-message" // a network's ids are its own
	return commands.Create(ctx, f.Commands, req, message.Kind, f.Commands.Numbered(message.Kind.Category(), 1), message.Receive{
		Draft: message.Draft{Channel: a.Channel, Text: a.Text, Image: a.Image}, Contact: sender, ProviderID: a.ProviderID, SentAt: a.SentAt, Now: f.Commands.Now(),
	})
}

// sender returns the contact that has a phone, or makes one.
func (f *Messages) sender(ctx context.Context, req commands.Request, phone, name string) (int64, error) {
	id, err := f.holder(ctx, req.Workspace, phone)
	if err != nil {
		return 0, err
	}
	if id != 0 {
		_, err := commands.Handle(ctx, f.Commands, req, contact.Kind, strconv.FormatInt(id, 10), contact.Reopen{})
		return id, err
	}
	if _, err := person.Name("name", name); err != nil {
		name = "+" + phone
	}
	c := contact.Add{Name: name, Source: "chat", Reach: contact.Reach{Phone: patch.Set(phone)}}
	out, err := AddContact(ctx, f.Commands, req, c)
	if refused, ok := errors.AsType[*fault.Error](err); ok && refused.Code == "phone_taken" { // another message of theirs was faster
		return f.holder(ctx, req.Workspace, phone)
	}
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(out.ID, 10, 64)
}
