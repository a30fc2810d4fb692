package messagingproj_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/messaging/channel"
	"bahi/domain/patch"
	"bahi/internal/test/projectiontest"
	"bahi/projections/messagingproj"
)

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
