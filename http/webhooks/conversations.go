package webhooks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/commands/inbox"
	"bahi/commands/messagingcmd"
	"bahi/domain/fault"
	"bahi/domain/marketplace/enquiry"
	"bahi/domain/messaging/channel"
	"bahi/domain/messaging/message"
	"bahi/domain/messaging/network"
	"bahi/http/api"
	"bahi/providers/chat"
)

// MessageService records messages and receipts of networks.
type MessageService interface {
	ChannelOf(ctx context.Context, kind, identity string) (id int64, found bool, err error)
	Receive(ctx context.Context, a messagingcmd.InboundMessage) (commands.Outcome[message.State], error)
	Receipts(ctx context.Context, all []messagingcmd.DeliveryReceipt) ([]messagingcmd.ReceiptResult, error)
	Consent(ctx context.Context, channel int64, w messagingcmd.Sender, optIn bool, at network.Moment) (subject string, err error)
	ChangeSenderID(ctx context.Context, channel int64, before string, w messagingcmd.Sender) (subject string, err error)
	Revise(ctx context.Context, channel int64, providerID, text string, at network.Moment) (subject string, err error)
	Revoke(ctx context.Context, channel int64, providerID string, at network.Moment) error
	Template(ctx context.Context, channel int64, providerID, status string) error
	OfAccount(ctx context.Context, account string) (channels []int64, err error)
	SenderOf(ctx context.Context, channel int64) (string, error)
	Unconfirmed(ctx context.Context, sender, app string) (channels []int64, err error)
}

// Conversations handles the calls of networks about conversations.
type Conversations struct {
	MessageService
	ChannelSecrets

	Gateway chat.Proof
	Social  []string // secrets of social networks' signatures; none: only secrets of channels
	Verify  string   // token of a social network's handshake
	Now     func() time.Time

	Notices notices
	Own     string // the deployment's own sender on the chat network; empty: none
}

// notices records the states of messages of the deployment's own sender, which notify companies of enquiries.
type notices interface {
	Receipt(ctx context.Context, enquiry uuid.UUID, r message.Receipt) error
}

// ChannelSecrets are the proofs of single channels.
type ChannelSecrets interface {
	// SignedFor returns the channel of a chat network's sender if its own secret has signed the call, otherwise 0. It reports whether the
	// channel with the proven sender has a secret.
	SignedFor(ctx context.Context, sender string, signed func(secret string) bool) (id int64, guarded bool, err error)
	// SignedBy returns the first channels with the secret that signed a call. It tries the secrets of at most the given number of channels.
	SignedBy(ctx context.Context, tried int, signed func(secret string) bool) ([]int64, error)
	// AnyChat reports whether the deployment has a channel of the chat network.
	AnyChat(ctx context.Context) (bool, error)
	// Together reports whether two channels are of one workspace.
	Together(ctx context.Context, one, other int64) (bool, error)
	// HookToken returns the token that telegram sends with the updates of a channel; "" for a channel of another network.
	HookToken(ctx context.Context, channel string) (string, error)
	// ConsumerSecret returns the secret of a twitter channel and the id of its own user, "" for none.
	ConsumerSecret(ctx context.Context, channel string) (secret, user string, err error)
}

const receiveSocial = "receive-social"

// unmatchedFor is the time for which a receipt waits for its message.
const unmatchedFor = 15 * time.Minute

// Endpoints returns the endpoints of all networks.
func (k *Conversations) Endpoints() []Endpoint {
	aggregator := func(id, path, summary string) Endpoint {
		return Endpoint{
			ID: id, Path: path, Summary: summary, Key: chat.SenderKey, Handle: k.events, Verify: fromAggregator(k.Gateway),
		}
	}
	return []Endpoint{
		aggregator("receive-gateway-chat", "/api/webhooks/gateway/incoming_msg", "Receive a contact's message from the gateway"),
		aggregator("receive-gateway-receipt", "/api/webhooks/gateway/message-events", "Receive a delivery receipt from the gateway"),
		{
			ID: receiveSocial, Path: "/api/webhook/social", Summary: "Receive signed messages and receipts of a social or chat network",
			Verify: k.proveSocial, Key: chat.SenderKey, Handle: k.events, Handshake: k.greetSocial,
		},
		{
			ID: "receive-telegram", Path: "/api/webhook/telegram/" + perChannel, Summary: "Receive an update of a Telegram bot",
			Verify: k.proveTelegram,
			Key:    telegramKey, Handle: k.telegram,
		},
		{
			ID: "receive-twitter", Path: "/api/webhook/twitter/" + perChannel,
			Summary: "Receive signed direct messages", Verify: k.proveTwitter,
			Handle: k.twitter, Handshake: k.greetTwitter,
		},
	}
}

