package webhooks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/commands/inbox"
	flows "bahi/commands/messaging"
	"bahi/domain/fault"
	"bahi/domain/marketplace/enquiry"
	"bahi/domain/messaging/channel"
	"bahi/domain/messaging/message"
	"bahi/providers/gateway"
)

// Talk is what becomes of the messages and receipts of networks.
type Talk interface {
	ChannelOf(ctx context.Context, kind, identity string) (id int64, found bool, err error)
	Receive(ctx context.Context, a flows.Arrival) (commands.Outcome[message.State], error)
	Receipts(ctx context.Context, all []flows.News) ([]flows.Heard, error)
	Consent(ctx context.Context, channel int64, w flows.Writer, optIn bool) (subject string, err error)
	Move(ctx context.Context, channel int64, before string, w flows.Writer) (subject string, err error)
	Revise(ctx context.Context, channel int64, providerID, text string) (subject string, err error)
	Revoke(ctx context.Context, channel int64, providerID string) error
	Template(ctx context.Context, channel int64, providerID, status string) error
	OfAccount(ctx context.Context, account string) (channels []int64, err error)
	SenderOf(ctx context.Context, channel int64) (string, error)
	Unconfirmed(ctx context.Context, sender, app string) (channels []int64, err error)
}

// Conversations keeps what networks tell of conversations.
type Conversations struct {
	Talk
	ChannelSecrets

	Gateway gateway.Proof
	Social  []string // secrets that sign what a social network sends; none: only those of channels
	Verify  string   // token that a social network shows in its handshake
	Now     func() time.Time

	Notices Notices
	Own     string // the deployment's own sender on the chat network; empty: there is none
}

// Notices hears what became of the messages of the deployment's own sender, which tell companies of enquiries.
type Notices interface {
	Receipt(ctx context.Context, enquiry uuid.UUID, r message.Receipt) error
}

// ChannelSecrets are the proofs of single channels.
type ChannelSecrets interface {
	// SignedFor returns the channel of a sender at a chat network whose own secret has signed a call, 0 for none.
	SignedFor(ctx context.Context, sender string, signed func(secret string) bool) (int64, error)
	// HookToken returns what telegram sends with the updates of a channel, "" for a channel that is none of it.
	HookToken(ctx context.Context, channel string) (string, error)
	// ConsumerSecret returns the secret of a twitter channel and the id of its own user, "" for none.
	ConsumerSecret(ctx context.Context, channel string) (secret, user string, err error)
}

const receiveSocial = "receive-social"

// unmatchedFor is how long a receipt waits for the message that it is about.
const unmatchedFor = 15 * time.Minute

// Endpoints returns those of all networks.
func (k *Conversations) Endpoints() []Endpoint {
	aggregator := func(id, path, summary string) Endpoint {
		return Endpoint{
			ID: id, Path: path, Summary: summary, Key: gateway.SenderKey, Handle: k.events, Prove: fromAggregator(k.Gateway),
		}
	}
	return []Endpoint{
		aggregator("receive-gateway-chat", "/api/webhooks/gateway/incoming_msg", "Receive a message of a contact from the gateway"),
		aggregator("receive-gateway-receipt", "/api/webhooks/gateway/message-events", "Receive what became of a message from the gateway"),
		{
			ID: receiveSocial, Path: "/api/webhook/social", Summary: "Receive messages and receipts of a social network or chat network, signed",
			Prove: k.proveSocial, Key: gateway.SenderKey, Handle: k.events, Greet: k.greetSocial,
		},
		{
			ID: "receive-telegram", Path: "/api/webhook/telegram/" + perChannel, Summary: "Receive an update of a telegram bot", Prove: k.proveTelegram,
			Key: telegramKey, Handle: k.telegram,
		},
		{
			ID: "receive-twitter", Path: "/api/webhook/twitter/" + perChannel, Summary: "Receive direct messages, signed", Prove: k.proveTwitter,
			Handle: k.twitter, Greet: k.greetTwitter,
		},
	}
}

// mostSenders bounds the channels whose secrets are tried on a body.
const mostSenders = 10

