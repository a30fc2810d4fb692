package messaginghttp

import (
	"context"
	"net/http"

	"bahi/commands/messagingcmd/answering"
	"bahi/domain/unit"
	"bahi/http/api"
	"bahi/readmodels/messagingview"
)

// Try is a question to a bot without effect.
type Try struct {
	Text        string `json:"text" maxLength:"4096" doc:"Question to the bot"`
	RunWebhooks bool   `json:"runWebhooks,omitempty" doc:"Call webhooks instead of simulating them"`
}

// tried is the reply that a bot would send.
type tried struct {
	Answer     string                 `json:"answer" doc:"Reply of the bot; null: none"`
	Handover   bool                   `json:"handover" doc:"true: the bot would hand the conversation over"`
	Passages   []answering.Passage    `json:"passages" doc:"Passages that the bot used"`
	ToolCalls  []answering.ToolResult `json:"toolCalls" doc:"Calls of tools"`
	Tokens     int64                  `json:"tokens" doc:"Number of tokens"`
	DurationMs int64                  `json:"durationMs" doc:"Duration in milliseconds"`
}

// Days are the first and the last day of a report.
type Days struct {
	From api.Optional[unit.Date] `query:"from" doc:"First day"`
	To   api.Optional[unit.Date] `query:"to" doc:"Last day"`
}

// botTrials registers the operations for trials and reports of bots.
func (r *Routes) botTrials() {
	try := botOp("try-bot", "POST", "/{id}/try", "Try a bot with a question. Bahi sends nothing and simulates tools that act on others.")
	try.Status, try.NoKey, try.Untried, try.Errors = http.StatusOK, true, true, []int{http.StatusServiceUnavailable}
	api.Handle(r.API, try, func(ctx context.Context, in *struct {
		ByBot
		Body Try
	}) (*api.Body[tried], error) {
		began := r.Now()
		said, err := r.Engine.Try(ctx, api.Request(ctx), in.ID, in.Body.Text, in.Body.RunWebhooks)
		if err != nil {
			return nil, err
		}
		return api.Answer(tried{
			Answer: said.Answer, Handover: said.Handover, Passages: append([]answering.Passage{}, said.Passages...),
			ToolCalls: append([]answering.ToolResult{}, said.Calls...),
			Tokens:    said.Tokens, DurationMs: r.Now().Sub(began).Milliseconds(),
		}, nil)
	})
	calls := botOp("list-bot-calls", "GET", "/{id}/calls", "List the calls of tools and webhooks of a bot, newest first")
	calls.Reads = []string{"bot_answers", "bots"}
	api.Handle(r.API, calls, func(ctx context.Context, in *struct {
		ByBot
		api.Limited
	}) (*api.Array[messagingview.BotCall], error) {
		if _, err := r.Views.Bot(ctx, api.At(ctx), api.Caller(ctx).Workspace, in.ID); err != nil {
			return nil, err
		}
		return api.Listed(r.Views.BotCalls(ctx, api.At(ctx), api.Caller(ctx).Workspace, in.ID, in.Get()))
	})
	usage := botOp("get-bot-usage", "GET", "/{id}/usage", "Read the usage of a bot by day")
	usage.Reads = []string{"bot_answers", "bots"}
	api.Handle(r.API, usage, func(ctx context.Context, in *struct {
		ByBot
		Days
	}) (*api.Body[[]messagingview.BotUsage], error) {
		if _, err := r.Views.Bot(ctx, api.At(ctx), api.Caller(ctx).Workspace, in.ID); err != nil {
			return nil, err
		}
		days, err := r.Views.BotUsage(ctx, api.At(ctx), api.Caller(ctx).Workspace, in.ID,
			messagingview.Days{Zone: r.Zone.String(), From: day(in.From), To: day(in.To)})
		return api.Answer(append([]messagingview.BotUsage{}, days...), err)
	})
}

// day returns a day as text, "" for none.
func day(d api.Optional[unit.Date]) string {
	if d.Set {
		return d.Value.String()
	}
	return ""
}
