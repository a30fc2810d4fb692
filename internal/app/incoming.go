package app

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/commands/accesscmd"
	"bahi/commands/inbox"
	"bahi/commands/ledgercmd"
	"bahi/domain/actor"
	"bahi/domain/person"
	"bahi/http/opshttp"
	"bahi/http/webhooks"
	"bahi/providers/chat"
	"bahi/providers/partner"
	"bahi/reactors/ledgerreact"
)

// incomingSettings configure the gateway of chat messages. The zero value has a generated token, accepts no sender and stores replies.
type incomingSettings struct {
	WebhookToken      string   `env:"GATEWAY_WEBHOOK_TOKEN" name:"gateway-webhook-token" placeholder:"TOKEN" help:"Token of the gateway's webhooks, in ?token= or X-Gateway-Token. Without token, secret and addresses, the first start creates and prints one."`
	WebhookSecret     string   `env:"GATEWAY_WEBHOOK_HMAC_SECRET" name:"gateway-webhook-hmac-secret" placeholder:"SECRET" help:"Secret with which the gateway signs the bodies of its webhooks."`
	WebhookHeader     string   `env:"GATEWAY_WEBHOOK_HMAC_HEADER" name:"gateway-webhook-hmac-header" default:"X-Hub-Signature-256" help:"Header with the signature of the gateway's webhooks."`
	WebhookAddresses  []string `env:"GATEWAY_WEBHOOK_ADDRESSES" name:"gateway-webhook-addresses" placeholder:"CIDR" example:"203.0.113.0/24" help:"Addresses that may send the gateway's webhook calls."`
	AllowedPhones     []string `env:"GATEWAY_ALLOWED_PHONES" name:"gateway-allowed-phones" placeholder:"PHONE" example:"919812345678" help:"Phones, or the network's user ids, of senders of orders. Their messages become order drafts; others are dropped."`
	IncomingWorkspace string   `env:"GATEWAY_WORKSPACE" name:"gateway-workspace" placeholder:"UUID" help:"Workspace of order drafts from the gateway. Without it, the operator's workspace."`
	ReplyURL          string   `env:"GATEWAY_BASE_URL" name:"gateway-base-url" placeholder:"URL" example:"https://api.example.com/wa/api/v1" help:"Aggregator in front of the chat network, for replies and channels. Without it, a sandbox."`
	ReplyKey          string   `env:"GATEWAY_API_KEY" name:"gateway-api-key" placeholder:"KEY" help:"API key of the gateway."`
	ReplySource       string   `env:"GATEWAY_SOURCE" name:"gateway-source" placeholder:"PHONE" help:"Own phone at the gateway. Without it, the phone of the API key."`
	ReplyApp          string   `env:"GATEWAY_APP" name:"gateway-app" placeholder:"NAME" help:"Name of the app at the gateway."`
	ReplyChannel      string   `env:"GATEWAY_CHANNEL" name:"gateway-channel" default:"chat" help:"Name of the chat network at the gateway."`
}

// fromGateway is the actor of events caused by the gateway's calls.
var fromGateway = actor.Actor{Type: "provider", ID: "gateway"}

