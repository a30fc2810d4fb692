package channel_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/messaging/channel"
	"bahi/domain/messaging/network"
	"bahi/domain/patch"
	"bahi/internal/test/eventtest"
)

const id = "3"

func secret(text string) patch.Field[event.Secret] {
	return patch.Set(event.NewSecret(channel.Subjects.Of(id), text))
}

// input decodes a client's input.
func input(t *testing.T, text string) (in channel.Input) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &in))
	return in
}

func TestCreate(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, channel.Kind)
	given.Case("secrets are sealed, settings are kept").
		When(channel.Create{ID: id, Name: " Sales ", Type: "chat", Input: input(t, `{"apiKey":"k","accessToken":"",`+
			`"settings":{"senderId":"PN1","appSecret":"s","baseUrl":null}}`)}).
		Then(channel.Created{
			Name: "Sales", Type: "chat", Settings: channel.Change{SenderID: patch.Set("PN1")},
			Secrets: channel.Secrets{APIKey: secret("k"), AppSecret: secret("s")},
		})
	given.Case("what the network says is noted").
		When(channel.Create{ID: id, Name: "Sales", Type: "web", Found: channel.Report{Status: "connected", IdentityKey: "i"}}).
		Then(channel.Created{Name: "Sales", Type: "web"}, channel.Reported{Status: "connected", IdentityKey: "i"})
	given.Case("all that is wrong is told").
		When(channel.Create{ID: id, Type: "chat", Input: input(t, `{"apiKey":"a b","accessToken":"********",
			"settings":{"senderId":"../9","appName":"\u0000","baseUrl":"http://chat.example.org","allowedOrigins":["https://a.example",`+
			`"https://a.example//"],"userId":""}}`)}).
		ThenFails(fault.Fields(
			fault.Field{Field: "name", Message: "1 to 100 characters"},
			fault.Field{Field: "apiKey", Message: "expected printable ASCII without spaces"},
			fault.Field{Field: "accessToken", Message: "there is no value to keep"},
			fault.Field{Field: "settings.senderId", Message: "letters, digits, _ + and -, at most 64"},
			fault.Field{Field: "settings.userId", Message: "letters, digits, _ + and -, at most 64"},
			fault.Field{Field: "settings.appName", Message: "1 to 100 characters, without control characters"},
			fault.Field{Field: "settings.baseUrl", Message: "expected an address like https://chat.example.org/v1"},
			fault.Field{Field: "settings.allowedOrigins[1]", Message: "expected origins like https://shop.example.org"},
		))
	for _, text := range []string{"https://u:p@a.example", "https://a.example?x", "https://a.example#x", "https://", "a.example",
		"https:a.example"} {
		_, err := channel.Create{Name: "Sales", Type: "chat",
			Input: input(t, fmt.Sprintf(`{"settings":{"baseUrl":%q}}`, text))}.Decide(channel.State{})
		require.ErrorContains(t, err, "settings.baseUrl", text)
	}
}

func TestEdit(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, channel.Kind, channel.Created{
		Name: "Sales", Type: "chat", Settings: channel.Change{SenderID: patch.Set("PN1"), BaseURL: patch.Set("https://a.example/v1")},
		Secrets: channel.Secrets{APIKey: secret("k"), AppSecret: secret("s")},
	})
	require.Equal(t, "disconnected", given.State().Status)
	edit := func(text string) channel.Edit { return channel.Edit{ID: id, Input: input(t, text)} }
	given.Case("nothing").When(edit(`{"apiKey":"********","accessToken":null,"settings":{"senderId":"PN1","dialect":null}}`)).ThenNothing()
	given.Case("settings are merged by key").When(edit(`{"settings":{"senderId":null,"allowedOrigins":["https://a.example/"],` +
		`"baseUrl":"https://a.example/v2"}}`)).
		Then(channel.Edited{Settings: channel.Change{SenderID: patch.Clear[string](), AllowedOrigins: patch.Set([]string{"https://a.example"}),
			BaseURL: patch.Set("https://a.example/v2")}})
	given.Case("a secret is replaced, another taken away").When(edit(`{"apiKey":"l","settings":{"appSecret":""}}`)).
		Then(channel.Edited{Secrets: channel.Secrets{APIKey: secret("l"), AppSecret: patch.Clear[event.Secret]()}})
	given.Case("the type stays").When(channel.Edit{ID: id,
		Type: patch.Set("web")}).ThenFails(fault.Fields(fault.Field{Field: "type", Message: "cannot change"}))

	again := "must be given again: baseUrl names another server"
	for _, base := range []string{`"https://b.example/v1"`, `"https://a.example:444/v1"`, `null`} {
		given.Case("another server gets only what is sent again: " +
			base).When(edit(`{"apiKey":"********","settings":{"baseUrl":` + base + `}}`)).
			ThenFails(fault.Fields(fault.Field{Field: "apiKey", Message: again}, fault.Field{Field: "settings.appSecret", Message: again}))
	}
	given.Case("and does, or none").When(edit(`{"apiKey":"k","settings":{"appSecret":null,"baseUrl":"https://b.example"}}`)).
		Then(channel.Edited{Settings: channel.Change{BaseURL: patch.Set("https://b.example")},
			Secrets: channel.Secrets{APIKey: secret("k"), AppSecret: patch.Clear[event.Secret]()}})

	s := given.And(channel.Edited{Settings: channel.Change{SenderID: patch.Clear[string]()},
		Secrets: channel.Secrets{AppSecret: patch.Clear[event.Secret]()}}).State()
	require.Equal(t, channel.Settings{BaseURL: "https://a.example/v1"}, s.Settings)
	require.Equal(t, []bool{true, false, false}, []bool{s.APIKey.Present(), s.AppSecret.Present(), s.AccessToken.Present()})
}

