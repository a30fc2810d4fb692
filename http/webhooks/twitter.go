package webhooks

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"regexp"
	"strconv"

	"bahi/commands/inbox"
	"bahi/commands/messagingcmd"
	"bahi/providers/chat"
	"bahi/providers/lenient"
)

// crc signs a body or token as twitter does.
func crc(secret string, body []byte) string {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write(body)
	return "sha256=" + base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// SignedToken is the response to a handshake.
type SignedToken struct {
	Token string `json:"response_token" doc:"The token of the request, signed with the channel's consumer secret"`
}

// crcToken matches tokens of handshakes. It matches no valid body of a call. Otherwise an attacker could have a body signed by a handshake,
// and send the body with that signature.
var crcToken = regexp.MustCompile(`^[0-9A-Za-z+/=_.-]{1,200}$`)

// signedToken returns the response to a handshake: its token, signed.
func signedToken(secret, token string) (answer, contentType string, err error) {
	if !crcToken.MatchString(token) {
		return "", "", errHandshake
	}
	text, err := json.Marshal(SignedToken{crc(secret, []byte(token))})
	return string(text), "application/json", err
}

func (k *Conversations) proveTwitter(r *http.Request, _ netip.Addr, body []byte) (about string, err error) {
	about = lastOf(r)
	secret, _, err := k.ConsumerSecret(r.Context(), about)
	if err == nil && (secret == "" || !chat.Equal(r.Header.Get("X-Twitter-Webhooks-Signature"), crc(secret, body))) {
		err = ErrUnverified
	}
	return about, err
}

func (k *Conversations) greetTwitter(r *http.Request) (answer, contentType string, err error) {
	secret, _, err := k.ConsumerSecret(r.Context(), lastOf(r))
	token := r.URL.Query().Get("crc_token")
	switch {
	case err != nil:
		return "", "", err
	case secret == "":
		return "", "", errHandshake
	}
	return signedToken(secret, token)
}

// directMessages is a body of twitter, in the newer or the older form.
type directMessages struct {
	directEvents

	For  lenient.Text `json:"for_user_id"`
	Data struct {
		Type    string       `json:"event_type"`
		Payload directEvents `json:"payload"`
	} `json:"data"`
}

type directEvents struct {
	Events lenient.List[directMessage]          `json:"direct_message_events"`
	Users  map[string]lenient.Part[twitterUser] `json:"users"`
}

type directMessage struct {
	ID      lenient.Text   `json:"id"`
	Created lenient.Moment `json:"created_timestamp"`
	Message struct {
		Sender lenient.Text `json:"sender_id"`
		Data   struct {
			Text string `json:"text"`
		} `json:"message_data"`
	} `json:"message_create"`
}

type twitterUser struct {
	Name   string `json:"name"`
	Screen string `json:"screen_name"`
}

// twitter records direct messages from other users. An encrypted message stays in the inbox without effect.
func (k *Conversations) twitter(ctx context.Context, c inbox.Call) (inbox.Outcome, error) {
	var in directMessages
	o := &outcome{}
	if wrong := lenient.Read(c.Body, &in); wrong != "" {
		o.Unread = append(o.Unread, wrong)
	}
	sent, place := in.directEvents, "direct_message_events"
	if in.Data.Type == "dm.received" {
		sent, place = in.Data.Payload, "data.payload."+place
	}
	_, own, err := k.ConsumerSecret(ctx, c.ResourceID)
	if err != nil {
		return o.Outcome, err
	}
	of, _ := strconv.ParseInt(c.ResourceID, 10, 64) // the proof has found it
	o.made = make([]string, len(sent.Events))
	for i, part := range sent.Events {
		e, at := part.Value, fmt.Sprintf("%s[%d]", place, i)
		if part.Wrong != "" {
			o.Unread = append(o.Unread, at+": "+part.Wrong)
			continue
		}
		if chat.InGroup(part.Raw) {
			o.Reason = reasonGroup
			continue
		}
		from := string(e.Message.Sender)
		if from == "" || from == own || from == string(in.For) || e.ID == "" {
			continue
		}
		user := sent.Users[from].Value
		made, subject, err := k.received(ctx, messagingcmd.InboundMessage{
			Sender:  messagingcmd.Sender{UserID: from, Name: user.Name, Username: user.Screen, Social: true},
			Channel: of, Type: "text", Text: e.Message.Data.Text, ProviderID: string(e.ID), SentAt: moment(e.Created.Time, c).At,
			ArrivedAt: c.ReceivedAt,
		})
		if err := o.part(i, at, made, err, subject); err != nil {
			return o.Outcome, err
		}
	}
	return k.end(o, c)
}