// proveSocial checks the signature by the configured secrets, else by the secrets of the channels that the body names: each of them must have signed it.
// It returns these channels.
func (k *Conversations) proveSocial(r *http.Request, _ netip.Addr, body []byte) (channels string, err error) {
	given := r.Header.Get(gateway.DefaultHMACHeader)
	signed := func(secret string) bool {
		return gateway.Proof{HMACSecret: secret}.Check(&http.Request{Header: http.Header{gateway.DefaultHMACHeader: {given}}}, netip.Addr{}, body) == nil
	}
	if slices.ContainsFunc(k.Social, signed) {
		return "", nil
	}
	events, err := gateway.Decode("application/json", body)
	if err != nil || given == "" || len(events) == 0 {
		return "", ErrNotProven
	}
	var senders []string
	for _, e := range events {
		if !slices.Contains(senders, e.Sender) {
			senders = append(senders, e.Sender)
		}
	}
	if len(senders) > mostSenders {
		return "", ErrNotProven
	}
	var all []string
	for _, sender := range senders {
		id, err := k.SignedFor(r.Context(), sender, signed)
		if err != nil {
			return "", err
		}
		if id == 0 {
			return "", ErrNotProven
		}
		all = append(all, strconv.FormatInt(id, 10))
	}
	return strings.Join(all, ","), nil
}

var errHandshake = fault.New(fault.Forbidden, "The verify token is missing or wrong")

// greetSocial returns the challenge of a handshake whose token is right.
func (k *Conversations) greetSocial(r *http.Request) (answer, contentType string, err error) {
	q := r.URL.Query()
	if token := q.Get("crc_token"); token != "" && len(k.Social) > 0 {
		return signedToken(k.Social[0], token)
	}
	if q.Get("hub.mode") != "subscribe" || !same(q.Get("hub.verify_token"), k.Verify) {
		return "", "", errHandshake
	}
	return q.Get("hub.challenge"), "text/plain; charset=utf-8", nil
}

// events makes the effects of a body in one of the gateway's dialects. Whose channel is not known is of nobody's concern here.
func (k *Conversations) events(ctx context.Context, c inbox.Call) (out inbox.Outcome, err error) {
	events, err := gateway.Decode(c.ContentType, c.Body)
	if err != nil {
		return out, inbox.Unreadable(err)
	}
	made, late := make([]string, len(events)), false
	var news []flows.News
	var of []int // the places of what they tell in the body
	for i, e := range events {
		if k.ofNotice(c, e) {
			if made[i], err = k.noticed(ctx, e); err != nil {
				return out, refused(err)
			}
			continue
		}
		channels, held, err := k.channels(ctx, c, e)
		if err != nil {
			return out, err
		}
		out.Held = append(out.Held, held...)
		for _, channel := range channels {
			if e.Kind == gateway.Status {
				news, of = append(news, flows.News{Channel: channel, IDs: both(e.ID, e.GSID), Callback: e.Callback, Receipt: receiptOf(e)}), append(of, i)
				continue
			}
			what, subject, err := k.event(ctx, channel, e, c, i)
			switch {
			case errors.Is(err, flows.ErrUnmatched):
				late = true
			case err != nil:
				return out, refused(err)
			default:
				made[i], out.Subjects = cmp.Or(what, made[i]), append(out.Subjects, both(subject)...)
			}
		}
	}
	heard, err := k.Receipts(ctx, news)
	if err != nil {
		return out, refused(err)
	}
	for n, h := range heard {
		if late = late || !h.Known; h.Known {
			made[of[n]], out.Subjects = "receipt "+news[n].Status, append(out.Subjects, both(h.Subject)...)
		}
	}
	out.Effect = strings.Join(both(made...), ", ")
	if late && k.Now().Sub(c.ReceivedAt) < unmatchedFor {
		return out, flows.ErrUnmatched
	}
	return out, nil
}

// refused returns an error that no further attempt mends for what the rules refuse.
func refused(err error) error {
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Kind != fault.Unavailable {
		return inbox.Unreadable(err)
	}
	return err
}

