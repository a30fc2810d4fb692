package messaginghttp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/readmodels/messagingview"
)

const bots = "/api/bots"

func botAt(id int64, rest ...any) string {
	return fmt.Sprintf("%s/%d", bots, id) + fmt.Sprint(rest...)
}

func botOf(t *testing.T, c *apitest.Client, more string) (b messagingview.Bot) {
	t.Helper()
	c.POST(bots, `{"name":"Asha","description":"Answers questions","systemPrompt":"Be polite."`+more+`}`).Status(201).JSON(&b)
	return b
}

func TestABotIsMadeChangedAndDeleted(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c, stranger := agent(o, o.Home), agent(o, o.Abroad)
	k, other := channelOf(t, c, `{"name":"Sales","type":"web"}`), channelOf(t, c, `{"name":"Page","type":"web"}`)
	b := botOf(t, c, fmt.Sprintf(`,"colorTheme":null,"channelIds":[%d,%d,%[1]d]`, k.ID, other.ID))
	read := c.GET(botAt(b.ID)).Status(200)
	for _, said := range []string{
		`"ownerId":null`, `"colorTheme":"blue"`, `"fallbackMessage":null`, `"active":true`, fmt.Sprintf(`"channelIds":[%d,%d]`, k.ID, other.ID),
		`"fileCount":0,"urlCount":0`, `"revision":0`,
	} {
		require.Contains(t, read.Text, said)
	}
	c.PATCH(botAt(b.ID), `{}`).Status(200)
	edited := c.PATCH(botAt(b.ID), `{"name":"Usha","fallbackMessage":"Later","active":false,"unknown":1}`).Status(200)
	require.Equal(t, edited.Text, c.GET(botAt(b.ID)).Status(200).Text, "a read says what the write said")
	require.Contains(t, c.PATCH(botAt(b.ID), `{"fallbackMessage":null}`).Status(200).Text, `"fallbackMessage":null`)

	c.DELETE(channelAt(k.ID)).Status(204)
	require.Contains(t, c.GET(botAt(b.ID)).Status(200).Text, fmt.Sprintf(`"channelIds":[%d]`, other.ID), "a deleted channel leaves all bots")
	require.Contains(t, c.PATCH(botAt(b.ID), `{"name":"Isha"}`).Status(200).Text, fmt.Sprintf(`"channelIds":[%d]`, other.ID))

	before := c.GET(botAt(b.ID)).Status(200).Text
	c.PATCH(botAt(b.ID), `{"colorTheme":null,"active":null}`).Problem(422, "Validation error", "colorTheme", "must not be null",
		"active", "must not be null")
	c.PATCH(botAt(b.ID), `{"name":"ab","active":"yes","colorTheme":"pink"}`).Status(422)
	c.PATCH(botAt(b.ID), fmt.Sprintf(`{"channelIds":[%d,-1]}`, k.ID)).Problem(422, "Validation error", "channelIds[0]", "Channel not found",
		"channelIds[1]", "Channel not found")
	theirs := channelOf(t, stranger, `{"name":"Sales","type":"web"}`)
	c.POST(bots, fmt.Sprintf(`{"name":"x","description":"short","systemPrompt":"","channelIds":[%d]}`, theirs.ID)).Problem(422,
		"Validation error",
		"name", "3 to 100 characters", "description", "10 to 5000 characters", "systemPrompt", "1 to 20000 characters", "channelIds[0]",
		"Channel not found")
	c.POST(bots, `{"name":"`+strings.Repeat("x", 401)+`","description":"Answers questions","systemPrompt":"p"}`).Status(422)
	require.Equal(t, before, c.GET(botAt(b.ID)).Status(200).Text)
	require.Contains(t, c.GET(bots+"?active=false").Status(200).Text, fmt.Sprintf(`"id":%d,`, b.ID))
	require.NotContains(t, c.GET(bots+"?active=true").Status(200).Text, fmt.Sprintf(`"id":%d,`, b.ID))
	c.DELETE(botAt(b.ID)).Status(204)
	c.GET(botAt(b.ID)).Problem(404, "Bot not found")
	c.DELETE(botAt(b.ID)).Problem(404, "Bot not found")
}

func TestAUserSeesTheirOwnBotsFirst(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	asha := o.Person(o.Address("bots"))
	b := botOf(t, asha.Client, "")
	require.Equal(t, asha.User.ID, *b.OwnerID)
	foreign := botOf(t, o.Bearer(o.Key(asha.Workspace, `{"messaging":"write"}`).Key), "")
	var own, all []messagingview.Bot
	asha.GET(bots).Status(200).JSON(&own)
	require.Equal(t, []messagingview.Bot{b}, own)
	asha.GET(bots + "?scope=workspace").Status(200).JSON(&all)
	require.Equal(t, []messagingview.Bot{foreign, b}, all)
}

