package app

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/singleflight"

	"bahi/commands/messagingcmd"
	"bahi/domain/messaging/message"
	"bahi/http/api"
	"bahi/http/messaginghttp"
	"bahi/providers/chat"
	"bahi/providers/egress"
)

// networkSettings are the addresses of the networks of channels.
type networkSettings struct {
	ChatURL     string `env:"CHAT_BASE_URL" name:"chat-base-url" placeholder:"URL" example:"https://graph.example.com/v21.0" help:"Chat network, with the version of its API. Without it, chat channels without a baseUrl of their own are a sandbox."`
	ChatProduct string `env:"CHAT_PRODUCT" name:"chat-product" default:"chat-network" help:"The chat network's name in its own messages."`
	ChatLimit   string `env:"CHAT_LIMIT_FIELD" name:"chat-limit-field" default:"messaging_limit_tier" help:"Field of a sender that has its messaging limit."`
	TelegramURL string `env:"TELEGRAM_BASE_URL" name:"telegram-base-url" placeholder:"URL" example:"https://api.telegram.org" help:"Bot API. Without it, a sandbox."`
	GmailURL    string `env:"GMAIL_BASE_URL" name:"gmail-base-url" placeholder:"URL" example:"https://gmail.googleapis.com" help:"Gmail API. Without it, a sandbox."`
	GmailTokens string `env:"GMAIL_TOKEN_URL" name:"gmail-token-url" default:"https://oauth2.googleapis.com/token" help:"Endpoint that exchanges gmail's refresh tokens for access tokens."`
	TwitterURL  string `env:"TWITTER_BASE_URL" name:"twitter-base-url" placeholder:"URL" example:"https://api.twitter.com" help:"API of direct messages. Without it, a sandbox."`

	AskWithin time.Duration `kong:"-"` // timeout of a network's status of an account; 0: 5 seconds

	FetchAllow []string `env:"BAHI_FETCH_ALLOW" name:"fetch-allow" placeholder:"HOST:PORT" example:"localhost:9000" help:"Targets of outgoing calls that need not be public: host:port, ip:port or a network such as 10.0.0.0/8."`
}

// networks returns the networks of channels.
func (o *IntegrationSettings) networks(exceptions egress.Allowlist) (*chat.Networks, error) {
	return chat.New(chat.Settings{
		ChatURL: o.ChatURL, GatewayURL: o.ReplyURL, TelegramURL: o.TelegramURL, GmailURL: o.GmailURL, TwitterURL: o.TwitterURL,
		GmailTokenURL: o.GmailTokens,
		Product:       o.ChatProduct, LimitField: o.ChatLimit, Client: exceptions.Client(),
	})
}

// openNetworks connects the commands of channels and messages with the networks.
func (s *System) openNetworks(ctx context.Context) error {
	o := s.Settings.Outside.networkSettings
	exceptions, err := egress.Parse(o.FetchAllow)
	if err != nil {
		return fmt.Errorf("BAHI_FETCH_ALLOW: %w", err)
	}
	networks, err := s.Settings.Outside.networks(exceptions)
	if err != nil {
		return err
	}
	s.channels = &messagingcmd.Channels{Commands: s.Commands, Secrets: s.Vault, Networks: networks, Within: o.AskWithin, Log: s.Log,
		Renewing: &singleflight.Group{},
		Deliver:  func(ctx context.Context, channel int64) error { return s.Inbox.Deliver(ctx, channel) }}
	if address := s.Settings.Outside.PublicURL; strings.HasPrefix(address, "https://") {
		s.channels.Hooks = address + "/api/webhook/"
	}
	s.Templates = &messagingcmd.Templates{Channels: s.channels, Listed: s.Messaging}
	s.Messages = &messagingcmd.Messages{Channels: s.channels, Templates: s.Templates, Known: s.Messaging, Sandboxed: networks.Sandboxed,
		Files: s.Blobs, Windows: &messagingcmd.ReplyWindows{}}
	key, err := s.Vault.Named(ctx, "web-chat", KeySize)
	if err != nil {
		return err
	}
	s.visitors = &messagingcmd.Visitors{Messages: s.Messages, Widgets: s.Messaging, Key: key, Origin: api.Origin}
	s.live = messaginghttp.NewLive(s.reads, s.Messaging, s.Blobs)
	return s.openMarketplace(networks, exceptions)
}

// HookChannels registers our webhook addresses with the networks of all channels that support it.
func (s *System) HookChannels(ctx context.Context) error {
	hooked, err := s.Messaging.Hooked(ctx, nil)
	if err != nil {
		return err
	}
	of := map[uuid.UUID][]int64{}
	for _, c := range hooked {
		of[c.Workspace] = append(of[c.Workspace], c.ID)
	}
	for workspace, ids := range of {
		s.channels.Health(ctx, workspace, ids)
	}
	return ctx.Err()
}

// SpeaksOutside reports whether the settings send messages or leads to other systems.
func (o IntegrationSettings) SpeaksOutside() bool {
	return o.ChatURL+o.ReplyURL+o.CRMURL+o.SMTPURL != ""
}

// pictureSide is the maximum side of a sent picture, in pixels.
const pictureSide = 2048

// drawPicture draws an upload again for sending, which removes its location.
func (s *System) drawPicture(ctx context.Context, upload io.Reader) (*message.Picture, error) {
	drawn, err := s.studio.Draw(ctx, upload, messaginghttp.MaxPicture, pictureSide)
	if err != nil {
		return nil, err
	}
	return &message.Picture{Type: drawn.Type, Bytes: drawn.Bytes}, nil
}
