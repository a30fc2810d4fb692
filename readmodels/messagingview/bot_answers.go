package messagingview

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/readmodels"
)

// BotCall is a call of a tool or a webhook. The request and the response are not stored.
type BotCall struct {
	ID         string    `json:"id" doc:"ID of the call"`
	At         time.Time `json:"at" doc:"Time of the call"`
	Kind       string    `json:"kind" enum:"tool,webhook" doc:"Kind: tool or webhook"`
	Name       string    `json:"name" doc:"Name of the tool or webhook"`
	WebhookID  *int64    `json:"webhookId" doc:"ID of the webhook; null: a tool"`
	ContactID  *int64    `json:"contactId" doc:"ID of the contact; null: a trial of the bot"`
	HTTPStatus *int32    `json:"httpStatus" doc:"HTTP status; null: no response"`
	DurationMs *int64    `json:"durationMs" doc:"Duration in milliseconds; null: the call has not ended"`
	Error      *string   `json:"error" doc:"Error; null: none"`
}

// BotCalls lists a page of a bot's calls, newest first.
func (v *Views) BotCalls(ctx context.Context, at *readmodels.At, workspace uuid.UUID, of int64, page readmodels.Page) (rows []BotCall,
	total int64,
	err error) {
	return readmodels.List[BotCall]{As: func(row pgx.CollectableRow) (c BotCall, err error) {
		var position int64
		err = row.Scan(&c.ID, &position, &c.At, &c.Kind, &c.Name, &c.WebhookID, &c.ContactID, &c.HTTPStatus, &c.DurationMs, &c.Error)
		return c, err
	}, Order: `position desc`, SQL: `
		select id, position, at, kind, name, nullif(webhook_id, 0), nullif(contact_id, 0), status, duration_ms, error from bot_answers.call
		where bot_id = @bot and workspace_id = @workspace`, Args: pgx.NamedArgs{"bot": of, "workspace": workspace},
	}.Page(ctx, v.Reader.From(at, "bot_answers"), page)
}

// Days are a range of days of a time zone, both included, as yyyy-mm-dd. An empty day is no limit.
type Days struct{ Zone, From, To string }

// BotUsage has the numbers of a bot's actions on a day.
type BotUsage struct {
	Day       string `json:"day" doc:"The day"`
	Messages  int64  `json:"messages" doc:"Number of messages that the bot sent"`
	Tokens    int64  `json:"tokens" doc:"Number of tokens counted by models, trials included"`
	Calls     int64  `json:"calls" doc:"Number of calls of tools and webhooks"`
	Handovers int64  `json:"handovers" doc:"Number of hand-overs of conversations to users"`
}

// BotUsage lists a bot's usage by day, oldest first. It omits days without usage.
func (v *Views) BotUsage(ctx context.Context, at *readmodels.At, workspace uuid.UUID, of int64, days Days) ([]BotUsage, error) {
	return readmodels.Rows(ctx, v.Reader.From(at, "bot_answers"), pgx.RowToStructByName[BotUsage], `
		select (at at time zone $3)::date::text as day, count(*) filter (where reply <> 0) as messages, sum(tokens)::bigint as tokens,
			sum(calls)::bigint as calls,
			count(*) filter (where handed_over and contact_id <> 0) as handovers
		from bot_answers.answer
		where bot_id = $1 and workspace_id = $2 and ($4 = '' or (at at time zone $3)::date >= $4::date) and ($5 = ''
			or (at at time zone $3)::date <= $5::date)
		group by 1 order by 1`, of, workspace, days.Zone, days.From, days.To)
}

// Talk is the state of a bot's conversation with a contact.
type Talk struct {
	Upto    int64 // position of the newest message with a reply
	Replies int64 // number of replies since a time
}

// Talk returns the state of the conversation with a contact.
func (v *Views) Talk(ctx context.Context, at *readmodels.At, workspace uuid.UUID, contact int64, since time.Time) (Talk, error) {
	return readmodels.Row(ctx, v.Reader.From(at, "bot_answers"), pgx.ErrNoRows, pgx.RowToStructByName[Talk], `
		select coalesce(max(upto), 0) as upto, count(*) filter (where reply <> 0 and at > $3) as replies from bot_answers.answer
		where contact_id = $1 and workspace_id = $2`, contact, workspace, since)
}

// Waiting lists the last 20 messages of a contact to a channel after a position, oldest first by the network's time. It omits messages
// before a user's reply. The query searches by the contact alone, because a plan for a small table may read all messages of the workspace.
func (v *Views) Waiting(ctx context.Context, at *readmodels.At, workspace uuid.UUID, channel, contact, after int64) ([]Message, error) {
	const most = 20
	newest, err := readmodels.Rows(ctx, v.Reader.From(at, "messages"), asMessage, messageColumns+`
		where contact_id = $1 and (workspace_id = $2) is true and channel_id = $3 and inbound and began > greatest($4, (
			select max(began) from messages.message where contact_id = $1 and (workspace_id = $2) is true and channel_id = $3 and not inbound `+
		`and actor not like 'bot:%'))
		order by began desc limit $5`, contact, workspace, channel, after, most)
	slices.SortFunc(newest, func(a, b Message) int {
		return cmp.Or(a.At.Compare(b.At), a.arrived.Compare(b.arrived), cmp.Compare(a.Began, b.Began))
	})
	return newest, err
}

// BotSource is a file or a page of a bot's knowledge.
type BotSource struct {
	ID   int64
	Type string
	Name *string
	URL  *string
}

// BotSources lists the files and pages of a bot's knowledge.
func (v *Views) BotSources(ctx context.Context, at *readmodels.At, workspace uuid.UUID, of int64) ([]BotSource, error) {
	return readmodels.Rows(ctx, v.Reader.From(at, "bots"), pgx.RowToStructByName[BotSource], `
		select id, case when url is null then 'file' else 'url' end as type, name, url from bots.source where bot_id = $1
			and workspace_id = $2`, of, workspace)
}