// proveSocial checks the signature with the configured secrets, then with the secrets of the channels that the body names. If the body is
// unreadable or names no channel with a secret, proveSocial tries the secrets of all channels. It returns the channels whose secrets match.
func (k *Conversations) proveSocial(r *http.Request, _ netip.Addr, body []byte) (channels string, err error) {
	given := r.Header.Get(chat.DefaultHMACHeader)
	signed := func(secret string) bool {
		return secret != "" && chat.Equal(given, chat.Sign(secret, body))
	}
	if slices.ContainsFunc(k.Social, signed) {
		return "", nil
	}
	if given == "" {
		return "", ErrUnverified
	}
	events, _ := chat.Decode("application/json", body) // an unreadable body names no channel
	var senders []string
	for _, e := range events {
		if e.Sender != "" && len(senders) < maxSenders && !slices.Contains(senders, e.Sender) {
			senders = append(senders, e.Sender)
		}
	}
	var signers []int64
	named := false
	for _, sender := range senders {
		id, guarded, err := k.SignedFor(r.Context(), sender, signed)
		if err != nil {
			return "", err
		}
		if named = named || guarded; id != 0 {
			signers = append(signers, id)
		}
	}
	if len(signers) == 0 && !named {
		if tooMany := api.Count(r.Context(), limit); tooMany != nil { // each check is expensive
			return "", tooMany
		}
		if signers, err = k.SignedBy(r.Context(), max(1, maxSigned/max(1, len(body))), signed); err != nil {
			return "", err
		}
	}
	if len(signers) == 0 {
		return "", ErrUnverified
	}
	return strings.Trim(strings.Join(strings.Fields(fmt.Sprint(signers)), ","), "[]"), nil
}

const (
	// maxSenders is the maximum number of named channels whose secrets are tried on a body.
	maxSenders = 10

	// maxSigned is the maximum number of bytes that are hashed to find the channel of a body that names none.
	maxSigned = 16 << 20
)

var errHandshake = fault.New(fault.Forbidden, "The verify token is missing or wrong")

// greetSocial returns the challenge of a handshake with the right token. It signs tokens only if the deployment has a sender.
func (k *Conversations) greetSocial(r *http.Request) (answer, contentType string, err error) {
	q := r.URL.Query()
	if token := q.Get("crc_token"); token != "" && len(k.Social) > 0 {
		exists, err := k.AnyChat(r.Context())
		switch {
		case err != nil:
			return "", "", err
		case !exists && k.Own == "":
			return "", "", errHandshake
		}
		return signedToken(k.Social[0], token)
	}
	if q.Get("hub.mode") != "subscribe" || !chat.Equal(q.Get("hub.verify_token"), k.Verify) {
		return "", "", errHandshake
	}
	return q.Get("hub.challenge"), "text/plain; charset=utf-8", nil
}

// outcome is the effect of the handled parts of a call.
type outcome struct {
	inbox.Outcome

	made []string // effects, by the places of the events
	late bool     // a part waits for its message
}

// part records the result of a part. A refusal by the rules does not affect other parts. Any other error ends the attempt.
func (o *outcome) part(place int, name, made string, err error, subjects ...string) error {
	switch {
	case errors.Is(err, messagingcmd.ErrUnmatched):
		o.late = true
	case inbox.OfRules(err):
		o.Unread = append(o.Unread, name+": "+err.Error())
	case err != nil:
		return err
	default:
		o.made[place], o.Subjects = cmp.Or(made, o.made[place]), append(o.Subjects, both(subjects...)...)
	}
	return nil
}

