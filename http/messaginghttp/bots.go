package messaginghttp

import (
	"context"
	"net/http"
	"slices"
	"strconv"

	"bahi/commands"
	"bahi/domain/messaging/bot"
	"bahi/http/api"
	"bahi/readmodels/messagingview"
)

// ByBot names a bot.
type ByBot struct {
	ID int64 `path:"id" minimum:"1" doc:"The bot's id"`
}

func (in ByBot) stream() string { return strconv.FormatInt(in.ID, 10) }

// tool is an action that a bot may take besides replies.
type tool struct {
	ID          int64  `json:"id" doc:"ID of the tool"`
	Name        string `json:"name" doc:"Name of the tool"`
	Description string `json:"description" doc:"Description of the tool"`
	Attached    bool   `json:"attached" doc:"true: the bot has the tool"`
}

func shownTool(t bot.Tool, attached []int64) tool {
	return tool{ID: t.ID, Name: t.Name, Description: t.Description, Attached: slices.Contains(attached, t.ID)}
}

// attachment is the response to an attachment: 201, or 200 if nothing changed.
type attachment struct {
	Status int
	ETag   api.ETag `header:"ETag"`
	Body   tool
}

// byTool names a tool of a bot.
type byTool struct {
	BotID  int64 `path:"botId" minimum:"1" doc:"The bot's id"`
	ToolID int64 `path:"toolId" minimum:"1" doc:"The tool's id"`
}

// BotList selects bots.
type BotList struct {
	Active string `query:"active" enum:"true,false" doc:"true: only active bots; false: only inactive bots"`
	Scope  string `query:"scope" enum:"own,workspace" default:"own" doc:"workspace: all bots of the workspace; always for an API key"`
}

// AllTools selects all tools.
type AllTools struct {
	Available bool `query:"available" doc:"true: include tools that are not attached"`
}

// bots registers the bots and their tools.
func (r *Routes) bots() {
	api.Handle(r.API, botOp("list-bots", "GET", "", "List the caller's bots, newest first"),
		func(ctx context.Context, in *struct {
			api.Limited
			BotList
		}) (*api.Array[messagingview.Bot], error) {
			by := api.Caller(ctx)
			f := messagingview.BotFilter{Active: in.Active}
			if by.Type == "user" && in.Scope != "workspace" {
				f.Owner = by.ID
			}
			return api.Listed(r.Views.Bots(ctx, api.At(ctx), by.Workspace, in.Get(), f))
		})
	api.Handle(r.API, botOp("create-bot", "POST", "", "Create a bot"),
		func(ctx context.Context, in *struct{ Body bot.Create }) (*api.Tagged[messagingview.Bot], error) {
			out, err := r.Flows.Create(ctx, api.Request(ctx), in.Body)
			return api.WriteResult(ctx, out, err,
				func(out commands.Outcome[bot.State]) messagingview.Bot { return shownBot(out, messagingview.Bot{}) })
		})
	api.Handle(r.API, botOp("get-bot", "GET", "/{id}", "Read a bot"),
		func(ctx context.Context, in *ByBot) (*api.Tagged[messagingview.Bot], error) {
			b, err := r.Views.Bot(ctx, api.At(ctx), api.Caller(ctx).Workspace, in.ID)
			return api.WithETag(b, b.Revision, err)
		})
	api.Handle(r.API, botOp("edit-bot", "PATCH", "/{id}", "Edit a bot. Only fields in the body change."),
		func(ctx context.Context, in *struct {
			ByBot
			Body bot.Edit
		}) (*api.Tagged[messagingview.Bot], error) {
			out, err := r.Flows.Edit(ctx, api.Request(ctx), in.stream(), in.Body)
			if err != nil {
				return nil, err
			}
			read, err := r.Views.Bot(ctx, api.At(ctx), api.Caller(ctx).Workspace, in.ID)
			return api.WriteResult(ctx, out, err, func(out commands.Outcome[bot.State]) messagingview.Bot { return shownBot(out, read) })
		})
	api.Handle(r.API, botOp("delete-bot", "DELETE", "/{id}", "Delete a bot with its files, pages and webhooks"),
		func(ctx context.Context, in *ByBot) (*api.Nothing, error) {
			out, err := commands.Handle(ctx, r.Commands, api.Request(ctx), bot.Kind, in.stream(), bot.Delete{})
			return api.Done(ctx, out, err)
		})
	api.Handle(r.API, botOp("list-bot-tools", "GET", "/{id}/tools", "List the tools of a bot, or all tools"),
		func(ctx context.Context, in *struct {
			ByBot
			AllTools
			api.Limited
		}) (*api.Array[tool], error) {
			attached, err := r.Views.BotTools(ctx, api.At(ctx), api.Caller(ctx).Workspace, in.ID)
			if err != nil {
				return nil, err
			}
			var all []tool
			for _, t := range bot.Tools {
				if in.Available || slices.Contains(attached, t.ID) {
					all = append(all, shownTool(t, attached))
				}
			}
			from := min((in.Page-1)*in.Limit, len(all))
			return api.Listed(all[from:min(from+in.Limit, len(all))], int64(len(all)), nil)
		})
	attach := botOp("attach-bot-tool", "POST", "/{id}/tools", "Attach a tool to a bot. The bot's rights are at most the caller's.")
	attach.Errors = []int{403}
	api.Handle(r.API, attach,
		func(ctx context.Context, in *struct {
			ByBot
			Body bot.AttachTool
		}) (*attachment, error) {
			in.Body.By = api.Caller(ctx)
			out, err := commands.Handle(ctx, r.Commands, api.Request(ctx), bot.Kind, in.stream(), in.Body)
			if err != nil {
				return nil, err
			}
			api.SetWriteHeaders(ctx, out.Position, out.Replayed)
			t, _ := bot.ToolOf(in.Body.Tool)
			a := attachment{Status: http.StatusCreated, ETag: api.Revision(out.Revision), Body: shownTool(t, out.State.Tools)}
			if !out.Changed { // the tool was attached before
				a.Status = http.StatusOK
			}
			return &a, nil
		})
	api.Handle(r.API, botOp("remove-bot-tool", "DELETE", "/{botId}/tools/{toolId}", "Detach a tool from a bot"),
		func(ctx context.Context, in *byTool) (*api.Nothing, error) {
			out, err := commands.Handle(ctx, r.Commands, api.Request(ctx), bot.Kind, strconv.FormatInt(in.BotID, 10),
				bot.RemoveTool{Tool: in.ToolID})
			return api.Done(ctx, out, err)
		})
}

// shownBot returns a bot after a command, with the given counts.
func shownBot(out commands.Outcome[bot.State], read messagingview.Bot) messagingview.Bot {
	s := out.State
	return messagingview.Bot{
		ID: out.Number(), OwnerID: orNull(s.Owner), Name: s.Name, Description: s.Description, SystemPrompt: s.Prompt, ColorTheme: s.Color,
		FallbackMessage: orNull(s.Fallback),
		Active:          s.Active, ChannelIDs: append([]int64{}, s.Channels...), FileCount: read.FileCount, URLCount: read.URLCount,
		CreatedAt: out.CreatedAt, UpdatedAt: out.At, Revision: out.Revision,
	}
}