// ofNotice reports whether an event says what became of a message of the deployment's own sender. A channel's own secret speaks for the channel only.
func (k *Conversations) ofNotice(c inbox.Call, e gateway.Event) bool {
	return c.About == "" && e.Kind == gateway.Status && k.Own != "" && e.Sender == k.Own && c.Endpoint == receiveSocial && strings.HasPrefix(e.Callback, enquiry.NoticePrefix)
}

// noticed notes it.
func (k *Conversations) noticed(ctx context.Context, e gateway.Event) (made string, err error) {
	id, err := uuid.Parse(strings.TrimPrefix(e.Callback, enquiry.NoticePrefix))
	if err != nil {
		return "", nil //nolint:nilerr // no id of ours
	}
	return "receipt " + e.Type, k.Notices.Receipt(ctx, id, receiptOf(e))
}

// receiptOf returns what an event says of a message.
func receiptOf(e gateway.Event) message.Receipt {
	r := message.Receipt{Status: e.Type, Title: e.Title, Details: e.Reason}
	r.Code, _ = strconv.Atoi(e.Code) // a code that is no number is none
	return r
}

// channels returns the channels that an event is about, and those that it may be about once its sender is known to be theirs. A template is of each
// channel of an account. A call that channels' own secrets have proven is about these alone.
func (k *Conversations) channels(ctx context.Context, c inbox.Call, e gateway.Event) (about, held []int64, err error) {
	if c.About != "" {
		signers := strings.Split(c.About, ",")
		for _, text := range signers {
			id, _ := strconv.ParseInt(text, 10, 64) // the proof has found it
			if len(signers) == 1 {
				return []int64{id}, nil, nil
			}
			if sender, err := k.SenderOf(ctx, id); err != nil || sender == e.Sender {
				return []int64{id}, nil, err
			}
		}
		return nil, nil, nil
	}
	for _, identity := range []string{e.Sender, "app:" + e.App} {
		if id, found, err := k.ChannelOf(ctx, channel.Chat, identity); err != nil || found {
			return []int64{id}, nil, err
		}
	}
	if e.Kind == gateway.Template {
		about, err = k.OfAccount(ctx, e.Sender)
		return about, nil, err
	}
	held, err = k.Unconfirmed(ctx, e.Sender, e.App)
	return nil, held, err
}

// event makes the effect of one event, and returns it and whose values the body has.
func (k *Conversations) event(ctx context.Context, of int64, e gateway.Event, c inbox.Call, place int) (made, subject string, err error) {
	writer := flows.Writer{From: e.From, UserID: e.UserID, Name: e.Name, Username: e.Username, Social: e.Page}
	switch e.Kind {
	case gateway.Message:
		a := flows.Arrival{Writer: writer, Channel: of, Type: e.Type, Text: e.Text}
		a.ProviderID, a.SentAt = named(e, c, place)
		a.Code, _ = strconv.Atoi(e.Code) // as above
		a.Title, a.Details = e.Title, e.Reason
		if e.Media != nil {
			a.Ref, a.RefType = cmp.Or(e.Media.URL, e.Media.ID), e.Media.ContentType
		}
		return k.received(ctx, a)
	case gateway.Consent:
		subject, err = k.Consent(ctx, of, writer, e.Type == "resume")
		return "consent", subject, err
	case gateway.Moved:
		subject, err = k.Move(ctx, of, e.Before, writer)
		return "contact moved", subject, err
	case gateway.Revised:
		subject, err = k.Revise(ctx, of, e.ID, e.Text)
		return "message changed", subject, err
	case gateway.Revoked:
		return "message taken back", "", k.Revoke(ctx, of, e.ID)
	case gateway.Failure:
		return "error " + e.Code, "", nil // its words are in the body
	case gateway.Template:
		return "template", "", k.Template(ctx, of, e.ID, e.Type)
	default:
		return "", "", nil
	}
}

// received keeps a message.
func (k *Conversations) received(ctx context.Context, a flows.Arrival) (made, subject string, err error) {
	out, err := k.Receive(ctx, a)
	if err != nil {
		return "", "", err
	}
	return "message " + message.Name(out.ID), out.State.Subject(), nil
}

// both returns the words that are there.
func both(ids ...string) (all []string) {
	for _, id := range ids {
		if id != "" {
			all = append(all, id)
		}
	}
	return all
}