// end returns the outcome, or [messagingcmd.ErrUnmatched] if a part may still find its message.
func (k *Conversations) end(o *outcome, c inbox.Call) (inbox.Outcome, error) {
	o.Effect = strings.Join(both(o.made...), ", ")
	if o.late && k.Now().Sub(c.ReceivedAt) < unmatchedFor {
		return o.Outcome, messagingcmd.ErrUnmatched
	}
	return o.Outcome, nil
}

// events handles a body in one of the gateway's dialects. Events of unknown channels have no effect.
func (k *Conversations) events(ctx context.Context, c inbox.Call) (inbox.Outcome, error) {
	events, err := chat.Decode(c.ContentType, c.Body)
	if err != nil {
		return inbox.Outcome{}, inbox.Unreadable(err)
	}
	o := &outcome{made: make([]string, len(events))}
	var news []messagingcmd.DeliveryReceipt
	var of []int // places of the events in the body
	for i, e := range events {
		switch {
		case e.Kind == chat.Status && e.ID == "" && e.GSID == "" && e.Callback == "":
			o.Unread = append(o.Unread, e.Part()+": it names no message")
			continue
		case e.Kind == chat.Unread:
			o.Unread = append(o.Unread, e.Place+": "+e.Reason)
			continue
		case e.Kind == chat.Group:
			o.Reason = reasonGroup
			continue
		case k.ofNotice(c, e):
			made, err := k.noticed(ctx, c, e)
			if err := o.part(i, e.Part(), made, err); err != nil {
				return o.Outcome, err
			}
			continue
		}
		channels, held, err := k.channels(ctx, c, e)
		if err != nil {
			return o.Outcome, err
		}
		o.Held = append(o.Held, held...)
		for _, channel := range channels {
			if e.Kind == chat.Status {
				news, of = append(news, messagingcmd.DeliveryReceipt{Channel: channel, IDs: both(e.ID, e.GSID), Callback: e.Callback,
					Receipt: receipt(e, c)}), append(of, i)
				continue
			}
			made, subject, err := k.event(ctx, channel, e, c, i)
			if err := o.part(i, e.Part(), made, err, subject); err != nil {
				return o.Outcome, err
			}
		}
	}
	results, err := k.Receipts(ctx, news)
	if err != nil {
		return o.Outcome, refused(err)
	}
	for n, h := range results {
		if o.late = o.late || !h.Known; h.Known {
			o.made[of[n]], o.Subjects = "receipt "+news[n].Status, append(o.Subjects, both(h.Subject)...)
		}
	}
	return k.end(o, c)
}

// reasonGroup is the reason why a message of a group has no effect (CONTRACT.md R8).
const reasonGroup = "group"

// refused returns an error that parks the call if the rules refused it.
func refused(err error) error {
	if inbox.OfRules(err) {
		return inbox.Unreadable(err)
	}
	return err
}

// ofNotice reports whether an event is the state of a message of the deployment's own sender. A call signed by a channel's own secret is
// about that channel only.
func (k *Conversations) ofNotice(c inbox.Call, e chat.Event) bool {
	return c.ResourceID == "" && e.Kind == chat.Status && k.Own != "" && e.Sender == k.Own && c.Endpoint == receiveSocial &&
		strings.HasPrefix(e.Callback, enquiry.NoticePrefix)
}

// noticed records the state of a notice.
func (k *Conversations) noticed(ctx context.Context, c inbox.Call, e chat.Event) (made string, err error) {
	id, err := uuid.Parse(strings.TrimPrefix(e.Callback, enquiry.NoticePrefix))
	if err != nil {
		return "", nil //nolint:nilerr // not an id of Bahi
	}
	return "receipt " + e.Type, k.Notices.Receipt(ctx, id, receipt(e, c))
}

// receipt returns the receipt of an event.
func receipt(e chat.Event, c inbox.Call) message.Receipt {
	r := message.Receipt{Status: e.Type, Title: e.Title, Details: e.Reason, At: moment(e.At, c).At.UTC()}
	r.Code, _ = strconv.Atoi(e.Code) // 0 if the code is not a number
	return r
}

