package app

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"bahi/commands/accesscmd"
	"bahi/http/webhooks"
	"bahi/providers/chatgateway"
	"bahi/providers/partner"
)

// hookSettings configure the signatures of providers' webhook calls.
type hookSettings struct {
	SocialSecrets []string `env:"SOCIAL_APP_SECRET" name:"social-app-secret" placeholder:"SECRET" help:"Secrets with which social networks and chat networks sign webhook calls. A channel may have its own."`
	SocialVerify  string   `env:"SOCIAL_VERIFY_TOKEN" name:"social-verify-token" placeholder:"TOKEN" help:"Token of a social network's handshake. Without it, the first start creates and prints one."`
	PartnerSecret string   `env:"PARTNER_WEBHOOK_SECRET" name:"partner-webhook-secret" placeholder:"SECRET" help:"Secret with which the partner signs: whsec_ and base64. Without it, the first start creates and prints one."`
	PartnerHeader string   `env:"PARTNER_SIGNATURE_HEADER" name:"partner-signature-header" placeholder:"NAME" help:"Header with the HMAC-SHA256 of the body in hex, for a partner who does not sign by Standard Webhooks. The secret is then any text."`
	BillingSecret []string `env:"BILLING_WEBHOOK_SECRET" name:"billing-webhook-secret" placeholder:"SECRET" help:"Secrets with which the billing provider signs. Without one, the first start creates and prints one."`
	BillingHeader string   `env:"BILLING_SIGNATURE_HEADER" name:"billing-signature-header" default:"Billing-Signature" help:"Header of that signature."`
	BillingID     string   `env:"BILLING_ID_HEADER" name:"billing-id-header" placeholder:"NAME" help:"Header with the id of an event that has none in its body."`
}

// conversing returns the webhook endpoints of networks, the partner and the billing provider.
func (s *System) conversing(ctx context.Context, proof chatgateway.Proof) ([]webhooks.Endpoint, error) {
	o := s.Settings.Outside.hookSettings
	k := &webhooks.Conversations{MessageService: s.Messages, ChannelSecrets: s.Messages, Gateway: proof, Social: o.SocialSecrets,
		Verify: o.SocialVerify, Now: time.Now}
	k.Notices, k.Own = s.notices, s.Settings.Outside.ChatSender
	if k.Verify == "" {
		var err error
		if k.Verify, err = s.webhookSecret(ctx, "social"); err != nil {
			return nil, err
		}
	}
	theirs := webhooks.Partner{Header: o.PartnerHeader, Secret: o.PartnerSecret, Now: time.Now}
	if theirs.Secret == "" {
		made, err := s.webhookSecret(ctx, "partner")
		if err != nil {
			return nil, err
		}
		if theirs.Secret = made; theirs.Header == "" {
			theirs.Secret = partner.Secret(made).Text()
		}
	}
	if theirs.Header == "" {
		secret, err := partner.Parse(theirs.Secret)
		if err != nil {
			return nil, fmt.Errorf("PARTNER_WEBHOOK_SECRET: %w", err)
		}
		theirs.Secrets = []partner.Secret{secret}
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
