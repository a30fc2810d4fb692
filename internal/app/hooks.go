package app

import (
	"context"
	"time"

	"bahi/http/webhooks"
	"bahi/providers/gateway"
)

// hookSettings are the proofs of providers that call us.
type hookSettings struct {
	SocialSecrets []string `env:"SOCIAL_APP_SECRET" name:"social-app-secret" placeholder:"SECRET" help:"Secrets with which social networks and chat networks sign what they send. Channels may have their own."`
	SocialVerify  string   `env:"SOCIAL_VERIFY_TOKEN" name:"social-verify-token" placeholder:"TOKEN" help:"Token that a social network shows in its handshake. Without it, one is made and printed at the first start."`
}

// conversing returns the endpoints of networks.
func (s *System) conversing(ctx context.Context, proof gateway.Proof) ([]webhooks.Endpoint, error) {
	o := s.Settings.Outside.hookSettings
	k := &webhooks.Conversations{Talk: s.Messages, ChannelSecrets: s.Messages, Gateway: proof, Social: o.SocialSecrets, Verify: o.SocialVerify, Now: time.Now}
	if k.Verify == "" {
		var err error
		if k.Verify, err = s.webhookSecret(ctx, "social"); err != nil {
			return nil, err
		}
	}
	return k.Endpoints(), nil
}
