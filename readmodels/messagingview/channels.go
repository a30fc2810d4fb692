package messagingview

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/messaging/channel"
	"bahi/readmodels"
)

// Channel is a connection of a workspace to a network for messages.
type Channel struct {
	ID             int64            `json:"id" doc:"ID of the channel"`
	Name           string           `json:"name" doc:"Name of the channel"`
	Type           string           `json:"type" enum:"chat,gmail,twitter,web,telegram" doc:"Network of the channel"`
	Status         string           `json:"status" enum:"connected,disconnected,error" doc:"Status of the network's last report"`
	LastError      *string          `json:"lastError" doc:"Last error; null: none"`
	Incoming       string           `json:"incoming" db:"-" enum:"delivered,unconfirmed,none" doc:"State of webhook calls for the channel's sender. unconfirmed: stored until the sender is verified; none: no call can name it"`
	Identified     bool             `json:"-"`
	HasAPIKey      bool             `json:"hasApiKey" doc:"true: an API key is stored"`
	HasAccessToken bool             `json:"hasAccessToken" doc:"true: an access token is stored"`
	Settings       channel.Settings `json:"settings" doc:"Settings of the network"`
	Key            *string          `json:"channelKey" doc:"Key of the chat widget for web pages; null for other types"`
	SecretSettings []string         `json:"secretSettings" doc:"Names of settings that are set and never shown"`
	CreatedAt      time.Time        `json:"createdAt" doc:"Time when the channel was created"`
	UpdatedAt      time.Time        `json:"updatedAt" doc:"Time of the last change of the channel"`
	Revision       int64            `json:"revision" doc:"Revision for If-Match"`
}

// ChannelFilter selects channels. An empty field matches all.
type ChannelFilter struct {
	Type string `query:"type" enum:"chat,gmail,twitter,web,telegram" doc:"Only this type"`
}

const channelColumns = `select id, name, type, status, last_error, identified, has_api_key, has_access_token, settings,
	secret_settings,
	key, created_at, updated_at, revision from channels.channel`

// shownChannel reads a row of channelColumns.
func shownChannel(row pgx.CollectableRow) (Channel, error) {
	c, err := pgx.RowToStructByName[Channel](row)
	s := channel.State{Type: c.Type, Settings: c.Settings}
	if c.Identified {
		s.IdentityKey = "known"
	}
	c.Incoming = s.Incoming()
	return c, err
}

// Channel reads a channel of a workspace, or returns [channel.ErrNotFound].
func (v *Views) Channel(ctx context.Context, at *readmodels.At, workspace uuid.UUID, id int64) (Channel, error) {
	return readmodels.Row(ctx, v.Reader.From(at, "channels"), channel.ErrNotFound, shownChannel,
		channelColumns+` where id = $1 and workspace_id = $2`,
		id, workspace)
}

// Channels lists a page of a workspace's channels, newest first.
func (v *Views) Channels(ctx context.Context, at *readmodels.At, workspace uuid.UUID, page readmodels.Page,
	f ChannelFilter) (rows []Channel,
	total int64, err error) {
	return readmodels.List[Channel]{
		As: shownChannel, Order: `id desc`, SQL: channelColumns + ` where workspace_id = @workspace and (@type = '' or type = @type)`,
		Args: pgx.NamedArgs{"workspace": workspace, "type": f.Type},
	}.Page(ctx, v.Reader.From(at, "channels"), page)
}

// ChannelUsage has the numbers of a channel's messages on a day.
type ChannelUsage struct {
	Day     string `json:"day" doc:"The day"`
	Replies int64  `json:"replies" doc:"Number of delivered messages other than templates, by the network's receipts"`
}

// ChannelUsage lists a channel's usage by day, oldest first. It omits days without delivered replies.
func (v *Views) ChannelUsage(ctx context.Context, at *readmodels.At, workspace uuid.UUID, of int64, days Days) ([]ChannelUsage, error) {
	return readmodels.Rows(ctx, v.Reader.From(at, "messages"), pgx.RowToStructByName[ChannelUsage], `
		select (quarter at time zone $3)::date::text as day, sum(count)::bigint as replies
		from messages.reply
		where channel_id = $1 and workspace_id = $2 and ($4 = '' or (quarter at time zone $3)::date >= $4::date) and ($5 = ''
			or (quarter at time zone $3)::date <= $5::date)
		group by 1 order by 1`, of, workspace, days.Zone, days.From, days.To)
}