// telegramUpdate is what a bot is told.
type telegramUpdate struct {
	ID      int64            `json:"update_id"`
	Message *telegramMessage `json:"message"`
	Edited  *telegramMessage `json:"edited_message"`
}

type telegramMessage struct {
	ID   int64 `json:"message_id"`
	Date int64 `json:"date"`
	Chat struct {
		ID   int64  `json:"id"`
		Type string `json:"type"`
	} `json:"chat"`
	From struct {
		First    string `json:"first_name"`
		Last     string `json:"last_name"`
		Username string `json:"username"`
	} `json:"from"`
	Text     string         `json:"text"`
	Caption  string         `json:"caption"`
	Photo    []telegramFile `json:"photo"`
	Document *telegramFile  `json:"document"`
	Voice    *telegramFile  `json:"voice"`
	Video    *telegramFile  `json:"video"`
}

type telegramFile struct {
	ID       string `json:"file_id"`
	MimeType string `json:"mime_type"`
}

// telegramKey is the update's id.
func telegramKey(_ string, body []byte) string {
	var u telegramUpdate
	if json.Unmarshal(body, &u) != nil || u.ID == 0 {
		return ""
	}
	return strconv.FormatInt(u.ID, 10)
}

func (k *Conversations) proveTelegram(r *http.Request, _ netip.Addr, _ []byte) (about string, err error) {
	about = lastOf(r)
	want, err := k.HookToken(r.Context(), about)
	if err == nil && !same(r.Header.Get("X-Telegram-Bot-Api-Secret-Token"), want) {
		err = ErrNotProven
	}
	return about, err
}

// lastOf returns the channel that a path ends with.
func lastOf(r *http.Request) string { return r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:] }

// telegram keeps the messages of private chats.
func (k *Conversations) telegram(ctx context.Context, c inbox.Call) (out inbox.Outcome, err error) {
	var u telegramUpdate
	of, _ := strconv.ParseInt(c.About, 10, 64) // the proof has found it
	if err := json.Unmarshal(c.Body, &u); err != nil {
		return out, inbox.Unreadable(err)
	}
	if m := u.Edited; m != nil && m.Chat.Type == "private" {
		subject, err := k.Revise(ctx, of, m.name(), cmp.Or(m.Text, m.Caption))
		if errors.Is(err, flows.ErrUnmatched) && k.Now().Sub(c.ReceivedAt) >= unmatchedFor {
			return out, nil
		}
		out.Effect, out.Subjects = "message changed", both(subject)
		return out, err
	}
	m := u.Message
	if m == nil || m.Chat.Type != "private" || m.ID == 0 {
		return out, nil
	}
	a := flows.Arrival{
		Writer:  flows.Writer{UserID: strconv.FormatInt(m.Chat.ID, 10), Name: strings.TrimSpace(m.From.First + " " + m.From.Last), Username: m.From.Username, Social: true},
		Channel: of, Type: "text", Text: cmp.Or(m.Text, m.Caption), ProviderID: m.name(), SentAt: time.Unix(m.Date, 0),
	}
	for kind, f := range map[string]*telegramFile{"file": m.Document, "audio": m.Voice, "video": m.Video} {
		if f != nil {
			a.Type, a.Ref, a.RefType = kind, f.ID, f.MimeType
		}
	}
	if len(m.Photo) > 0 { // the last is the largest
		a.Type, a.Ref, a.RefType = "image", m.Photo[len(m.Photo)-1].ID, "image/jpeg"
	}
	return k.one(ctx, a)
}

// one keeps the only message of a call.
func (k *Conversations) one(ctx context.Context, a flows.Arrival) (out inbox.Outcome, err error) {
	made, subject, err := k.received(ctx, a)
	if err != nil {
		return out, refused(err)
	}
	out.Effect, out.Subjects = made, both(subject)
	return out, nil
}

// name is the id of a message: those of the network count within a chat.
func (m *telegramMessage) name() string {
	return strconv.FormatInt(m.Chat.ID, 10) + ":" + strconv.FormatInt(m.ID, 10)
}
