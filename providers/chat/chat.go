// Package chat has the networks of channels: the adapter of each wire format, and the sandbox that replaces a network without an address.
// It decodes the webhook calls of the chat network and of the aggregator, which connects to it, and checks their signatures.
package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"bahi/domain/messaging/channel"
	"bahi/domain/messaging/network"
)

// Settings are the deployment's addresses of the networks. A network without an address is the sandbox.
type Settings struct {
	ChatURL     string // URL of the cloud wire format, with its version
	GatewayURL  string // URL of the aggregator
	TelegramURL string
	GmailURL    string
	TwitterURL  string

	GmailTokenURL string // endpoint that issues access tokens of gmail
	Product       string // value of messaging_product and channel
	LimitField    string // field of a sender that has its messaging limit

	Client  *http.Client
	Timeout time.Duration // timeout of each try; 0: 10 seconds
	Pause   time.Duration // before the second try; 0: 200 ms
}

// adapter speaks one wire format.
type adapter interface {
	// send sends a message once, and returns the network's id of it.
	send(ctx context.Context, a network.Account, m network.Message) (string, *network.Failure)
	// health requests the network's status of the account.
	health(ctx context.Context, a network.Account) (network.Health, *network.Failure)
}

// Networks sends to the network of each account.
type Networks struct {
	settings Settings
	sandbox  *Sandbox
	wire     wire
	dialects map[string]adapter // by type, and for chat by dialect
	bases    map[string]string
	breakers *breakers
	files    *breakers // breakers of the other servers that have incoming files
}

// New returns the networks. It refuses settings that are not addresses.
func New(s Settings) (*Networks, error) {
	for name, text := range map[string]string{
		"CHAT_BASE_URL": s.ChatURL, "GATEWAY_BASE_URL": s.GatewayURL, "TELEGRAM_BASE_URL": s.TelegramURL, "GMAIL_BASE_URL": s.GmailURL,
		"GMAIL_TOKEN_URL": s.GmailTokenURL, "TWITTER_BASE_URL": s.TwitterURL,
	} {
		u, err := url.Parse(text)
		if text != "" && (err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Scheme != "http" && u.Scheme != "https") {
			return nil, fmt.Errorf("%s: expected an address like https://chat.example.org", name)
		}
	}
	s.Product, s.LimitField = cmp.Or(s.Product, "chat-network"), cmp.Or(s.LimitField, "messaging_limit_tier")
	s.Timeout, s.Pause = cmp.Or(s.Timeout, callTimeout), cmp.Or(s.Pause, firstPause)
	via := wire{client: s.Client, timeout: s.Timeout}
	aggregator := gateway{wire: via, product: s.Product}
	return &Networks{
		settings: s, sandbox: &Sandbox{}, wire: via, breakers: newBreakers(), files: newBreakers(),
		dialects: map[string]adapter{
			"cloud": cloud{wire: via, product: s.Product, limitField: s.LimitField}, envelopeV2: aggregator, graphV3: aggregator,
			formV1:           aggregator,
			channel.Telegram: telegram{via}, channel.Gmail: gmail{via}, channel.Twitter: twitter{via},
		},
		bases: map[string]string{
			"cloud": s.ChatURL, envelopeV2: s.GatewayURL, graphV3: s.GatewayURL, formV1: s.GatewayURL,
			channel.Telegram: s.TelegramURL, channel.Gmail: s.GmailURL, channel.Twitter: s.TwitterURL,
		},
	}, nil
}

// of returns the adapter of an account, and the account with its address.
func (n *Networks) of(a network.Account) (adapter, network.Account) {
	dialect := a.Type
	if dialect == channel.Chat {
		dialect = cmp.Or(a.Dialect, "cloud")
	}
	a.BaseURL = strings.TrimRight(cmp.Or(a.BaseURL, n.bases[dialect]), "/")
	if a.BaseURL == "" {
		return n.sandbox, a
	}
	return n.dialects[dialect], a
}

// Sandboxed reports whether the account's messages go to the sandbox, which sends none.
func (n *Networks) Sandboxed(a network.Account) bool {
	_, a = n.of(a)
	return a.BaseURL == ""
}

// lacking returns the failure of an account without the credential that its network requires.
func lacking(a network.Account) *network.Failure {
	if (a.Type == channel.Gmail || a.Type == channel.Twitter) && a.AccessToken == "" && a.RefreshToken == "" {
		return &network.Failure{Reason: network.Unconfigured}
	}
	return nil
}

// Send sends a message and returns the network's id of it. Its error is a [*network.Failure]. It retries if nothing was sent: without a
// connection, and after a temporary error of the network (CONTRACT.md N1). After five successive calls without a response it does not call
// a network for half a minute.
func (n *Networks) Send(ctx context.Context, a network.Account, m network.Message) (id string, err error) {
	via, a := n.of(a)
	failed := lacking(a)
	if failed == nil {
		failed = n.breakers.call(a.Channel, func() *network.Failure {
			return n.again(ctx, func() (f *network.Failure) {
				id, f = via.send(ctx, a, m)
				return f
			})
		})
	}
	if failed != nil {
		return "", failed
	}
	return id, nil
}

// Health requests the network's status of an account, without retries. Its error is a [*network.Failure].
func (n *Networks) Health(ctx context.Context, a network.Account) (network.Health, error) {
	via, called := n.of(a)
	if failed := lacking(called); failed != nil {
		return network.Health{}, failed
	}
	h, failed := via.health(ctx, called)
	if failed != nil {
		return network.Health{}, failed
	}
	a.BaseURL = "" // a channel's own server is no proof: the channel's owner controls it
	_, own := n.of(a)
	h.Proven = called.BaseURL != "" && called.BaseURL == own.BaseURL
	return h, nil
}

func (n *Networks) again(ctx context.Context, try func() *network.Failure) (failed *network.Failure) {
	pause := n.settings.Pause
	for nth := range tries {
		failed = try()
		if failed == nil || nth == tries-1 || failed.Reason != network.Unreached && failed.Reason != network.Temporary {
			return failed
		}
		select {
		case <-time.After(pause):
			pause *= 2
		case <-ctx.Done():
			return failed
		}
	}
	return failed
}

// wire makes the calls of all adapters.
type wire struct {
	client  *http.Client
	timeout time.Duration
}

// ask makes a call and decodes its response.
func (w wire) ask(ctx context.Context, c call, into any, failure func(answer) *network.Failure) *network.Failure {
	a, failed := do(ctx, w.client, w.timeout, c)
	if failed != nil {
		return failed
	}
	return a.read(into, failure)
}

// identified returns the network's id of a sent message. Without an id, the result is unknown.
func identified(id string, failed *network.Failure) (string, *network.Failure) {
	if failed == nil && (id == "" || len(id) > maxWords) {
		failed = &network.Failure{Reason: network.Unknown}
	}
	return id, failed
}

// AsFailure returns the failure of an error of [Networks].
func AsFailure(err error) *network.Failure {
	f, _ := errors.AsType[*network.Failure](err)
	return f
}