// channels returns the channels of an event, and the channels that may get it once its sender is proven to be theirs. If channels' own
// secrets have signed the call, it is about those that name the event's sender, or else about the channels of their workspaces.
func (k *Conversations) channels(ctx context.Context, c inbox.Call, e chat.Event) (about, held []int64, err error) {
	if c.ResourceID == "" {
		if about, err = k.named(ctx, e); err == nil && len(about) == 0 && e.Kind != chat.Template {
			held, err = k.Unconfirmed(ctx, e.Sender, e.App)
		}
		return about, held, err
	}
	var signers []int64
	for text := range strings.SplitSeq(c.ResourceID, ",") {
		id, _ := strconv.ParseInt(text, 10, 64) // valid: Verify returned it
		if sender, err := k.SenderOf(ctx, id); err != nil || sender != "" && sender == e.Sender {
			return []int64{id}, nil, err
		}
		signers = append(signers, id)
	}
	all, err := k.named(ctx, e)
	for _, id := range all {
		together := false
		for _, by := range signers {
			if err == nil && !together {
				together, err = k.Together(ctx, by, id)
			}
		}
		if together {
			about = append(about, id)
		}
	}
	return about, nil, err
}

// named returns the channels with the sender or app that an event names. A template belongs to each channel of its account.
func (k *Conversations) named(ctx context.Context, e chat.Event) ([]int64, error) {
	for _, identity := range []string{e.Sender, "app:" + e.App} {
		if id, found, err := k.ChannelOf(ctx, channel.Chat, identity); err != nil || found {
			return []int64{id}, err
		}
	}
	if e.Kind != chat.Template {
		return nil, nil
	}
	return k.OfAccount(ctx, e.Sender)
}

// event handles one event. It returns the effect, and the data subject of the body's personal values.
func (k *Conversations) event(ctx context.Context, of int64, e chat.Event, c inbox.Call, place int) (made, subject string,
	err error) {
	at := moment(e.At, c)
	writer := messagingcmd.Sender{From: e.From, UserID: e.UserID, Name: e.Name, Username: e.Username, Social: e.Page}
	switch e.Kind {
	case chat.Message:
		a := messagingcmd.InboundMessage{Sender: writer, Channel: of, Type: e.Type, Text: e.Text, Reacts: e.Reacts, ArrivedAt: c.ReceivedAt}
		a.ProviderID, a.SentAt = named(e, c, place)
		a.Code, _ = strconv.Atoi(e.Code) // as above
		a.Title, a.Details = e.Title, e.Reason
		if e.Media != nil {
			a.Ref, a.RefType = cmp.Or(e.Media.URL, e.Media.ID), e.Media.ContentType
		}
		return k.received(ctx, a)
	case chat.Consent:
		subject, err = k.Consent(ctx, of, writer, e.Type == "resume", at)
		return "consent", subject, err
	case chat.Moved:
		subject, err = k.ChangeSenderID(ctx, of, e.Before, writer)
		return "contact moved", subject, err
	case chat.Revised:
		subject, err = k.Revise(ctx, of, e.ID, e.Text, at)
		return "message changed", subject, err
	case chat.Revoked:
		return "message taken back", "", k.Revoke(ctx, of, e.ID, at)
	case chat.Failure:
		return "error " + e.Code, "", nil // the stored body has its text
	case chat.Template:
		return "template", "", k.Template(ctx, of, e.ID, e.Type)
	default:
		return "", "", nil
	}
}

// moment returns the network's time of an event, or else the time of the call.
func moment(at *time.Time, c inbox.Call) network.Moment {
	m := network.Moment{At: c.ReceivedAt, ArrivedAt: c.ReceivedAt}
	if at != nil && at.Before(c.ReceivedAt) {
		m.At = *at
	}
	return m
}

// received records a message.
func (k *Conversations) received(ctx context.Context, a messagingcmd.InboundMessage) (made, subject string, err error) {
	out, err := k.Receive(ctx, a)
	if err != nil || out.ID == "" {
		return "", "", err
	}
	return "message " + message.Name(out.ID), out.State.Subject(), nil
}

// both returns the ids that are not empty.
func both(ids ...string) (all []string) {
	for _, id := range ids {
		if id != "" {
			all = append(all, id)
		}
	}
	return all
}
