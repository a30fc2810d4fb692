package messagingcmd

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/commands/unique"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/messaging/channel"
	"bahi/domain/messaging/message"
	"bahi/domain/messaging/network"
)

// messageIndex finds existing messages.
type messageIndex interface {
	// Heard returns when a contact last wrote to a channel, the zero time for never.
	Heard(ctx context.Context, workspace uuid.UUID, channel, contact int64) (time.Time, error)
	// MessagesNamed returns the messages of a channel by the network's ids.
	MessagesNamed(ctx context.Context, workspace uuid.UUID, channel int64, ids []string) (map[string]int64, error)
	// MessagesAtHand is MessagesNamed without waiting for recent events.
	MessagesAtHand(ctx context.Context, workspace uuid.UUID, channel int64, ids []string) (map[string]int64, error)
	// LastHeard returns the newest message of a contact, or 0.
	LastHeard(ctx context.Context, workspace uuid.UUID, contact int64) (int64, error)
	// TemplateIDs returns the ids of a channel's templates by the network's ids.
	TemplateIDs(ctx context.Context, workspace uuid.UUID, channel int64) (map[string]int64, error)
	// Signing returns the first channels of a sender with their own secret for signing calls.
	Signing(ctx context.Context, sender string) ([]int64, error)
	// Unconfirmed returns the first channels with a sender or an app that is not verified.
	Unconfirmed(ctx context.Context, sender, app string) ([]int64, error)
	// AnyChat reports whether the deployment has a channel of the chat network.
	AnyChat(ctx context.Context) (bool, error)
	// OfAccount returns the channels of an account at the chat network.
	OfAccount(ctx context.Context, account string) ([]int64, error)
	// WithAppSecret returns at most the given number of channels of the deployment with a secret of a chat network.
	WithAppSecret(ctx context.Context, most int) ([]int64, error)
}

// Messages sends messages, and stores incoming ones.
type Messages struct {
	*Channels

	Templates *Templates
	Known     messageIndex
	Windows   *ReplyWindows // nil: not cached
	Files     files
	Sandboxed func(network.Account) bool
}

const (
	window      = 24 * time.Hour   // time after a person's message in which any reply is allowed (CONTRACT.md N2)
	sendTimeout = 25 * time.Second // time for all attempts of a send
)

var errClosed = (&network.Failure{Reason: network.WindowClosed}).Fault()

var errType = &fault.Error{Kind: fault.Conflict, Detail: "The channel's type does not send to phones", Code: "channel_type_unsupported"}

// Send sends a message to a phone. A retry with the same key returns the result of the message. It calls the network again only if the
// first call did not happen or was refused temporarily (CONTRACT.md N1). admit counts the call, except for a sandbox channel.
func (f *Messages) Send(ctx context.Context, req commands.Request, d message.Draft,
	admit func(channel int64) error) (out commands.Outcome[message.State], err error) {
	before, done, err := f.again(ctx, req)
	if done || err != nil {
		return before, err
	}
	return f.deliver(ctx, req, before, func(ctx context.Context, tx *commands.Tx) (sending, error) {
		of, err := sender(ctx, tx, d.Channel)
		switch {
		case err != nil:
			return sending{}, err
		case of.State.Type != channel.Chat:
			return sending{}, errType
		}
		recipient, _, err := f.owner(ctx, tx, req.Workspace, d.To)
		return sending{of: of, Queue: message.Queue{Draft: d, Contact: recipient}}, err
	}, admit)
}

// atHand returns a channel from this process's cache, so that not every message reads the log.
func (f *Messages) atHand(ctx context.Context, id int64) (commands.Loaded[channel.State], error) {
	return commands.LoadCached(ctx, f.Commands, channel.Kind, strconv.FormatInt(id, 10), func(s channel.State) bool { return s.Type != "" })
}

