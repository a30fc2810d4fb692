package messaginghttp

import (
	"context"
	"strconv"
	"strings"
	"time"

	"bahi/commands"
	"bahi/domain/messaging/channel"
	"bahi/domain/person"
	"bahi/http/api"
	"bahi/readmodels/messagingview"
)

// ByChannel names a channel.
type ByChannel struct {
	ID int64 `path:"id" minimum:"1" doc:"The channel's id"`
}

func (in ByChannel) stream() string { return strconv.FormatInt(in.ID, 10) }

// channels registers the operations of channels.
func (r *Routes) channels() {
	api.Handle(r.API, channelOp("list-channels", "GET", "", "List the channels, newest first"),
		func(ctx context.Context, in *struct {
			api.Limited
			messagingview.ChannelFilter
		}) (*api.Array[messagingview.Channel], error) {
			return api.Listed(r.Views.Channels(ctx, api.At(ctx), api.Caller(ctx).Workspace, in.Get(), in.ChannelFilter))
		})
	api.Handle(r.API, channelOp("create-channel", "POST", "", "Create a channel. Bahi checks the credentials with the network."),
		func(ctx context.Context, in *struct{ Body channel.Create }) (*api.Tagged[messagingview.Channel], error) {
			out, err := r.Networks.Create(ctx, api.Request(ctx), in.Body)
			if err == nil {
				r.ChatTemplates.Sync(ctx, api.Caller(ctx).Workspace, out)
			}
			return api.WriteResult(ctx, out, err, ShownChannel)
		})
	api.Handle(r.API, channelOp("get-channel", "GET", "/{id}", "Read a channel. The response has no secrets."),
		func(ctx context.Context, in *ByChannel) (*api.Tagged[messagingview.Channel], error) {
			c, err := r.Views.Channel(ctx, api.At(ctx), api.Caller(ctx).Workspace, in.ID)
			return api.WithETag(c, c.Revision, err)
		})
	api.Handle(r.API, channelOp("edit-channel", "PATCH", "/{id}", "Edit a channel. "+
		"Only fields in the body change. Settings are merged, and null removes one. "+
		"A change of baseUrl requires all secrets again."),
		func(ctx context.Context, in *struct {
			ByChannel
			Body channel.Edit
		}) (*api.Tagged[messagingview.Channel], error) {
			in.Body.ID = in.stream()
			out, err := r.Networks.Edit(ctx, api.Request(ctx), in.Body)
			if err == nil {
				r.ChatTemplates.Sync(ctx, api.Caller(ctx).Workspace, out)
			}
			return api.WriteResult(ctx, out, err, ShownChannel)
		})
	api.Handle(r.API, channelOp("delete-channel", "DELETE", "/{id}", "Delete a channel and its secrets"),
		func(ctx context.Context, in *ByChannel) (*api.Nothing, error) {
			out, err := r.Networks.Delete(ctx, api.Request(ctx), in.stream())
			return api.Done(ctx, out, err)
		})
	usage := channelOp("get-channel-usage", "GET", "/{id}/usage", "Count the delivered replies of a channel by day. "+
		"Networks bill replies within the 24-hour window.")
	usage.Reads = []string{"channels", "messages"}
	api.Handle(r.API, usage, func(ctx context.Context, in *struct {
		ByChannel
		Days
	}) (*api.Body[[]messagingview.ChannelUsage], error) {
		if _, err := r.Views.Channel(ctx, api.At(ctx), api.Caller(ctx).Workspace, in.ID); err != nil {
			return nil, err
		}
		days, err := r.Views.ChannelUsage(ctx, api.At(ctx), api.Caller(ctx).Workspace, in.ID,
			messagingview.Days{Zone: r.Zone.String(), From: day(in.From), To: day(in.To)})
		return api.Answer(append([]messagingview.ChannelUsage{}, days...), err)
	})
	health := channelOp("get-chat-health", "GET", "",
		"Check the health of all channels. Bahi asks all networks concurrently, with a timeout of 5 seconds.")
	health.Path = "/api/chat/health"
	api.Handle(r.API, health, func(ctx context.Context, _ *struct{}) (*api.Body[Health], error) {
		workspace := api.Caller(ctx).Workspace
		ids, err := r.Views.Networked(ctx, api.At(ctx), workspace)
		if err != nil {
			return nil, err
		}
		h := Health{Status: "unconfigured", CheckedAt: r.Now().UTC().Truncate(time.Second), Channels: []channelHealth{}}
		connected := 0
		for _, c := range r.Networks.Health(ctx, workspace, ids) {
			if c.Status == channel.Connected {
				connected++
			}
			h.Channels = append(h.Channels, channelHealth{
				ChannelID: c.Channel, Status: c.Status, PhoneNumber: orNull(e164(c.PhoneNumber)), Quality: orNull(c.Quality),
				MessagingLimit: orNull(c.MessagingLimit),
				CanSend:        orNull(c.CanSend), LastError: orNull(c.Error),
			})
		}
		switch {
		case len(ids) == 0:
		case connected == len(ids):
			h.Status = "ok"
		case connected == 0:
			h.Status = "down"
		default:
			h.Status = "degraded"
		}
		return api.Answer(h, nil)
	})
}

// Health is the state of a workspace's channels at their networks. Widgets have no network.
type Health struct {
	Status    string          `json:"status" enum:"ok,degraded,down,unconfigured" doc:"Worst health of all channels"`
	CheckedAt time.Time       `json:"checkedAt" doc:"Time of the check"`
	Channels  []channelHealth `json:"channels" doc:"Health by channel"`
}

// channelHealth is the state of a channel at its network. Unknown values are null.
type channelHealth struct {
	ChannelID      int64   `json:"channelId" doc:"ID of the channel"`
	Status         string  `json:"status" enum:"connected,disconnected,error" doc:"Health of the channel"`
	PhoneNumber    *string `json:"phoneNumber" doc:"Phone number in E.164 form; null: none"`
	Quality        *string `json:"quality" doc:"The network's quality rating; null: unknown"`
	MessagingLimit *string `json:"messagingLimit" doc:"The network's messaging limit; null: unknown"`
	CanSend        *string `json:"canSend" doc:"Network's sending permission; null: unknown"`
	LastError      *string `json:"lastError" doc:"Last error; null: none"`
}

// e164 returns a network's phone as E.164. From an invalid phone, it only removes blanks.
func e164(shown string) string {
	if digits, err := person.ParseE164("phoneNumber", shown); err == nil && digits != "" {
		return "+" + digits
	}
	return strings.Join(strings.Fields(shown), "")
}

func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// ShownChannel returns a channel after a command.
func ShownChannel(out commands.Outcome[channel.State]) messagingview.Channel {
	s := out.State
	return messagingview.Channel{
		ID: out.Number(), Name: s.Name, Type: s.Type, Status: s.Status, LastError: orNull(s.LastError), HasAPIKey: s.APIKey.Present(),
		HasAccessToken: s.AccessToken.Present(),
		Settings:       s.Settings, Key: orNull(s.Key), SecretSettings: s.SecretSettings(), Incoming: s.Incoming(), CreatedAt: out.CreatedAt,
		UpdatedAt: out.At, Revision: out.Revision,
	}
}
