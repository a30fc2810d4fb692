package webhooks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"bahi/commands/inbox"
	"bahi/commands/ledgercmd"
	"bahi/domain/event"
	"bahi/providers/chat"
)

// Gateway turns the messages of an aggregator into order drafts.
type Gateway struct {
	Proof   chat.Proof
	Allowed []string // digits of phones, and the network's ids of users; messages of other senders are dropped

	// Phone returns the digits of the phone with which a user of the network wrote before, "" for none.
	Phone func(ctx context.Context, user string) (string, error)

	// Draft makes a draft of a message. It returns its id and the subject of its personal values.
	Draft func(ctx context.Context, m ledgercmd.Message) (id, subject string, err error)
}

// orders are the types of messages that may be orders (CONTRACT.md I5).
var orders = []string{"text", "image", "file", "audio", "button_reply", "list_reply"}

// Orders returns the endpoint of messages that are orders.
func (g Gateway) Orders() Endpoint {
	return Endpoint{
		ID: "receive-gateway-message", Path: "/gateway_incoming_webhook",
		Summary: "Receive a chat message from the gateway. A message of an allowed phone becomes an order draft.",
		Verify:  fromAggregator(g.Proof),
		Key:     chat.Key, Handle: g.draft,
	}
}

// fromAggregator returns the check of an aggregator's proof, which belongs to the deployment.
func fromAggregator(p chat.Proof) func(r *http.Request, from netip.Addr, body []byte) (string, error) {
	return func(r *http.Request, from netip.Addr, body []byte) (string, error) {
		return verified(p.Check(r, from, body))
	}
}

// draft makes a draft of each message of an allowed sender. It drops messages of other senders.
func (g Gateway) draft(ctx context.Context, c inbox.Call) (out inbox.Outcome, err error) {
	events, err := chat.Decode(c.ContentType, c.Body)
	if err != nil {
		return out, inbox.Unreadable(err)
	}
	var made []string
	strangers := 0
	for i, e := range events {
		switch e.Kind {
		case chat.Message:
		case chat.Unread:
			out.Unread = append(out.Unread, e.Place+": "+e.Reason)
			continue
		case chat.Group:
			out.Reason = reasonGroup
			continue
		default:
			continue
		}
		allowed, err := g.meet(ctx, &e)
		if err != nil {
			return out, err
		}
		if !allowed {
			strangers++
			continue
		}
		if !slices.Contains(orders, e.Type) {
			continue
		}
		m, err := order(e, c, i)
		if err != nil {
			return out, err
		}
		id, subject, err := g.Draft(ctx, m)
		if errors.Is(err, event.ErrErased) { // the sender was erased
			strangers++
			continue
		}
		if inbox.OfRules(err) {
			out.Unread = append(out.Unread, e.Part()+": "+err.Error())
			continue
		}
		if err != nil {
			return out, err
		}
		made, out.Subjects = append(made, "order draft "+id), append(out.Subjects, subject)
	}
	out.Effect, out.Forget = strings.Join(made, ", "), strangers > 0 && len(made) == 0
	return out, nil
}

// meet adds the phone with which a user wrote before, and reports whether the sender is allowed: by the number, the user's id, or a listed
// number with which the user wrote before. The user keeps that number (CONTRACT.md 0.9).
func (g Gateway) meet(ctx context.Context, e *chat.Event) (allowed bool, err error) {
	if e.UserID != "" && !slices.Contains(g.Allowed, e.From) {
		known, err := g.Phone(ctx, e.UserID)
		if err != nil {
			return false, err
		}
		if e.From == "" {
			e.From = known
		} else if slices.Contains(g.Allowed, known) && !slices.Contains(g.Allowed, e.UserID) {
			e.UserID = ""
			return true, nil
		}
	}
	return e.From+e.UserID != "" && (slices.Contains(g.Allowed, e.From) || slices.Contains(g.Allowed, e.UserID)), nil
}

// order returns an event's message.
func order(e chat.Event, c inbox.Call, place int) (m ledgercmd.Message, err error) {
	m = ledgercmd.Message{From: e.From, User: e.UserID, Text: e.Text}
	m.ID, m.At = named(e, c, place)
	if e.Media != nil {
		text, err := json.Marshal(e.Media)
		if err != nil {
			return m, fmt.Errorf("encode a reference to media: %w", err)
		}
		m.Media = string(text)
	}
	return m, nil
}

// named returns a message's id and time. Without an id, its place in the body identifies it. A future time becomes now.
func named(e chat.Event, c inbox.Call, place int) (id string, at time.Time) {
	id, at = e.ID, c.ReceivedAt
	if id == "" {
		sum := sha256.Sum256(c.Body)
		id = "sha256:" + hex.EncodeToString(sum[:]) + ":" + strconv.Itoa(place)
	}
	if e.At != nil && e.At.Before(c.ReceivedAt) {
		at = *e.At
	}
	return id, at
}