// sender returns a channel of the transaction's workspace, or [channel.ErrNotFound].
func sender(ctx context.Context, tx *commands.Tx, id int64) (commands.Loaded[channel.State], error) {
	of, err := commands.Load(ctx, tx, channel.Kind, strconv.FormatInt(id, 10))
	if err == nil && (of.Workspace != tx.Workspace() || of.State.Type == "") {
		err = channel.ErrNotFound
	}
	return of, err
}

// again returns the result of an earlier request with the same key. If done is true, the network must not be called again.
func (f *Messages) again(ctx context.Context, req commands.Request) (out commands.Outcome[message.State], done bool, err error) {
	out, err = f.earlier(ctx, req)
	switch failed := out.State.Failure(); {
	case err != nil || !out.Replayed:
		return out, false, err
	case failed == nil:
		return out, true, nil
	case !out.State.Reason.Retryable():
		return out, true, failed.Fault()
	default:
		return out, false, nil
	}
}

// deliver records a message that compose decides, calls the network, and records the result. before is the message of an earlier request
// with the same key. deliver sends it again.
func (f *Messages) deliver(
	ctx context.Context, req commands.Request, before commands.Outcome[message.State],
	compose func(ctx context.Context, tx *commands.Tx) (sending, error), admit func(channel int64) error,
) (out commands.Outcome[message.State], err error) {
	if before.Replayed {
		req = req.FollowUp()
	}
	var s sending
	out, err = commands.Do(ctx, f.Commands, req, message.Kind, func(ctx context.Context, tx *commands.Tx) error {
		if s, err = compose(ctx, tx); err != nil {
			return err
		}
		if s.of.State.Type == channel.Chat && s.filled == nil {
			if err := f.open(ctx, req.Workspace, s.Channel, s.Contact); err != nil {
				return err
			}
		}
		if s.account, err = f.account(ctx, strconv.FormatInt(s.Channel, 10), s.of.State); err != nil {
			return err
		}
		if !f.Sandboxed(s.account) {
			if _, err := commands.Once(tx, "admission", func() (any, error) { return true, admit(s.Channel) }); err != nil {
				return err
			}
		}
		if before.Replayed {
			_, err = commands.Decide(ctx, tx, message.Kind, before.ID, message.Requeue{})
			return err
		}
		_, err = commands.DecideNew(ctx, tx, message.Kind, f.Commands.IDFromSeries(message.Kind.Category(), 1),
			func(string) event.Command[message.State] { return s.Queue })
		return err
	})
	if err != nil || out.Replayed {
		if err == nil && out.State.Failure() != nil { // the same request is running elsewhere
			err = out.State.Failure().Fault()
		}
		return out, err
	}
	s.out = out
	return f.call(ctx, req, s)
}

// earlier returns the present state of the message of an earlier request with the same key.
func (f *Messages) earlier(ctx context.Context, req commands.Request) (commands.Outcome[message.State], error) {
	out, done, err := commands.PreviousOutcome(ctx, f.Commands, req, message.Kind)
	if err != nil || !done {
		return out, err
	}
	l, err := commands.Load(ctx, f.Commands.Fresh(), message.Kind, out.ID)
	out.State = l.State
	return out, err
}

// sending is a message with its channel.
type sending struct {
	message.Queue

	of      commands.Loaded[channel.State]
	account network.Account
	filled  *network.Filled // content of a template; nil: no template
	out     commands.Outcome[message.State]
}

