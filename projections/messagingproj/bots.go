package messagingproj

import (
	_ "embed"
	"encoding/json"
	"time"

	"bahi/domain/access/user"
	"bahi/domain/event"
	"bahi/domain/messaging/bot"
	"bahi/domain/messaging/botsource"
	"bahi/domain/messaging/botwebhook"
	"bahi/domain/messaging/channel"
	"bahi/domain/patch"
	"bahi/projections"
)

//go:embed bots.sql
var botsDDL string

// Bots has bots, their sources, and the endpoints that they may call.
var Bots = projections.Define("bots", 4, botsDDL,
	projections.On(func(b *projections.Batch, e event.Recorded[bot.Created]) {
		s := e.Data.Evolve(bot.State{})
		b.Exec(`
			insert into bot (id, workspace_id, owner_id, name, description, system_prompt, color_theme, fallback_message, active, channel_ids, tools,
				created_at, updated_at, revision)
			values ($1, $2, nullif($3, ''), $4, $5, $6, $7, nullif($8, ''), $9, $10, '{}', $11, $11, $12)`,
			e.StreamID(), e.Meta.Workspace, s.Owner, s.Name, s.Description, s.Prompt, s.Color, s.Fallback, s.Active,
			append([]int64{}, s.Channels...), e.At, e.Revision)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[bot.Edited]) {
		c := e.Data
		if c.Channels.Present() && c.Channels.Value == nil {
			c.Channels = patch.Set([]int64{})
		}
		b.Set("bot", e.StreamID(), "name", c.Name, "description", c.Description, "system_prompt", c.Prompt, "color_theme", c.Color,
			"fallback_message", emptied(c.Fallback), "active", c.Active, "channel_ids", c.Channels, "updated_at", e.At, "revision", e.Revision)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[bot.ToolAttached]) {
		b.Exec(`update bot set tools = array_append(tools, $2), updated_at = $3, revision = $4 where id = $1`, e.StreamID(), e.Data.Tool,
			e.At, e.Revision)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[bot.ToolRemoved]) {
		b.Exec(`update bot set tools = array_remove(tools, $2), updated_at = $3, revision = $4 where id = $1`, e.StreamID(), e.Data.Tool,
			e.At, e.Revision)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[bot.Deleted]) {
		b.Exec(`delete from bot where id = $1`, e.StreamID())
		b.Exec(`delete from source where bot_id = $1`, e.StreamID())
		b.Exec(`delete from webhook where bot_id = $1`, e.StreamID())
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[channel.Deleted]) {
		b.Exec(`update bot set channel_ids = array_remove(channel_ids, $2) where workspace_id = $1 and $2 = any(channel_ids)`, e.Meta.Workspace,
			e.StreamID())
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[user.Erased]) {
		b.Exec(`update bot set owner_id = null where owner_id = $1`, e.StreamID())
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[botsource.FileAdded]) {
		c := e.Data
		b.Exec(source, e.StreamID(), c.Bot, e.Meta.Workspace, nil, c.Name, c.MediaType, c.Size, e.At)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[botsource.PageAdded]) {
		b.Exec(source, e.StreamID(), e.Data.Bot, e.Meta.Workspace, e.Data.URL, nil, nil, nil, e.At)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[botsource.Requested]) {
		b.Exec(`update source set status = 'processing', error = null where id = $1`, e.StreamID())
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[botsource.Read]) {
		var fetched *time.Time
		if !e.Data.FetchedAt.IsZero() {
			fetched = &e.Data.FetchedAt
		}
		b.Exec(`
			update source set status = 'ready', error = null, chunk_count = $2, fetched_at = $4,
				name = case when url is null then name else nullif($3, '') end
			where id = $1`, e.StreamID(), e.Data.Chunks, e.Data.Title, fetched)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[botsource.ReadFailed]) {
		b.Exec(`update source set status = 'failed', error = $2 where id = $1`, e.StreamID(), e.Data.Error)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[botsource.Deleted]) {
		b.Exec(`delete from source where id = $1`, e.StreamID())
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[botwebhook.Created]) {
		c := e.Data
		b.Exec(`
			insert into webhook (id, bot_id, workspace_id, name, url, method, description, headers, query_params, json_data, parameters, active,
				created_at, updated_at, revision)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $13, $14)`,
			e.StreamID(), c.Bot, e.Meta.Workspace, c.Name, c.URL, c.Method, c.Description, names(c.Headers), names(c.Query), names(c.JSON),
			parameters(c.Parameters),
			c.Active, e.At, e.Revision)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[botwebhook.Edited]) {
		c := e.Data
		columns := []any{
			"name", c.Name, "url", c.URL, "method", c.Method, "description", c.Description, "active", c.Active,
			"updated_at", e.At, "revision", e.Revision,
		}
		for column, f := range map[string]patch.Field[[]botwebhook.Header]{"headers": c.Headers, "query_params": c.Query, "json_data": c.JSON} {
			if f.Present() {
				columns = append(columns, column, names(f.Value))
			}
		}
		if c.Parameters.Present() {
			columns = append(columns, "parameters", parameters(c.Parameters.Value))
		}
		b.Set("webhook", e.StreamID(), columns...)
	}),
)

// source is the SQL that inserts a source.
const source = `
	insert into source (id, bot_id, workspace_id, url, name, media_type, size, status, chunk_count, created_at) values ($1, $2, $3, $4, $5,
		$6, $7, 'processing', 0, $8)`

// emptied returns a text, and nil for an empty one.
func emptied(f patch.Field[string]) patch.Field[string] {
	if f.Present() && f.Value == "" {
		return patch.Clear[string]()
	}
	return f
}

// names returns the names of values.
func names(all []botwebhook.Header) []string {
	names := make([]string, len(all))
	for i, h := range all {
		names[i] = h.Name
	}
	return names
}

// parameters returns the parameters without the values of fixed ones.
func parameters(all []botwebhook.Parameter) string {
	shown := make([]botwebhook.Parameter, len(all))
	for i, p := range all {
		p.Value = event.Secret{}
		shown[i] = p
	}
	text, _ := json.Marshal(shown) //nolint:errchkjson // texts
	return string(text)
}
