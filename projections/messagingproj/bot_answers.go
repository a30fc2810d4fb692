package messagingproj

import (
	_ "embed"

	"bahi/domain/event"
	"bahi/domain/messaging/botanswer"
	"bahi/projections"
)

//go:embed bot_answers.sql
var botAnswersDDL string

// BotAnswers has the replies of bots and their calls of tools.
var BotAnswers = projections.Define("bot_answers", 2, botAnswersDDL,
	projections.On(func(b *projections.Batch, e event.Recorded[botanswer.CallBegan]) {
		c := e.Data
		b.Exec(`
			insert into call (id, position, workspace_id, bot_id, contact_id, kind, name, webhook_id, at) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
			on conflict (id) do nothing`,
			c.Call, int64(e.Position), e.Meta.Workspace, c.Bot, c.Contact, c.Kind, c.Name, c.Webhook, e.At)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[botanswer.CallEnded]) {
		c := e.Data
		b.Exec(`update call set status = nullif($2::int, 0), duration_ms = $3, error = nullif($4, '') where id = $1`, c.Call, c.Status,
			c.Duration, c.Error)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[botanswer.Given]) {
		c := e.Data
		b.Exec(`
			insert into answer (id, workspace_id, bot_id, contact_id, upto, reply, tokens, calls, handed_over, at) values ($1, $2, $3, $4, $5, $6,
				$7, $8, $9, $10)`,
			e.StreamID(), e.Meta.Workspace, c.Bot, c.Contact, c.Upto, c.Reply, c.Tokens, c.Calls, c.Over, e.At)
	}),
)
