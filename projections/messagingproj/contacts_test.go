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
	"bahi/domain/messaging/contact"
	"bahi/domain/messaging/contactlist"
	"bahi/domain/messaging/network"
	"bahi/domain/messaging/template"
	"bahi/domain/patch"
	"bahi/internal/test/projectiontest"
	"bahi/projections/messagingproj"
)

func TestContactsAreShownUntilTheyAreDeleted(t *testing.T) {
	t.Parallel()
	happened := func(id string, e event.Event[contact.State]) projectiontest.Event {
		return projectiontest.Happened(contact.Kind, id, e, event.Meta{Workspace: uuid.MustParse("11111111-1111-4111-8111-111111111111")})
	}
	added := func(id, name string) projectiontest.Event {
		return happened(id, contact.Added{Name: contact.Subjects.Personal(id, name), Phone: contact.Subjects.Personal(id, "91981234567"+id),
			PhoneKey: "k" + id, Source: "chat"})
	}
	tables := projectiontest.Run(t, messagingproj.Contacts,
		added("1", "Élodie"), added("2", "Asha"), added("3", "Ravi"),
		happened("1", contact.Edited{OptIn: patch.Set(true), Status: patch.Set("pending"), Phone: patch.Clear[event.Personal]()}),
		happened("2", contact.Edited{Name: patch.Set(contact.Subjects.Personal("2", "USHA")),
			Email: patch.Set(contact.Subjects.Personal("2", "usha@example.org"))}),
		happened("1", contact.ListsChanged{Lists: []int64{5}}),
		projectiontest.Happened(contactlist.Kind, "7", contactlist.Created{Name: "All"},
			event.Meta{Workspace: uuid.MustParse("11111111-1111-4111-8111-111111111111")}),
		happened("1", contact.ListsChanged{Lists: []int64{5, 7}}),
		happened("2", contact.ListsChanged{Lists: nil}),
		happened("3", contact.Deleted{}),
		added("4", "Guest"), added("5", "+91"), happened("4", contact.ListsChanged{Lists: []int64{7}}),
		happened("4", contact.Absorbed{Contact: 5}),
		happened("2", contact.Absorbed{Contact: 4, Name: contact.Subjects.Personal("2", "Asha")}),
	)
	require.Equal(t, []string{
		`(1,Élodie,élodie,,,chat,t,t,pending,t,3)`, `(2,Asha,asha,919812345672,usha@example.org,chat,f,t,open,t,3)`,
	}, tables.Rows(`select id, name, name_folded, phone, email, source, opt_in, reply_bot, status, updated_at > created_at, revision
		from contact order by id`))
	require.Equal(t, []string{`(1,5)`, `(1,7)`}, tables.Rows(`select contact_id, list_id from member order by 1, 2`))
	require.Equal(t, []string{`(7,All)`}, tables.Rows(`select id, name from list`))
	require.Equal(t, []string{`(4,2)`, `(5,2)`}, tables.Rows(`select id, into_id from merged order by id`),
		"also a contact merged into a merged one")
}

func TestChannelsShowWhichSecretsThereAreAndNone(t *testing.T) {
	t.Parallel()
	happened := func(id string, e event.Event[channel.State]) projectiontest.Event {
		return projectiontest.Happened(channel.Kind, id, e, event.Meta{Workspace: uuid.MustParse("11111111-1111-4111-8111-111111111111")})
	}
	secret := func(id string) patch.Field[event.Secret] {
		return patch.Set(event.NewSecret(channel.Subjects.Of(id), "hunter2"))
	}
	tables := projectiontest.Run(t, messagingproj.Channels,
		happened("1", channel.Created{Name: "Sales", Type: "chat",
			Settings: channel.Change{SenderID: patch.Set("PN1"), Dialect: patch.Set("cloud")}, Secrets: channel.Secrets{APIKey: secret("1")}}),
		happened("2", channel.Created{Name: "Bot", Type: "telegram"}),
		happened("3", channel.Created{Name: "Page", Type: "web"}),
		happened("1", channel.Reported{Status: "error", Error: "no", IdentityKey: "i"}),
		happened("1", channel.Edited{
			Settings: channel.Change{Dialect: patch.Clear[string](), AllowedOrigins: patch.Set([]string{"https://a.example"})},
			Secrets:  channel.Secrets{APIKey: patch.Clear[event.Secret](), AppSecret: secret("1")},
		}),
		happened("2", channel.Edited{Name: patch.Set("Robot"), Secrets: channel.Secrets{AccessToken: secret("2"), ConsumerSecret: secret("2")}}),
		happened("2", channel.Edited{Secrets: channel.Secrets{ConsumerSecret: patch.Clear[event.Secret](), RefreshToken: secret("2"),
			ClientSecret: secret("2")}}),
		happened("3", channel.Deleted{}),
	)
	require.Equal(t, []string{
		`(1,Sales,chat,error,no,"{""senderId"": ""PN1"", ""allowedOrigins"": [""https://a.example""]}",f,f,{appSecret},t,2)`,
		`(2,Robot,telegram,disconnected,,{},f,t,"{clientSecret,refreshToken}",t,2)`,
	}, tables.Rows(`select id, name, type, status, last_error, settings, has_api_key, has_access_token, secret_settings,
		updated_at > created_at, revision from channel order by id`))
}

func TestTemplatesAreShownUntilTheirChannelIsDeleted(t *testing.T) {
	t.Parallel()
	meta := event.Meta{Workspace: uuid.MustParse("11111111-1111-4111-8111-111111111111")}
	listed := func(id string, of int64, body string) projectiontest.Event {
		d := network.Template{ProviderID: "T" + id, Name: "n", Language: "en", Category: "UTILITY", Status: "APPROVED",
			Format: network.Positional}
		d.Read(body)
		return projectiontest.Happened(template.Kind, id, template.Listed{Template: d, Channel: of}, meta)
	}
	tables := projectiontest.Run(t, messagingproj.Templates,
		listed("1", 3, "Hello"), listed("2", 3, "To {{2}} from {{1}}"), listed("3", 4, "Bye"), listed("1", 3, "Hello {{1}}"),
		projectiontest.Happened(template.Kind, "2", template.StatusMoved{Status: "PAUSED"}, meta),
		projectiontest.Happened(channel.Kind, "4", channel.Deleted{}, meta),
	)
	require.Equal(t, []string{`(1,3,T1,APPROVED,{1},"Hello {{1}}")`, `(2,3,T2,PAUSED,"{1,2}","To {{2}} from {{1}}")`},
		tables.Rows(`select id, channel_id, provider_id, status, parameters, body from template order by id`))
}

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
