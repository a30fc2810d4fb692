package chat

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/google/uuid"
	"github.com/wneessen/go-mail"

	"bahi/domain/messaging/network"
)

// gmail is the Gmail API: a mail for each message (CONTRACT.md 0.7, 0.9).
type gmail struct{ wire }

// send implements adapter. An image is a link in the mail.
func (n gmail) send(ctx context.Context, a network.Account, m network.Message) (string, *network.Failure) {
	letter := mail.NewMsg(mail.WithNoDefaultUserAgent())
	letter.SetMessageIDWithValue(cmp.Or(m.ID, uuid.NewString()) + "@message.bahi.invalid") // the library's default names this machine
	if err := letter.To(m.To); err != nil {
		return "", &network.Failure{Reason: network.Recipient}
	}
	letter.Subject(m.Subject)
	first := thread(a, m.To)
	letter.SetGenHeader(mail.HeaderInReplyTo, first)
	letter.SetGenHeader(mail.HeaderReferences, first)
	letter.SetBodyString(mail.TypeTextPlain, linked(m))
	var raw bytes.Buffer
	if _, err := letter.WriteTo(&raw); err != nil {
		return "", &network.Failure{Reason: network.Content}
	}
	body := gmailBody{Raw: base64.URLEncoding.EncodeToString(raw.Bytes())}
	if m.Thread != nil {
		body.Thread = *m.Thread
	}
	sent, failed := n.post(ctx, a, body)
	if failed != nil && failed.Code == http.StatusNotFound && body.Thread != "" { // the account's owner has deleted the thread
		body.Thread = ""
		sent, failed = n.post(ctx, a, body)
	}
	if failed == nil && m.Thread != nil {
		*m.Thread = sent.Thread
	}
	return identified(sent.ID, failed)
}

// gmailBody is a mail to send, in the thread to which it belongs.
type gmailBody struct {
	Raw    string `json:"raw"`
	Thread string `json:"threadId,omitempty"`
}

// gmailSent is a mail that was sent.
type gmailSent struct {
	ID     string `json:"id"`
	Thread string `json:"threadId"`
}

func (n gmail) post(ctx context.Context, a network.Account, body gmailBody) (sent gmailSent, failed *network.Failure) {
	failed = n.ask(ctx, jsonCall(http.MethodPost, a.BaseURL+"/gmail/v1/users/me/messages/send", a.AccessToken, body), &sent, gmailFailure)
	return sent, failed
}

// thread returns the id of a mail that was never sent. All mails of a channel to an address refer to it, so that the recipient's mail
// program groups them (RFC 5322, section 3.6.4). Programs treat it like a deleted mail.
func thread(a network.Account, to string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", a.Channel, to))
	return "<" + hex.EncodeToString(sum[:16]) + "@thread.bahi.invalid>"
}

// health implements adapter. There are no webhooks for mails, so the account has no identity.
func (n gmail) health(ctx context.Context, a network.Account) (h network.Health, failed *network.Failure) {
	var me struct {
		Address string `json:"emailAddress"`
	}
	if failed := n.ask(ctx, jsonCall(http.MethodGet, a.BaseURL+"/gmail/v1/users/me/profile", a.AccessToken, nil), &me,
		gmailFailure); failed != nil {
		return h, failed
	}
	return network.Health{CanSend: "available"}, nil
}

// linked returns the text of a message, with its image as a link.
func linked(m network.Message) string {
	switch {
	case m.Image == "":
		return m.Text
	case m.Text == "":
		return m.Image
	default:
		return m.Text + "\n\n" + m.Image
	}
}

// gmailFailure reads {"error":{"code","message","errors":[{"reason"}]}}.
func gmailFailure(a answer) *network.Failure {
	var envelope struct {
		Error *struct {
			Code    number `json:"code"`
			Message string `json:"message"`
			Errors  []struct {
				Reason string `json:"reason"`
			} `json:"errors"`
		} `json:"error"`
	}
	if json.Unmarshal(a.body, &envelope) != nil || envelope.Error == nil {
		return nil //nolint:nilerr // an unreadable response has no reason
	}
	code := int(envelope.Error.Code)
	reason := reasonOf(code)
	slow := slices.ContainsFunc(envelope.Error.Errors, func(e struct {
		Reason string `json:"reason"`
	}) bool {
		return slices.Contains([]string{"rateLimitExceeded", "userRateLimitExceeded", "dailyLimitExceeded"}, e.Reason)
	})
	switch {
	case slow:
		reason = network.Throttled
	case code == http.StatusForbidden:
		reason = network.Credentials
	}
	return a.failed(reason, code, envelope.Error.Message, "")
}
