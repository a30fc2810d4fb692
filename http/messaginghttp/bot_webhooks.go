package messaginghttp

import (
	"context"
	"strconv"

	"bahi/commands"
	"bahi/domain/messaging/botwebhook"
	"bahi/http/api"
	"bahi/readmodels/messagingview"
)

// ByWebhook names a webhook of a bot.
type ByWebhook struct {
	ByBot

	WebhookID int64 `path:"webhookId" minimum:"1" doc:"The webhook's id"`
}

// madeWebhook is a new webhook with the secret that signs its calls.
type madeWebhook struct {
	messagingview.BotWebhook

	Secret *string `json:"secret" doc:"Secret that signs the calls; only in this response"`
}

// botWebhooks registers the endpoints that bots may call.
func (r *Routes) botWebhooks() {
	api.Handle(r.API, botOp("list-bot-webhooks", "GET", "/{id}/webhooks",
		"List the webhooks of a bot, newest first. The response has stars instead of secrets."),
		func(ctx context.Context, in *struct {
			ByBot
			api.Limited
		}) (*api.Array[messagingview.BotWebhook], error) {
			if _, err := r.Views.Bot(ctx, api.At(ctx), api.Caller(ctx).Workspace, in.ID); err != nil {
				return nil, err
			}
			return api.Listed(r.Views.BotWebhooks(ctx, api.At(ctx), api.Caller(ctx).Workspace, in.ID, in.Get()))
		})
	api.Handle(r.API, botOp("create-bot-webhook", "POST", "/{id}/webhooks", "Create a webhook of a bot"),
		func(ctx context.Context, in *struct {
			ByBot
			Body botwebhook.Create
		}) (*api.Tagged[madeWebhook], error) {
			in.Body.Bot = in.ID
			secret, out, err := r.Flows.CreateWebhook(ctx, api.Request(ctx), in.Body)
			return api.WriteResult(ctx, out, err, func(out commands.Outcome[botwebhook.State]) madeWebhook {
				return madeWebhook{BotWebhook: shownWebhook(out), Secret: orNull(secret)}
			})
		})
	api.Handle(r.API, botOp("edit-bot-webhook", "PATCH", "/{id}/webhooks/{webhookId}",
		"Edit a webhook of a bot. Only fields in the body change. Stars keep a secret. A change of the server requires all secrets again."),
		func(ctx context.Context, in *struct {
			ByWebhook
			Body botwebhook.Edit
		}) (*api.Tagged[messagingview.BotWebhook], error) {
			in.Body.Bot = in.ID
			out, err := r.Flows.EditWebhook(ctx, api.Request(ctx), strconv.FormatInt(in.WebhookID, 10), in.Body)
			return api.WriteResult(ctx, out, err, shownWebhook)
		})
}

func shownWebhook(out commands.Outcome[botwebhook.State]) messagingview.BotWebhook {
	return messagingview.ShownWebhook(out.Number(), out.State, out.CreatedAt, out.At, out.Revision)
}