// webhooks returns the endpoints of all providers.
func (s *System) webhooks(ctx context.Context) ([]webhooks.Endpoint, error) {
	o := &s.Settings.Outside
	proof := chat.Proof{Token: o.WebhookToken, HMACSecret: o.WebhookSecret, HMACHeader: o.WebhookHeader, PublicURL: o.PublicURL,
		Addresses: s.outside.addresses}
	if !proof.Configured() {
		var err error
		if proof.Token, err = s.webhookSecret(ctx, "gateway"); err != nil {
			return nil, err
		}
	}
	workspace := cmp.Or(s.outside.workspace, s.Home)
	incoming := webhooks.Gateway{Proof: proof, Allowed: s.outside.senders, Phone: func(ctx context.Context, user string) (string, error) {
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

// replies returns the sender of confirmations.
func (s *System) replies() *ledgerreact.Replies {
	r := &ledgerreact.Replies{Commands: s.Commands, Gateway: s.outside.replies, Status: "kept"}
	if s.Settings.Outside.ReplyURL != "" {
		r.Status = "sent"
	}
	return r
}

// capturedReplies implements http/opshttp's Captured.
func (s *System) capturedReplies(ctx context.Context, skip, limit int) ([]opshttp.Message, int, error) {
	replies, total, err := s.Ledger.DraftReplies(ctx, nil, skip, limit)
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

// hookSettings configure the signatures of providers' webhook calls.
type hookSettings struct {
	SocialSecrets []string `env:"SOCIAL_APP_SECRET" name:"social-app-secret" placeholder:"SECRET" help:"Secrets with which social networks and chat networks sign webhook calls. A channel may have its own."`
	SocialVerify  string   `env:"SOCIAL_VERIFY_TOKEN" name:"social-verify-token" placeholder:"TOKEN" help:"Token of a social network's handshake. Without it, the first start creates and prints one."`
	PartnerSecret string   `env:"PARTNER_WEBHOOK_SECRET" name:"partner-webhook-secret" placeholder:"SECRET" help:"Secret with which the partner signs: whsec_ and base64. Without it, the first start creates and prints one."`
	PartnerHeader string   `env:"PARTNER_SIGNATURE_HEADER" name:"partner-signature-header" placeholder:"NAME" example:"X-Partner-Signature" help:"Header with the HMAC-SHA256 of the body in hex, for a partner who does not sign by Standard Webhooks. The secret is then any text."`
	BillingSecret []string `env:"BILLING_WEBHOOK_SECRET" name:"billing-webhook-secret" placeholder:"SECRET" help:"Secrets with which the billing provider signs. Without one, the first start creates and prints one."`
	BillingHeader string   `env:"BILLING_SIGNATURE_HEADER" name:"billing-signature-header" default:"Billing-Signature" help:"Header with the billing provider's signature."`
	BillingID     string   `env:"BILLING_ID_HEADER" name:"billing-id-header" placeholder:"NAME" example:"X-Event-Id" help:"Header with the id of an event that has none in its body."`
}

// conversing returns the webhook endpoints of networks, the partner and the billing provider.
func (s *System) conversing(ctx context.Context, proof chat.Proof) ([]webhooks.Endpoint, error) {
	o := s.Settings.Outside.hookSettings
	k := &webhooks.Conversations{MessageService: s.Messages, ChannelSecrets: s.Messages, Gateway: proof, Social: o.SocialSecrets,
		Verify: o.SocialVerify, Now: time.Now}
	k.Notices, k.Own = s.notices, s.Settings.Outside.ChatSender
	if s.Settings.Outside.ChatURL != "" && len(o.SocialSecrets) == 0 {
		s.Log.Warn("without SOCIAL_APP_SECRET, calls of the chat network are refused unless their channel has an appSecret")
	}
	if k.Verify == "" {
		var err error
		if k.Verify, err = s.webhookSecret(ctx, "social"); err != nil {
			return nil, err
		}
	}
	theirs := webhooks.Partner{Header: o.PartnerHeader, Secret: o.PartnerSecret, Secrets: s.outside.partner, Now: time.Now}
	if theirs.Secret == "" {
		made, err := s.webhookSecret(ctx, "partner")
		if err != nil {
			return nil, err
		}
		theirs.Secret, theirs.Secrets = made, []partner.Secret{partner.Secret(made)}
	}
	b := webhooks.Billing{
		Secrets: o.BillingSecret, Header: cmp.Or(o.BillingHeader, "Billing-Signature"), IDHeader: o.BillingID, Now: time.Now,
		Report: func(ctx context.Context, p accesscmd.Paid) (uuid.UUID, error) {
			return accesscmd.ReportPlan(ctx, s.Commands, p)
		},
	}
	if len(b.Secrets) == 0 {
		made, err := s.webhookSecret(ctx, "billing")
		if err != nil {
			return nil, err
		}
		b.Secrets = []string{made}
	}
	return append(k.Endpoints(), theirs.Endpoint(), b.Endpoint()), nil
}

// inboxSettings configure the webhooks of all providers.
type inboxSettings struct {
	WebhookDays *int `env:"BAHI_WEBHOOK_DAYS" name:"webhook-days" default:"30" unit:"days" help:"Time for which the bodies of webhook calls are kept. Minimum 1."`
}

// webhookDays is the default.
const webhookDays = 30

// openInbox opens the inbox of all webhooks.
func (s *System) openInbox(ctx context.Context) (err error) {
	if s.hooks, err = s.webhooks(ctx); err != nil {
		return err
	}
	s.Inbox = inbox.New(inbox.Config{
		Pool: s.Pool, Vault: s.Vault, Handlers: webhooks.Handlers(s.hooks),
		Keep: s.outside.keepHooks, Now: time.Now, Log: s.Log,
	})
	return nil
}

// SayTokens logs where tokens of an earlier start are stored.
func (s *System) SayTokens() {
	if len(s.tokens) > 0 {
		s.Log.Info("webhook tokens of an earlier start", "in", filepath.Join(s.Settings.Data, "keys", "*.token"), "of",
			strings.Join(s.tokens, ", "))
	}
}

// webhookSecret returns the secret of an endpoint without a configured one. All nodes share it. It stores the secret for the operator in
// keys/<port>.token of the data folder. The start that creates it prints it; a later one logs the file.
func (s *System) webhookSecret(ctx context.Context, port string) (string, error) {
	name := "webhook/" + port
	had, err := s.Vault.Has(ctx, name)
	if err != nil {
		return "", err
	}
	key, err := s.Vault.Named(ctx, name, KeySize)
	if err != nil {
		return "", err
	}
	secret := base64.RawURLEncoding.EncodeToString(key)
	path := filepath.Join(s.Settings.Data, "keys", port+".token")
	kept, err := os.ReadFile(path) //nolint:gosec // the data folder is the operator's
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the token of %s's webhook: %w", port, err)
	}
	if err != nil || string(kept) != secret+"\n" {
		if err := writeKey(path, secret); err != nil {
			return "", err
		}
	}
	switch {
	case had:
		s.tokens = append(s.tokens, port)
	case s.Settings.Shell.Err != nil: // the operator reads it
		fmt.Fprintf(s.Settings.Shell.Err, "The token of the %s's webhook, kept in %s:\n%s\n", port, path, secret)
	}
	return secret, nil
}