// Owned is a record of any workspace.
type Owned struct {
	ID        int64
	Workspace uuid.UUID
}

// Hooked lists the channels of the deployment that register their webhook with the network.
func (v *Views) Hooked(ctx context.Context, at *readmodels.At) ([]Owned, error) {
	return readmodels.Rows(ctx, v.Reader.From(at, "channels"), pgx.RowToStructByPos[Owned],
		`select id, workspace_id from channels.channel where type = 'telegram' order by id`)
}

// OfAccount lists the channels of the deployment that belong to an account at the chat network.
func (v *Views) OfAccount(ctx context.Context, account string) ([]int64, error) {
	return readmodels.Rows(ctx, v.Reader.From(nil, "channels"), pgx.RowTo[int64],
		`select id from channels.channel where type = 'chat' and identified
		and settings ->> 'accountId' = $1 order by id`, account)
}

// maxNaming is the maximum number of channels with the same unverified sender.
const maxNaming = 10

// Signing lists the first channels with a sender that have their own secret for signing calls. The result is not stale.
func (v *Views) Signing(ctx context.Context, sender string) ([]int64, error) {
	return readmodels.Complete(func(at *readmodels.At) ([]int64, error) {
		return readmodels.Rows(ctx, v.Reader.From(at, "channels"), pgx.RowTo[int64], `
			select id from channels.channel
			where type = 'chat' and settings ->> 'senderId' = $1 and 'appSecret' = any(secret_settings) order by id limit $2`, sender, maxNaming)
	})
}

// Unconfirmed lists the first channels with an unverified sender or app in their settings. The result is not stale.
func (v *Views) Unconfirmed(ctx context.Context, sender, app string) ([]int64, error) {
	return readmodels.Complete(func(at *readmodels.At) ([]int64, error) {
		return readmodels.Rows(ctx, v.Reader.From(at, "channels"), pgx.RowTo[int64], `
			select id from channels.channel
			where type = 'chat' and not identified and (settings ->> 'senderId' in ($1, '+' || $1) or settings ->> 'appName' = $2) order by id
				limit $3`,
			sender, app, maxNaming)
	})
}

// AnyChat reports whether the deployment has a channel of the chat network. The result is not stale.
func (v *Views) AnyChat(ctx context.Context) (bool, error) {
	return readmodels.Complete(func(at *readmodels.At) (bool, error) {
		return readmodels.Row(ctx, v.Reader.From(at, "channels"), nil, pgx.RowTo[bool],
			`select exists (select from channels.channel where type = 'chat')`)
	})
}

// WithAppSecret lists at most the given number of channels of the deployment with a secret of a chat network.
func (v *Views) WithAppSecret(ctx context.Context, most int) ([]int64, error) {
	return readmodels.Rows(ctx, v.Reader.From(nil, "channels"), pgx.RowTo[int64], `select id from channels.channel where type = 'chat'
		and 'appSecret' = any(secret_settings) order by id limit $1`, most)
}

// ChannelKeyed returns the widget with a key, and its workspace, or [channel.ErrNotFound]. A visitor has no workspace.
func (v *Views) ChannelKeyed(ctx context.Context, key string) (id int64, workspace uuid.UUID, err error) {
	found, err := readmodels.Row(ctx, v.Reader.From(nil, "channels"), channel.ErrNotFound, pgx.RowToStructByPos[Owned],
		`select id, workspace_id from channels.channel where key = $1`, key)
	return found.ID, found.Workspace, err
}

// Networked lists the ids of a workspace's channels except widgets.
func (v *Views) Networked(ctx context.Context, at *readmodels.At, workspace uuid.UUID) ([]int64, error) {
	return readmodels.Rows(ctx, v.Reader.From(at, "channels"), pgx.RowTo[int64],
		`select id from channels.channel where workspace_id = $1 and type <> 'web' order by id`, workspace)
}
