package messaginghttp_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/readmodels/messagingview"
)

const templates = "/api/chat/templates"

func TestTheNetworksTemplatesAreAskedForOnceAnHour(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	var answer atomic.Value
	network := chatNetwork(t, http.NotFound, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = io.WriteString(w, answer.Load().(string))
	})
	c := agent(onNetwork(t, network), apptest.Home)
	answer.Store(`no JSON`)
	channelOf(t, c, `{"name":"Web","type":"web"}`)
	sales := channelOf(t, c, `{"name":"Sales","type":"chat","apiKey":"good","settings":{"senderId":"PN1","accountId":"ACC"}}`)
	require.Contains(t, c.GET(templates).Status(503).Text, `"code":"provider_unknown"`)
	answer.Store(`{"data":[{"id":"1","name":"a","status":"APPROVED","components":[{"type":"BODY","text":"A"}]},{"id":"2","name":"b",` +
		`"status":"LOCKED"},{"id":"3","name":"c","status":"REJECTED"}]}`)
	before := c.GET(templates).Status(200)
	require.Equal(t, before.Text, c.GET(templates).Status(200).Text)
	require.Equal(t, int64(3), asked.Load(), "the first time when the channel was made")
	require.Equal(t, "2", before.Header("X-Total-Count"), "what the network rejected is not shown")

	// After a change of the account its templates are read at once. Until the network responds, the last list is shown.
	answer.Store(`no JSON`)
	c.PATCH(channelAt(sales.ID), `{"apiKey":"good"}`).Status(200)
	late := c.GET(templates).Status(200)
	require.Equal(t, []string{before.Text, "true"}, []string{late.Text, late.Header("Bahi-Stale")})
	answer.Store(`{"data":[{"id":"1","name":"a","status":"PAUSED","components":[{"type":"BODY","text":"A"}]},{"id":"3","name":"c",` +
		`"status":"APPROVED"}]}`)
	all := apitest.Read[[]messagingview.Template](c.GET(templates).Status(200))
	require.Equal(t, []string{"c"}, apptest.Each(all, func(k messagingview.Template) string { return k.Name }))

	// The templates of a new channel are read when it is made.
	count := asked.Load()
	other := channelOf(t, c, `{"name":"Other","type":"chat","apiKey":"good","settings":{"senderId":"PN2","accountId":"ACC"}}`)
	require.Equal(t, count+1, asked.Load())
	require.Equal(t, "1", c.GET(fmt.Sprintf("%s?channelId=%d", templates, other.ID)).Status(200).Header("X-Total-Count"))
	require.Equal(t, count+1, asked.Load())
	c.DELETE(channelAt(other.ID)).Status(204)

	// A channel without known templates hides no other channel's templates.
	bare := channelOf(t, c, `{"name":"Bare","type":"chat"}`)
	shown := c.GET(templates).Status(200)
	require.Equal(t, []string{"1", "true"}, []string{shown.Header("X-Total-Count"), shown.Header("Bahi-Stale")})
	c.GET(fmt.Sprintf("%s?channelId=%d", templates, bare.ID)).Status(503)
}

// Bahi waits for several hanging networks at once: one after the other, they would exceed a request's timeout.
func TestNetworksAreAskedForTheirTemplatesBesideEachOther(t *testing.T) {
	t.Parallel()
	var asked, made atomic.Int64
	all := make(chan struct{})
	network := chatNetwork(t, http.NotFound, func(w http.ResponseWriter, r *http.Request) {
		if made.Load() == 0 { // a new channel also calls its network
			http.NotFound(w, r)
			return
		}
		if asked.Add(1) == 3 {
			close(all)
		}
		select {
		case <-all:
			_, _ = fmt.Fprintf(w, `{"data":[{"id":%q,"name":"a","status":"APPROVED"}]}`, r.URL.Path)
		case <-r.Context().Done(): // the caller's timeout has passed
		}
	})
	c := agent(onNetwork(t, network), apptest.Home)
	for i := range 3 {
		channelOf(t, c, fmt.Sprintf(`{"name":"Sales","type":"chat","apiKey":"good","settings":{"senderId":"PN%[1]d","accountId":"ACC%[1]d"}}`,
			i+1))
	}
	made.Store(3)
	shown := c.GET(templates).Status(200)
	require.Equal(t, []string{"3", ""}, []string{shown.Header("X-Total-Count"), shown.Header("Bahi-Stale")})
}

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
