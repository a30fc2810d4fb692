package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/commands/ledgercmd"
	"bahi/domain/actor"
	"bahi/domain/person"
	"bahi/http/api"
	"bahi/http/opshttp"
	"bahi/http/webhooks"
	"bahi/providers/chat"
	"bahi/providers/chatgateway"
	"bahi/reactors/ledgerreact"
	"bahi/readmodels/ledgerview"
)

// incomingSettings configure the gateway of chat messages. The zero value has a generated token, accepts no sender and stores replies.
type incomingSettings struct {
	WebhookToken      string   `env:"GATEWAY_WEBHOOK_TOKEN" name:"gateway-webhook-token" placeholder:"TOKEN" help:"Token of the gateway's webhooks, in ?token= or X-Gateway-Token. Without token, secret and addresses, the first start creates and prints one."`
	WebhookSecret     string   `env:"GATEWAY_WEBHOOK_HMAC_SECRET" name:"gateway-webhook-hmac-secret" placeholder:"SECRET" help:"Secret with which the gateway signs the bodies of its webhooks."`
	WebhookHeader     string   `env:"GATEWAY_WEBHOOK_HMAC_HEADER" name:"gateway-webhook-hmac-header" default:"X-Hub-Signature-256" help:"Header of that signature."`
	WebhookAddresses  []string `env:"GATEWAY_WEBHOOK_ADDRESSES" name:"gateway-webhook-addresses" placeholder:"CIDR" example:"203.0.113.0/24" help:"Addresses from which the gateway calls."`
	AllowedPhones     []string `env:"GATEWAY_ALLOWED_PHONES" name:"gateway-allowed-phones" placeholder:"PHONE" example:"919812345678" help:"Phones, or the network's user ids, whose messages become order drafts. Others are dropped."`
	IncomingWorkspace string   `env:"GATEWAY_WORKSPACE" name:"gateway-workspace" placeholder:"UUID" help:"Workspace of these drafts. Without it, the operator's."`
	ReplyURL          string   `env:"GATEWAY_BASE_URL" name:"gateway-base-url" placeholder:"URL" example:"https://api.example.com/wa/api/v1" help:"Aggregator in front of the chat network, for replies and channels. Without it, a sandbox."`
	ReplyKey          string   `env:"GATEWAY_API_KEY" name:"gateway-api-key" placeholder:"KEY" help:"API key of the gateway."`
	ReplySource       string   `env:"GATEWAY_SOURCE" name:"gateway-source" placeholder:"PHONE" help:"Own phone at the gateway. Without it, the phone of the API key."`
	ReplyApp          string   `env:"GATEWAY_APP" name:"gateway-app" placeholder:"NAME" help:"Name of the app at the gateway."`
	ReplyChannel      string   `env:"GATEWAY_CHANNEL" name:"gateway-channel" default:"chat" help:"Name of the chat network at the gateway."`
}

// fromGateway is the actor of events caused by the gateway's calls.
var fromGateway = actor.Actor{Type: "provider", ID: "gateway"}

// whose has the accepted senders of orders by chat, and their workspace.
type whose struct {
	addresses []netip.Prefix
	allowed   []string
	workspace uuid.UUID // zero: the operator's
}

func (i *incomingSettings) whose() (w whose, err error) {
	if w.addresses, err = api.ParseProxies(i.WebhookAddresses); err != nil {
		return w, fmt.Errorf("GATEWAY_WEBHOOK_ADDRESSES: %w", err)
	}
	if i.IncomingWorkspace != "" {
		if w.workspace, err = uuid.Parse(i.IncomingWorkspace); err != nil {
			return w, errors.New("GATEWAY_WORKSPACE: expected a UUID")
		}
	}
	w.allowed, err = senders(i.AllowedPhones)
	return w, err
}

// webhooks returns the endpoints of all providers.
func (s *System) webhooks(ctx context.Context) ([]webhooks.Endpoint, error) {
	o := &s.Settings.Outside
	who, err := o.whose()
	if err != nil {
		return nil, err
	}
	proof := chatgateway.Proof{Token: o.WebhookToken, HMACSecret: o.WebhookSecret, HMACHeader: o.WebhookHeader, PublicURL: o.PublicURL,
		Addresses: who.addresses}
	if !proof.Configured() {
		if proof.Token, err = s.webhookSecret(ctx, "gateway"); err != nil {
			return nil, err
		}
	}
	workspace := cmp.Or(who.workspace, s.Home)
	incoming := webhooks.Gateway{Proof: proof, Allowed: who.allowed, Phone: func(ctx context.Context, user string) (string, error) {
		return ledgercmd.PhoneOf(ctx, s.Books, user)
	}, Draft: func(ctx context.Context, m ledgercmd.Message) (string, string, error) {
		return ledgercmd.ReceiveDraft(ctx, commands.Request{Actor: fromGateway, Workspace: workspace}, s.Books, m)
	}}
	conversations, err := s.conversing(ctx, proof)
	return append([]webhooks.Endpoint{incoming.Orders()}, conversations...), err
}

// senders returns phones as digits, and user ids such as IN.12345 unchanged.
func senders(list []string) (all []string, err error) {
	for _, text := range list {
		text = strings.TrimSpace(text)
		if strings.Contains(text, ".") {
			all = append(all, text)
			continue
		}
		phone, err := person.ParseE164("phone", text)
		if err != nil || phone == "" {
			return nil, fmt.Errorf("GATEWAY_ALLOWED_PHONES: %q is neither a phone nor a user id", text)
		}
		all = append(all, phone)
	}
	return all, nil
}

// replyClient returns the client of the gateway.
func (i *incomingSettings) replyClient() (*chat.Replies, error) {
	client, err := chat.NewReplies(chat.ReplySettings{
		BaseURL: i.ReplyURL, APIKey: i.ReplyKey, Source: i.ReplySource, App: i.ReplyApp, Channel: i.ReplyChannel,
	})
	if err != nil {
		return nil, fmt.Errorf("GATEWAY_BASE_URL, GATEWAY_API_KEY, GATEWAY_SOURCE: %w", err)
	}
	return client, nil
}

// replies returns the sender of confirmations.
func (s *System) replies() (*ledgerreact.Replies, error) {
	client, err := s.Settings.Outside.replyClient()
	if err != nil {
		return nil, err
	}
	r := &ledgerreact.Replies{Commands: s.Commands, Gateway: client, Status: "kept"}
	if s.Settings.Outside.ReplyURL != "" {
		r.Status = "sent"
	}
	return r, nil
}

// outbox adapts the replies for the operators' list.
type outbox struct{ views *ledgerview.Views }

// Captured implements http/opshttp's Captured.
func (o outbox) Captured(ctx context.Context, skip, limit int) ([]opshttp.Message, int, error) {
	replies, total, err := o.views.DraftReplies(ctx, nil, skip, limit)
	messages := make([]opshttp.Message, len(replies))
	for i, r := range replies {
		id := strconv.FormatInt(r.Draft, 10)
		messages[i] = opshttp.Message{ID: "order-draft-" + id, Time: r.At, At: r.At, Text: r.Text, Status: r.Status, Draft: &r.Draft}
		if r.Phone != nil {
			messages[i].To = "+" + *r.Phone
		}
	}
	return messages, int(total), err
}