// call calls the network and records the response, even if the client no longer waits.
func (f *Messages) call(ctx context.Context, req commands.Request, s sending) (commands.Outcome[message.State], error) {
	of, out, c := s.of, s.out, s.Queue
	ctx = context.WithoutCancel(ctx)
	calling, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	settle, as := message.RecordSendResult{Contact: c.Contact}, ""
	var picture []byte
	if c.Picture != nil {
		picture = c.Picture.Bytes
	}
	thread, err := f.thread(calling, of, c)
	if err != nil {
		f.Log.Warn("reading the thread of a mail failed", "channel", c.Channel, "error", err)
	}
	if of.State.Type == channel.Web { // the visitor's page reads it from Bahi
		settle.ProviderID = "web." + message.Name(out.ID)
	} else {
		err = f.renewed(calling, strconv.FormatInt(c.Channel, 10), s.account, func(a network.Account) (err error) {
			settle.ProviderID, err = f.Networks.Send(calling, a, network.Message{
				ID: message.Name(out.ID), To: c.To, Text: c.Text, Image: c.Image, Picture: picture, Subject: of.State.Name, Template: s.filled,
				Thread: thread, As: &as,
			})
			return err
		})
	}
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
	if err := errors.Join(
		f.learn(ctx, of, strconv.FormatInt(c.Channel, 10), settle.Failure), f.join(ctx, req, of, c, thread),
		f.alike(ctx, req, c.Contact, c.To, as),
	); err != nil {
		f.Log.Warn("recording the network's report failed", "channel", c.Channel, "error", err)
	}
	if settle.Failure != nil {
		if err := f.OptedOut(ctx, req, c.Contact, settle.Failure.Code); err != nil {
			f.Log.Warn("recording the opt-out of a contact failed", "channel", c.Channel, "error", err)
		}
		return settled, settle.Failure.Fault()
	}
	return settled, nil
}

// thread returns the network's thread of a mail, "" if unknown, and nil for a channel without threads.
func (f *Messages) thread(ctx context.Context, of commands.Loaded[channel.State], c message.Queue) (*string, error) {
	if of.State.Type != channel.Gmail {
		return nil, nil //nolint:nilnil // a channel without threads
	}
	l, err := commands.Load(ctx, f.Commands.Fresh(), message.ThreadKind, message.ThreadID(c.Channel, c.Contact))
	return new(l.State.Under(of.State.Name)), err
}

// join records the thread of a mail.
func (f *Messages) join(ctx context.Context, req commands.Request, of commands.Loaded[channel.State], c message.Queue,
	thread *string) error {
	if thread == nil || *thread == "" {
		return nil
	}
	_, err := commands.Handle(ctx, f.Commands, req.FollowUp(), message.ThreadKind, message.ThreadID(c.Channel, c.Contact),
		message.Join{Thread: *thread, Subject: of.State.Name})
	return err
}

// learn records the effects of a send on the channel or its templates. A successful send verifies the channel's sender at an aggregator
// without a list of templates.
func (f *Messages) learn(ctx context.Context, of commands.Loaded[channel.State], id string, failed *network.Failure) (err error) {
	r := channel.Report{IdentityKey: of.State.IdentityKey}
	r.Status, r.Error = of.State.StatusAfter(failed)
	if s := of.State.Settings; failed == nil && r.IdentityKey == "" && cmp.Or(s.Dialect, "cloud") != "cloud" && s.AppName != "" {
		if r.IdentityKey, err = unique.Key(ctx, f.Commands, channel.Identities, []byte(of.State.Type), []byte("app:"+s.AppName)); err != nil {
			return err
		}
	}
	if failed != nil && failed.Reason == network.Suspended {
		return f.Templates.forceRefresh(ctx, of.Workspace, id)
	}
	_, err = f.note(ctx, of.Workspace, id, of.State, r)
	return err
}

// open refuses a message to a person who has not written to the channel recently.
func (f *Messages) open(ctx context.Context, workspace uuid.UUID, channel, recipient int64) error {
	now := f.Commands.Now()
	if recipient == 0 {
		return errClosed
	}
	if f.Windows.until(channel, recipient).After(now) {
		return nil
	}
	last, err := f.Known.Heard(ctx, workspace, channel, recipient)
	if err != nil {
		return err
	}
	closes := last.Add(window)
	if !closes.After(now) {
		return errClosed
	}
	f.Windows.keep(channel, recipient, closes)
	return nil
}
