package messagingproj_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/access/user"
	"bahi/domain/event"
	"bahi/domain/messaging/bot"
	"bahi/domain/messaging/botsource"
	"bahi/domain/messaging/botwebhook"
	"bahi/domain/messaging/channel"
	"bahi/domain/patch"
	"bahi/internal/test/projectiontest"
	"bahi/projections/messagingproj"
)

func happenedTo[S any](kind *event.Kind[S], id string, e event.Event[S]) projectiontest.Event {
	return projectiontest.Happened(kind, id, e, event.Meta{Workspace: uuid.MustParse("11111111-1111-4111-8111-111111111111")})
}

func TestBotsShowWhatTheyKnowFromAndNoSecret(t *testing.T) {
	t.Parallel()
	owner := uuid.NewString()
	secret := event.NewSecret(bot.Subjects.Of("1"), "hunter2")
	tables := projectiontest.Run(t, messagingproj.Bots,
		happenedTo(bot.Kind, "1", bot.Created{Name: "A", Description: "d", Prompt: "p", Color: "blue", Active: true, Channels: []int64{3, 4},
			Owner: owner}),
		happenedTo(bot.Kind, "2", bot.Created{Name: "B", Description: "d", Prompt: "p", Color: "red"}),
		happenedTo(bot.Kind, "1", bot.ToolAttached{Tool: 2}),
		happenedTo(bot.Kind, "1", bot.ToolAttached{Tool: 6}),
		happenedTo(bot.Kind, "1", bot.ToolRemoved{Tool: 2}),
		happenedTo(bot.Kind, "1", bot.Edited{Name: patch.Set("C"), Fallback: patch.Set("f")}),
		happenedTo(bot.Kind, "2", bot.Edited{Channels: patch.Set([]int64{4}), Fallback: patch.Clear[string]()}),
		happenedTo(channel.Kind, "4", channel.Deleted{}),
		happenedTo(user.Kind, owner, user.Erased{}),
		happenedTo(botsource.Kind, "1", botsource.FileAdded{Bot: 1, Name: "f.txt", MediaType: "text/plain", Size: 3, Hash: "h"}),
		happenedTo(botsource.Kind, "2", botsource.PageAdded{Bot: 1, URL: "https://a.example/"}),
		happenedTo(botsource.Kind, "3", botsource.PageAdded{Bot: 1, URL: "https://b.example/"}),
		happenedTo(botsource.Kind, "4", botsource.FileAdded{Bot: 2, Name: "g.txt"}),
		happenedTo(botsource.Kind, "1", botsource.Read{Chunks: 2}),
		happenedTo(botsource.Kind, "2", botsource.Read{Chunks: 1, Title: "FAQ", FetchedAt: time.Unix(0, 0)}),
		happenedTo(botsource.Kind, "2", botsource.Requested{}),
		happenedTo(botsource.Kind, "3", botsource.ReadFailed{Error: "no"}),
		happenedTo(botsource.Kind, "4", botsource.Deleted{Bot: 2}),
		happenedTo(botwebhook.Kind, "1", botwebhook.Created{Bot: 1, Active: true, Signing: secret, Call: botwebhook.Call{
			Name: "W", URL: "u", Method: "GET", Headers: []botwebhook.Header{{Name: "H", Value: secret}},
			JSON:       []botwebhook.Header{{Name: "n", Value: secret}},
			Parameters: []botwebhook.Parameter{{Name: "p", Source: "fixed", Value: secret}},
		}}),
		happenedTo(botwebhook.Kind, "1",
			botwebhook.Edited{Query: patch.Set([]botwebhook.Header{{Name: "a", Value: secret}}), Active: patch.Set(false)}),
		happenedTo(botwebhook.Kind, "2", botwebhook.Created{Bot: 2, Signing: secret}),
		happenedTo(bot.Kind, "2", bot.Deleted{}),
	)
	require.Equal(t, []string{`(1,,C,f,{3},{6},5)`},
		tables.Rows(`select id, owner_id, name, fallback_message, channel_ids, tools, revision + 1 from bot`))
	require.Equal(t, []string{`(1,,f.txt,ready,,2,)`, `(2,https://a.example/,FAQ,processing,,1,"1970-01-01 00:00:00+00")`,
		`(3,https://b.example/,,failed,no,0,)`},
		tables.Rows(`select id, url, name, status, error, chunk_count, fetched_at at time zone 'UTC' || '+00' from source order by id`))
	require.Equal(t, []string{`(1,{H},{a},{n},f,1)`},
		tables.Rows(`select id, headers, query_params, json_data, active, revision from webhook`))
	require.NotContains(t, tables.Rows(`select webhook::text from webhook`)[0], "hunter2")
}
