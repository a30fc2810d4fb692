package messaginghttp_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/readmodels/messagingview"
)

// Networks may send text that Postgres cannot store. It stops no workspace's conversations.
func TestWhatNetworksSendStopsNoProjection(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	c, other := agent(o, apptest.Home), agent(o, apptest.OtherWorkspace)
	channelOf(t, c, `{"name":"Sales","type":"chat","settings":{"senderId":"PN1","appSecret":"own-secret"}}`)
	theirs := channelOf(t, other, `{"name":"Sales","type":"chat"}`)
	post := func(value string) {
		body := graph("PN1", value)
		signed(o.Anonymous(), "own-secret", body).POST(social, body).Status(200)
	}
	const nul = `\u0000`
	post(`"contacts":[{"wa_id":"919812345678","profile":{"name":"As` + nul + `ha"}}],"messages":[{"from":"919812345678","id":"w` +
		nul + `1","type":"text","text":{"body":"a` + nul + `b` + `\ud83d"}}]`)
	post(`"messages":[{"from":"919812345678","id":"w2","type":"t` + nul + `","image":{"id":"M` + nul + `","mime_type":"image/` +
		nul + `png","caption":"c` + nul + `"}}]`)
	post(`"messages":[{"from":"919812345678","id":"w3","type":"unsupported","errors":[{"code":131051,"title":"Un` + nul +
		`known","error_data":{"details":"not supported"}}]}]`)
	post(`"contacts":[{"user_id":"IN.` + nul + `7","profile":{"username":"u` + nul + `"}}],"messages":[{"from_user_id":"IN.` +
		nul + `7","id":"w4","type":"text","text":{"body":"user"}}]`)
	post(`"errors":[{"code":131000,"title":"Down` + nul + `"}]`)
	calls(t, o, "receive-social", 5)

	heard(t, o, theirs.ID, "919812345600", "w1", time.Now())
	require.Len(t, conversation(t, other, appears(t, other, "919812345600").ID, ""), 1, "another workspace reads on")
	asha := appears(t, c, "919812345678")
	said := map[string]messagingview.Message{} // by type: their calls were handled in any order
	for _, m := range conversation(t, c, asha.ID, "") {
		said[m.Type] = m
	}
	require.Len(t, said, 3)
	require.Equal(t, []string{"ab\ufffd", "c"}, []string{*said["text"].Text, *said["t"].Text})
	require.Nil(t, said["text"].Error)
	refused := said["unsupported"]
	require.Equal(t, []string{"received", "Unknown", "not supported"}, []string{refused.Status, *refused.Error.Title, *refused.Error.Details})

	// Workspaces share an endpoint. A workspace that sends an id first, by its own secret, takes no message from another.
	for i, of := range []*apitest.Client{c, other} {
		sender := fmt.Sprint("PN", 5+i)
		channelOf(t, of, fmt.Sprintf(`{"name":"Shop","type":"chat","settings":{"senderId":%q,"appSecret":"secret-of-%[1]s"}}`, sender))
		body := graph(sender, wrote("wamid.1", "919812345699", "To "+sender))
		for range 2 {
			signed(o.Anonymous(), "secret-of-"+sender, body).POST(social, body).Status(200)
		}
		calls(t, o, "receive-social", 6+i)
		talk := conversation(t, of, appears(t, of, "919812345699").ID, "")
		require.Len(t, talk, 1)
		require.Equal(t, "To "+sender, *talk[0].Text)
	}
}

// A network reports a template by the account, which has several channels.
func TestATemplatesStatusIsOfEachChannelOfItsAccount(t *testing.T) {
	t.Parallel()
	network := chatNetwork(t, http.NotFound, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `{"data":[{"id":"77","name":"a\u0000b","status":"APPROVED","components":[{"type":"BODY","text":"A\u0000"}]}]}`)
	})
	with := apptest.Settings(t, apptest.Database(t))
	with.Outside.ChatURL, with.Outside.FetchAllow, with.Outside.SocialSecrets = network.URL,
		[]string{strings.TrimPrefix(network.URL, "http://")}, []string{"app-secret-for-tests"}
	o := apptest.StartAs(t, with)
	c := agent(o, apptest.Home)
	for sender, account := range map[string]string{"PN1": "ACC", "PN2": "ACC", "PN3": "OTHER"} {
		channelOf(t, c, fmt.Sprintf(`{"name":"Sales","type":"chat","apiKey":"good","settings":{"senderId":%q,"accountId":%q}}`, sender, account))
	}
	all := apitest.Read[[]messagingview.Template](c.GET(templates).Status(200))
	require.Equal(t, []string{"ab", "ab", "ab"}, apptest.Each(all, func(k messagingview.Template) string { return k.Name }))
	body := `{"object":"chat_account","entry":[{"id":"ACC","changes":[{"field":"message_template_status_update","value":{"event":"PAUSED",` +
		`"message_template_id":77}}]}]}`
	signed(o.Anonymous(), "app-secret-for-tests", body).POST(social, body).Status(200)
	calls(t, o, "receive-social", 1)
	require.Equal(t, "1", c.GET(templates).Status(200).Header("X-Total-Count"), "the other account's")
}