func TestReportAndDelete(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, channel.Kind, channel.Created{Name: "Sales", Type: "chat"},
		channel.Reported{Status: "connected", IdentityKey: "i"})
	given.Case("the same again").When(channel.Report{Status: "connected", IdentityKey: "i"}).ThenNothing()
	given.Case("it was not asked").When(channel.Report{}).ThenNothing()
	given.Case("it refuses").When(channel.Report{Status: "error", Error: "no", IdentityKey: "i"}).Then(channel.Reported{Status: "error",
		Error: "no", IdentityKey: "i"})
	given.Case("it ends").When(channel.Delete{}).Then(channel.Deleted{})
	gone := given.And(channel.Deleted{})
	gone.Case("once").When(channel.Delete{}).ThenFails(channel.ErrNotFound)
	gone.Case("nothing is noted").When(channel.Report{Status: "error"}).ThenFails(channel.ErrNotFound)
	gone.Case("and it is not edited").When(channel.Edit{}).ThenFails(channel.ErrNotFound)
	require.Equal(t, "channel-3", channel.Deleted{}.Erases(id).Subject)
}

func TestStatusFollowsFromWhatTheNetworkSays(t *testing.T) {
	t.Parallel()
	was := channel.State{Status: channel.Connected}
	for reason, want := range map[network.Reason]string{
		network.Credentials: channel.Failed, network.Restricted: channel.Failed, network.Refused: channel.Failed,
		network.Unreached: channel.Disconnected,
		network.Unknown:   channel.Disconnected, network.Unconfigured: channel.Disconnected, network.Temporary: channel.Disconnected,
		network.HealthUnsupported: channel.Connected,
		network.Recipient:         channel.Connected, network.WindowClosed: channel.Connected, network.Throttled: channel.Connected,
		network.Content: channel.Connected,
	} {
		status, words := was.StatusAfter(&network.Failure{Reason: reason, Code: 7})
		require.Equal(t, want, status, reason)
		require.Equal(t, status == want && want != channel.Connected || reason == network.HealthUnsupported, words != "", reason)
	}
	status, words := channel.State{Status: channel.Failed, LastError: "no"}.StatusAfter(nil)
	require.Equal(t, []string{channel.Connected, ""}, []string{status, words})
}

func TestConfirm(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, channel.Kind,
		channel.Created{Name: "Sales", Type: "chat", Settings: channel.Change{SenderID: patch.Set("PN1")}})
	given.Case("an operator gives the channel its sender").When(channel.Confirm{Sender: "PN1",
		IdentityKey: "i"}).Then(channel.Confirmed{IdentityKey: "i"})
	given.Case("another sender was set meanwhile").When(channel.Confirm{Sender: "PN2", IdentityKey: "j"}).
		ThenFails(fault.New(fault.Conflict, "The channel's sender was changed meanwhile, try again"))
	given.And(channel.Confirmed{IdentityKey: "i"}).Case("the same again changes nothing").When(channel.Confirm{Sender: "PN1",
		IdentityKey: "i"}).ThenNothing()
	eventtest.Given(t, channel.Kind).Case("there is none").When(channel.Confirm{}).ThenFails(channel.ErrNotFound)
	eventtest.Given(t, channel.Kind,
		channel.Created{Name: "Sales", Type: "chat"}).Case("no call can name it").When(channel.Confirm{IdentityKey: "i"}).ThenFails(
		channel.ErrNoSender)
}

func TestSenderOfEachDialect(t *testing.T) {
	t.Parallel()
	for _, k := range []struct {
		of               channel.State
		sender, incoming string
	}{
		{channel.State{Type: "chat", Settings: channel.Settings{SenderID: "PN1", AppName: "Shop"}}, "PN1", "unconfirmed"},
		{channel.State{Type: "chat", Settings: channel.Settings{SenderID: "917", AppName: "Shop", Dialect: "envelope_v2"}}, "app:Shop",
			"unconfirmed"},
		{channel.State{Type: "chat", Settings: channel.Settings{SenderID: "PN1", Dialect: "graph_v3"}, IdentityKey: "i"}, "PN1", "delivered"},
		{channel.State{Type: "chat", Settings: channel.Settings{SenderID: "+91-98", AppName: "Shop", Dialect: "form_v1"}}, "9198", "unconfirmed"},
		{channel.State{Type: "chat"}, "", "none"},
		{channel.State{Type: "gmail", Settings: channel.Settings{SenderID: "PN1"}}, "", "none"},
		{channel.State{Type: "telegram"}, "", "delivered"},
	} {
		require.Equal(t, []string{k.sender, k.incoming}, []string{k.of.Sender(), k.of.Incoming()}, k.of.Settings)
	}
}
