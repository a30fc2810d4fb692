package webhooks

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/netip"
	"regexp"
	"strconv"
	"time"

	"bahi/commands/inbox"
	flows "bahi/commands/messaging"
)

// same compares in a time that does not depend on the text. Nothing is the same as an empty secret.
func same(given, want string) bool {
	g, w := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(want))
	return subtle.ConstantTimeCompare(g[:], w[:]) == 1 && want != ""
}

// crc signs a body or token as twitter does.
func crc(secret string, body []byte) string {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write(body)
	return "sha256=" + base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// SignedToken is the answer to a handshake.
type SignedToken struct {
	Token string `json:"response_token" doc:"The token of the request, signed with the channel's consumer secret"`
}

// crcToken is what networks send as the token of a handshake. It is never a body that says something: else anybody could have such a body signed, and send it to us.
var crcToken = regexp.MustCompile(`^[0-9A-Za-z+/=_.-]{1,200}$`)

// signedToken returns the answer to a handshake: its token, signed.
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
	if err == nil && (secret == "" || !same(r.Header.Get("X-Twitter-Webhooks-Signature"), crc(secret, body))) {
		err = ErrNotProven
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

// directMessages is what twitter tells, in the newer form or the older one.
type directMessages struct {
	directEvents

	For  string `json:"for_user_id"`
	Data struct {
		Type    string       `json:"event_type"`
		Payload directEvents `json:"payload"`
	} `json:"data"`
}

type directEvents struct {
	Events []struct {
		ID      string `json:"id"`
		Created string `json:"created_timestamp"`
		Message struct {
			Sender string `json:"sender_id"`
			Data   struct {
				Text string `json:"text"`
			} `json:"message_data"`
		} `json:"message_create"`
	} `json:"direct_message_events"`
	Users map[string]struct {
		Name   string `json:"name"`
		Screen string `json:"screen_name"`
	} `json:"users"`
}

// twitter keeps the direct messages of others. One that nobody can read without a key of the network stays in the inbox, without an effect.
func (k *Conversations) twitter(ctx context.Context, c inbox.Call) (out inbox.Outcome, err error) {
	var in directMessages
	if err := json.Unmarshal(c.Body, &in); err != nil {
		return out, inbox.Unreadable(err)
	}
	told := in.directEvents
	if in.Data.Type == "dm.received" {
		told = in.Data.Payload
	}
	_, own, err := k.ConsumerSecret(ctx, c.About)
	if err != nil {
		return out, err
	}
	of, _ := strconv.ParseInt(c.About, 10, 64) // the proof has found it
	for _, e := range told.Events {
		from := e.Message.Sender
		if from == "" || from == own || from == in.For || e.ID == "" {
			continue
		}
		at := c.ReceivedAt
		if millis, err := strconv.ParseInt(e.Created, 10, 64); err == nil {
			at = time.UnixMilli(millis)
		}
		one, err := k.one(ctx, flows.Arrival{
			Writer:  flows.Writer{UserID: from, Name: told.Users[from].Name, Username: told.Users[from].Screen, Social: true},
			Channel: of, Type: "text", Text: e.Message.Data.Text, ProviderID: e.ID, SentAt: at,
		})
		if err != nil {
			return out, err
		}
		if out.Effect != "" {
			out.Effect += ", "
		}
		out.Effect, out.Subjects = out.Effect+one.Effect, append(out.Subjects, one.Subjects...)
	}
	return out, nil
}
