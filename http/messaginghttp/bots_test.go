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

func TestAWebhookKeepsItsSecrets(t *testing.T) {
	t.Parallel()
	_, c := openShared(t)
	b := botOf(t, c, "")
	at := botAt(b.ID, "/webhooks")
	made := c.POST(at, `{"name":"Stock","url":"https://shop.example/stock/{sku}","method":"POST",`+
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
	c.PATCH(botAt(botOf(t, c, "").ID, "/webhooks/", w.ID), `{}`).Problem(404, "Webhook not found")
}
