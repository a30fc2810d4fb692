package app

import (
	"context"
	"errors"
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
	"bahi/reactors/messagingreact"
)

// networkSettings are the addresses of the networks of channels.
type networkSettings struct {
	ChatURL     string `env:"CHAT_BASE_URL" name:"chat-base-url" placeholder:"URL" example:"https://graph.example.com/v21.0" help:"Chat network, with the version of its API. Without it, chat channels without a baseUrl of their own are a sandbox."`
	ChatProduct string `env:"CHAT_PRODUCT" name:"chat-product" default:"chat-network" help:"The chat network's name in its own messages."`
	ChatLimit   string `env:"CHAT_LIMIT_FIELD" name:"chat-limit-field" default:"messaging_limit_tier" help:"Name of the field with a sender's messaging limit."`
	TelegramURL string `env:"TELEGRAM_BASE_URL" name:"telegram-base-url" placeholder:"URL" example:"https://api.telegram.org" help:"Bot API. Without it, a sandbox."`
	GmailURL    string `env:"GMAIL_BASE_URL" name:"gmail-base-url" placeholder:"URL" example:"https://gmail.googleapis.com" help:"Gmail API. Without it, a sandbox."`
	GmailTokens string `env:"GMAIL_TOKEN_URL" name:"gmail-token-url" default:"https://oauth2.googleapis.com/token" help:"Endpoint that exchanges gmail's refresh tokens for access tokens."`
	TwitterURL  string `env:"TWITTER_BASE_URL" name:"twitter-base-url" placeholder:"URL" example:"https://api.twitter.com" help:"API of direct messages. Without it, a sandbox."`

	AskTimeout time.Duration `kong:"-"` // timeout of a network's status of an account; 0: 5 seconds

	FetchAllow []string `env:"BAHI_FETCH_ALLOW" name:"fetch-allow" placeholder:"HOST:PORT" example:"localhost:9000" help:"Targets of outgoing calls that need not be public: host:port, ip:port or a network such as 10.0.0.0/8."`
}

// openNetworks connects the commands of channels and messages with the networks.
func (s *System) openNetworks(ctx context.Context) error {
	s.channels = &messagingcmd.Channels{Commands: s.Commands, Secrets: s.Vault, Networks: s.outside.networks,
		Within: s.Settings.Outside.AskTimeout, Log: s.Log, Renewing: &singleflight.Group{},
		Deliver: func(ctx context.Context, channel int64) error { return s.Inbox.Deliver(ctx, channel) }}
	if address := s.Settings.Outside.PublicURL; strings.HasPrefix(address, "https://") {
		s.channels.Hooks = address + "/api/webhook/"
	}
	s.Templates = &messagingcmd.Templates{Channels: s.channels, Listed: s.Messaging}
	s.Messages = &messagingcmd.Messages{Channels: s.channels, Templates: s.Templates, Known: s.Messaging,
		Sandboxed: s.outside.networks.Sandboxed, Files: s.Blobs, Windows: &messagingcmd.ReplyWindows{}}
	key, err := s.Vault.Named(ctx, "web-chat", KeySize)
	if err != nil {
		return err
	}
	s.visitors = &messagingcmd.Visitors{Messages: s.Messages, Widgets: s.Messaging, Key: key, Origin: api.Origin,
		Own: s.Settings.Outside.PublicURL}
	s.live = messaginghttp.NewLive(s.reads, s.Messaging, s.Blobs)
	s.openMarketplace()
	return nil
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

// campaignSettings configure the sending of campaigns.
type campaignSettings struct {
	CampaignRate     float64 `env:"BAHI_CAMPAIGN_RATE" name:"campaign-rate" default:"20" unit:"messages a second" help:"Maximum rate of campaigns on one channel; 0: no limit. A sandbox has none."`
	CampaignAutosend bool    `env:"BAHI_CAMPAIGN_AUTOSEND" name:"campaign-autosend" help:"Send a campaign without a time when it is created. Otherwise POST /api/campaigns/send sends it."`
}

// maxConcurrentCampaigns is the maximum number of concurrent campaigns. A campaign mostly waits for its rate or its network, and holds a
// connection meanwhile. Campaigns may hold at most half of the connections. If they held all, each would wait for one more without end.
const maxConcurrentCampaigns = 8

// openCampaigns connects campaigns with messages, tables and jobs.
func (s *System) openCampaigns() {
	s.Campaigns = &messagingreact.Dispatcher{
		Campaigns: &messagingcmd.Campaigns{Messages: s.Messages, Zone: s.Zone, Autosend: s.Settings.Outside.CampaignAutosend},
		Views:     s.Messaging, Queue: later{s}, Alone: s.aloneOnChannel, Values: s.Confirming.Values,
		MaxConcurrent: max(min(maxConcurrentCampaigns, int(s.Settings.Connections)/2), 1), Rate: s.Settings.Outside.CampaignRate,
	}
}

// campaignLocks is the class of the advisory locks of channels: "bahi" in ASCII, and one more.
const campaignLocks = 0x62616869 + 1

// unlockTimeout limits the release of a lock. Afterwards the connection is closed, which releases the lock too.
const unlockTimeout = 5 * time.Second

// aloneOnChannel implements the dispatcher's Alone with a lock of the database. A process that dies loses its lock.
func (s *System) aloneOnChannel(ctx context.Context, channel int64, do func(context.Context) error) (ran bool, err error) {
	conn, err := s.Pool.Acquire(ctx)
	if err != nil {
		return false, fmt.Errorf("lock channel %d: %w", channel, err)
	}
	defer conn.Release()
	// two channels with one lock only wait for each other
	if err := conn.QueryRow(ctx, `select pg_try_advisory_lock($1, $2)`, campaignLocks, int32(channel)).Scan(&ran); err != nil || !ran {
		return false, err
	}
	defer func() {
		unlocking, cancel := context.WithTimeout(context.WithoutCancel(ctx), unlockTimeout)
		defer cancel()
		if _, failed := conn.Exec(unlocking, `select pg_advisory_unlock($1, $2)`, campaignLocks, int32(channel)); failed != nil { // as above
			err = errors.Join(err, conn.Conn().Close(unlocking))
		}
	}()
	return true, do(ctx)
}
