package ledgercmd

import (
	"cmp"
	"context"
	"time"

	"bahi/commands"
	"bahi/domain/event"
	"bahi/domain/ledger/orderdraft"
	"bahi/domain/ledger/ordertext"
)

// Message is a chat message that may be an order.
type Message struct {
	ID    string // the same in each delivery of a message
	From  string // digits of the phone; empty: the network named only the user
	User  string // the network's id of the sender
	Text  string
	Media string // JSON; empty: none
	At    time.Time
}

// window is the time in which the network accepts a reply to a message.
const window = 24 * time.Hour

// readTimeout is the timeout of the model for one message (CONTRACT.md I7).
const readTimeout = 90 * time.Second

// sentBy is the operation name of idempotency keys that are message ids.
const sentBy = "receive-order-draft"

// ReceiveDraft creates a draft from a message. It returns the draft's id and the data subject of its values. A repeated
// message has the same id, even after the draft was deleted. It returns [event.ErrErased] if the sender was erased.
func ReceiveDraft(ctx context.Context, req commands.Request, b *Books, m Message) (id, subject string, err error) {
	sender, err := SenderID(ctx, b.Commands, cmp.Or(m.From, m.User))
	if err != nil {
		return "", "", err
	}
	subject = orderdraft.Senders.Of(sender)
	// Only the message's id identifies a repeated delivery. Other fields may differ.
	req.Key, req.Operation, req.Fingerprint = m.ID, sentBy, []byte(m.ID)
	if out, done, err := commands.PreviousOutcome(ctx, b.Commands, req, orderdraft.Kind); done || err != nil {
		return out.ID, subject, err
	}
	c := orderdraft.Receive{
		Sender: sender, Phone: m.From, Raw: m.Text, Media: m.Media, Reply: m.From != "" && b.Commands.Now().Sub(m.At) < window,
	}
	if c.Clients, err = b.Reads.Clients(ctx, req.Workspace); err != nil {
		return "", "", err
	}
	c.Read, c.Parser = b.read(ctx, m)
	if entries := int64(len(c.Read.Entries)); entries > 0 {
		if c.First, err = b.Commands.Numbers(ctx, orderdraft.Entries, entries); err != nil {
			return "", "", err
		}
	}
	user, err := SenderID(ctx, b.Commands, m.User)
	if err != nil {
		return "", "", err
	}
	out, err := commands.Do(ctx, b.Commands, req, orderdraft.Kind, func(ctx context.Context, tx *commands.Tx) error {
		if m.From != "" && m.User != "" {
			if _, err := commands.Decide(ctx, tx, orderdraft.SenderKind, user, orderdraft.Meet{Sender: sender, Phone: m.From}); err != nil {
				return err
			}
		}
		_, err := commands.DecideNew(ctx, tx, orderdraft.Kind, b.Commands.IDFromSeries(orderdraft.Kind.Category(), 1),
			func(string) event.Command[orderdraft.State] { return c })
		return err
	})
	return out.ID, subject, err
}

// PhoneOf returns the digits of a user's recorded phone. It returns "" if there is none or the sender was erased.
func PhoneOf(ctx context.Context, b *Books, user string) (string, error) {
	id, err := SenderID(ctx, b.Commands, user)
	if err != nil {
		return "", err
	}
	return commands.RevealOf(ctx, b.Commands, orderdraft.SenderKind, id, func(s orderdraft.Sender) event.Personal { return s.Phone })
}

// orderReader is a model that reads orders.
type orderReader interface {
	// ReadOrder reads the text of a message and the picture to which it refers. The order MUST be within the limits of ordertext, whatever
	// the text and the picture contain.
	ReadOrder(ctx context.Context, text, media string) (ordertext.Order, error)
}

// read parses an order by the model if one is configured, else by rules. The rules also parse a message if the model
// fails or finds no order.
func (b *Books) read(ctx context.Context, m Message) (o ordertext.Order, parser string) {
	if b.Reader != nil {
		ctx, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		o, err := b.Reader.ReadOrder(ctx, m.Text, m.Media)
		if err == nil && len(o.Entries) > 0 {
			return o, orderdraft.Model
		}
		if err != nil {
			b.Log.Warn("reading a message by the model failed; using the rules", "error", err)
		}
	}
	return ordertext.Parse(m.Text), orderdraft.Rules
}

// EraseSender erases the sender with a phone: the phone and the messages in all its drafts.
func EraseSender(ctx context.Context, req commands.Request, h *commands.Handler, phone string) (commands.Outcome[orderdraft.Sender],
	error) {
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
