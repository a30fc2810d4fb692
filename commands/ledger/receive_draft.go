package ledger

import (
	"cmp"
	"context"
	"time"

	"bahi/commands"
	"bahi/domain/ledger/orderdraft"
	"bahi/domain/ledger/ordertext"
)

// Message is a chat message that may be an order.
type Message struct {
	ID    string // the same in each repetition
	From  string // digits of the phone; empty: only the user is known
	User  string // the network's id of the sender
	Text  string
	Media string // JSON; empty: none
	At    time.Time
}

// window is how long after a message the network takes a reply to it.
const window = 24 * time.Hour

// sentBy names the operation whose idempotency keys are the messages' ids.
const sentBy = "receive-order-draft"

// ReceiveDraft makes a draft of a message and returns its id, which is the same for a repeated message, also after the draft was deleted, and
// the subject whose values it has. The error is [event.ErrErased] for a sender who was erased.
func ReceiveDraft(ctx context.Context, req commands.Request, b *Books, m Message) (id, subject string, err error) {
	sender, err := SenderID(ctx, b.Commands, cmp.Or(m.From, m.User))
	if err != nil {
		return "", "", err
	}
	subject = orderdraft.Senders.Of(sender)
	// The message's id decides whether it is the same, whatever else the repetition has.
	req.Key, req.Operation, req.Fingerprint = m.ID, sentBy, []byte(m.ID)
	if out, done, err := commands.Earlier(ctx, b.Commands, req, orderdraft.Kind); done || err != nil {
		return out.ID, subject, err
	}
	c := orderdraft.Receive{
		Sender: sender, Phone: m.From, Raw: m.Text, Media: m.Media, Read: ordertext.Parse(m.Text),
		Reply: m.From != "" && b.Commands.Now().Sub(m.At) < window,
	}
	if len(c.Read.Entries) > 0 {
		if c.First, err = b.Commands.Numbers(ctx, orderdraft.Entries, int64(len(c.Read.Entries))); err != nil {
			return "", "", err
		}
	}
	out, err := commands.Create(ctx, b.Commands, req, orderdraft.Kind, b.Commands.Numbered(orderdraft.Kind.Category(), 1), c)
	return out.ID, subject, err
}

// EraseSender forgets the sender with a phone: the phone and the messages of all drafts.
func EraseSender(ctx context.Context, req commands.Request, h *commands.Handler, phone string) (commands.Outcome[orderdraft.Sender], error) {
	id, err := SenderID(ctx, h, phone)
	if err != nil {
		return commands.Outcome[orderdraft.Sender]{}, err
	}
	return commands.Handle(ctx, h, req, orderdraft.SenderKind, id, orderdraft.EraseSender{})
}

// SenderID returns the id of a sender, a keyed hash of the phone's digits or the network's id.
func SenderID(ctx context.Context, h *commands.Handler, phone string) (string, error) {
	return h.Hash(ctx, "ordersender", []byte(phone))
}