func TestABotGetsToolsWithinTheCallersRights(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c := agent(o, o.Home)
	b := botOf(t, c, "")
	clerk := o.Bearer(o.Key(o.Home, `{"messaging":"write","marketplace":"read"}`).Key)
	clerk.POST(botAt(b.ID, "/tools"), `{"toolId":2}`).Status(201).Body(`{"id":2,"name":"catalog_search","description":"Search products of ` +
		`this company","attached":true}`)
	again := clerk.With("Idempotency-Key", "again")
	for range 2 {
		again.POST(botAt(b.ID, "/tools"), `{"toolId":2}`).Status(200)
	}
	clerk.POST(botAt(b.ID, "/tools"), `{"toolId":3}`).Problem(403, "Not enough permissions for this tool")
	clerk.POST(botAt(b.ID, "/tools"), `{"toolId":7}`).Problem(422, "Validation error", "toolId", "there is no such tool")
	clerk.POST(botAt(b.ID, "/tools"), `{"toolId":"2"}`).Status(422)
	require.Equal(t, "1", clerk.GET(botAt(b.ID, "/tools")).Status(200).Header("X-Total-Count"))
	require.Equal(t, 5, strings.Count(clerk.GET(botAt(b.ID, "/tools?available=true")).Status(200).Text, `"attached":false`))
	second := clerk.GET(botAt(b.ID, "/tools?available=true&page=2&limit=5")).Status(200)
	require.Equal(t, []string{"6", "1"}, []string{second.Header("X-Total-Count"), fmt.Sprint(strings.Count(second.Text, `"id"`))})
	c.DELETE(botAt(b.ID, "/tools/3")).Problem(404, "Tool not found")
	c.DELETE(botAt(b.ID, "/tools/2")).Status(204)
	c.GET(botAt(b.ID, "/tools")).Status(200).Body(`[]`)
}

func TestAWebhookKeepsItsSecrets(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c := agent(o, o.Home)
	b := botOf(t, c, "")
	at := botAt(b.ID, "/webhooks")
	made := c.With("Idempotency-Key", "w1").POST(at, `{"name":"Stock","url":"https://shop.example/stock/{sku}","method":"POST",`+
		`"description":"Tells the stock",
		"headers":{"X-Key":"hunter2"},"queryParams":{"shop":"1"},"jsonData":{"n":9007199254740993},
		"parameters":[{"name":"sku","dataType":"string","type":"path_param","source":"by_ai"},{"name":"till","dataType":"number",`+
		`"type":"post_data","source":"fixed","value":"4711"}]}`).Status(201)
	var w struct {
		ID     int64
		Secret string
	}
	require.NoError(t, json.Unmarshal([]byte(made.Text), &w))
	require.True(t, strings.HasPrefix(w.Secret, "whsec_"))
	listed := c.GET(at).Status(200)
	for _, said := range []string{
		`"headers":{"X-Key":"********"}`, `"queryParams":{"shop":"********"}`, `"jsonData":{"n":"********"}`,
		`"parameters":[{"name":"sku","dataType":"string","type":"path_param","source":"by_ai"},{"name":"till","dataType":"number",` +
			`"type":"post_data","source":"fixed","value":"********"}]`,
	} {
		require.Contains(t, listed.Text, said)
		require.Contains(t, made.Text, said)
	}
	for _, secret := range []string{"hunter2", "4711", w.Secret} {
		require.NotContains(t, listed.Text, secret)
	}
	one := fmt.Sprint(at, "/", w.ID)
	edited := c.PATCH(one, `{"active":false,"headers":{"x-key":"********","B":"b"},"jsonData":null}`).Status(200)
	require.JSONEq(t, "["+edited.Text+"]", c.GET(at).Status(200).Text, "a read says what the write said")
	c.PATCH(one, `{"url":"https://thief.example/{sku}"}`).Problem(422, "Validation error",
		"headers", "must be given again, since url names another server", "queryParams", "must be given again, since url names another server",
		"parameters", "must be given again, since url names another server")
	c.PATCH(one, `{"method":"TRACE","parameters":{"a":1},"headers":{"a":1}}`).Status(422)
	c.PATCH(fmt.Sprint(at, "/", 1<<40), `{}`).Problem(404, "Webhook not found")
	c.PATCH(botAt(botOf(t, c, "").ID, "/webhooks/", w.ID), `{}`).Problem(404, "Webhook not found")
	require.JSONEq(t, "["+edited.Text+"]", c.GET(at).Status(200).Text)
}
