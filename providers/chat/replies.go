package chat

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"bahi/domain/messaging/channel"
	"bahi/domain/messaging/network"
)

// ReplySettings configure the sender of replies.
type ReplySettings struct {
	BaseURL string // URL of the aggregator, such as https://api.example.com/wa/api/v1; empty: the sandbox
	APIKey  string
	Source  string // our own phone; empty: the aggregator identifies it by the key and the app
	App     string // name of the app at the aggregator
	Channel string // the network's name at the aggregator
}

// Replies sends texts by one account of the aggregator.
type Replies struct {
	networks *Networks
	account  network.Account
}

// NewReplies returns the sender of replies, or an error if the settings are unusable.
func NewReplies(s ReplySettings) (*Replies, error) {
	u, err := url.Parse(s.BaseURL)
	switch {
	case s.BaseURL == "":
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("expected an address like https://api.example.com/wa/api/v1")
	case s.APIKey == "":
		return nil, errors.New("a gateway needs its API key")
	case s.Source != "" && network.Digits(s.Source) == "":
		return nil, errors.New("our own phone has no digits")
	}
	networks, err := New(Settings{Product: s.Channel, Client: &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // it would get the key
	}})
	if err != nil {
		return nil, err
	}
	return &Replies{networks, network.Account{
		Type: channel.Chat, Dialect: envelopeV2, BaseURL: s.BaseURL, APIKey: s.APIKey, SenderID: network.Digits(s.Source), AppName: s.App,
	}}, nil
}

// Reply sends a text to a phone and returns the network's id of it. Its error is a [*network.Failure]. id is ours, the same for each
// attempt.
func (r *Replies) Reply(ctx context.Context, id, to, text string) (string, error) {
	switch {
	case network.Digits(to) == "":
		return "", &network.Failure{Reason: network.Recipient}
	case r.account.BaseURL == "":
		return "sandbox-" + id, nil
	}
	return r.networks.Send(ctx, r.account, network.Message{ID: id, To: network.Digits(to), Text: text})
}

// Ended returns the status of a reply after an error: failed; unknown if the aggregator may have accepted it; empty if another attempt may
// follow.
func (*Replies) Ended(err error) string {
	failed := AsFailure(err)
	switch {
	case failed == nil || failed.Reason.Retryable():
		return ""
	case failed.Reason == network.Unknown:
		return "unknown"
	default:
		return "failed"
	}
}
