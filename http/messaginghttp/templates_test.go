package messaginghttp_test

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/commands/messagingcmd"
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

// A network refuses an empty value of any placeholder.
func TestATemplateHasNoPhoneOfAContactWithoutOne(t *testing.T) {
	t.Parallel()
	network := chatNetwork(t, http.NotFound, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"data":[{"id":"1","name":"a","status":"APPROVED","components":[{"type":"HEADER","format":"TEXT","text":`+
			`"For {{1}}"},{"type":"BODY","text":"A {{1}}"},{"type":"BUTTONS","buttons":[{"type":"URL","url":"https://a.example/{{1}}"}]}]}]}`)
	})
	o := onNetwork(t, network)
	c := agent(o, apptest.Home)
	sales := channelOf(t, c, `{"name":"Sales","type":"chat","apiKey":"good","settings":{"senderId":"PN1","accountId":"ACC"}}`)
	o.Receives(messagingcmd.InboundMessage{Sender: messagingcmd.Sender{UserID: "IN.77", Name: "Zara"}, Channel: sales.ID, Text: "Hi"})
	zara := appears(t, c, "Zara")
	require.Nil(t, zara.Phone)
	ready := apitest.Read[[]messagingview.Template](c.GET(templates).Status(200))[0].ID
	c.POST(at(zara.ID)+"/messages", fmt.Sprintf(`{"channelId":%d,"templateId":%d,"templateParams":{"1":"{{phone}}","header":" {{ phone }} ",`+
		`"button_0":"{{phone}}{{phone}}"}}`, sales.ID, ready)).Problem(422, "Validation error",
		"templateParams.1", "is empty: the contact has no phone", "templateParams.header", "is empty: the contact has no phone",
		"templateParams.button_0", "is empty: the contact has no phone")
	require.Len(t, conversation(t, c, zara.ID, ""), 1)
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
