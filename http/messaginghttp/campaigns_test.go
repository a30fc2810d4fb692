package messaginghttp_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/commands/messagingcmd"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/readmodels/messagingview"
)

const campaigns = "/api/campaigns"

func campaignAt(id int64) string { return fmt.Sprintf("%s/%d", campaigns, id) }

// templatesOf creates a channel and returns the ids of its templates by their names.
func templatesOf(t *testing.T, c *apitest.Client, channel string) map[string]int64 {
	t.Helper()
	channelOf(t, c, channel)
	all := apitest.Read[[]messagingview.Template](c.GET(templates).Status(200))
	ids := map[string]int64{}
	for _, k := range all {
		ids[k.Name] = k.ID
	}
	return ids
}

const sandbox = `{"name":"Sales","type":"chat"}`

// consenting creates a contact that has opted in.
func consenting(t *testing.T, c *apitest.Client, name, phone string) messagingview.Contact {
	t.Helper()
	k := made(t, c, fmt.Sprintf(`{"name":%q,"phone":%q}`, name, phone))
	c.PATCH(at(k.ID), `{"optIn":true}`).Status(200).JSON(&k)
	return k
}

func campaignOf(t *testing.T, c *apitest.Client, body string, args ...any) messagingview.Campaign {
	t.Helper()
	return apitest.Read[messagingview.Campaign](c.POST(campaigns, fmt.Sprintf(body, args...)).Status(201))
}

// awaited reads a campaign until a condition holds.
func awaited(t *testing.T, c *apitest.Client, id int64, wanted func(messagingview.Campaign) bool) (k messagingview.Campaign) {
	t.Helper()
	require.Eventually(t, func() bool {
		k = messagingview.Campaign{}
		c.GET(campaignAt(id)).Status(200).JSON(&k)
		return wanted(k)
	}, time.Minute, 20*time.Millisecond, "the campaign is %+v", &k)
	return k
}

// unread returns stats without the receipts, whose times vary.
func unread(s messagingview.CampaignStats) messagingview.CampaignStats {
	s.Delivered, s.Read = 0, 0
	return s
}

func is(status string) func(messagingview.Campaign) bool {
	return func(k messagingview.Campaign) bool { return k.Status == status }
}

func dispatch(c *apitest.Client, id int64) *apitest.Answer {
	return c.POST(campaigns+"/send", fmt.Sprintf(`{"campaignId":%d}`, id))
}

func TestACampaignIsSentToWhoConsents(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c, stranger := agent(o, o.Home), agent(o, o.Abroad)
	ready := templatesOf(t, c, sandbox)["order_ready"]
	asha, usha := consenting(t, c, "Asha", "9812300001"), consenting(t, c, "Usha", "9812300002")
	consenting(t, c, "Ravi", "9812300000") // the sandbox cannot reach him
	made(t, c, `{"name":"Silent","phone":"9812300004"}`)
	phoneless := made(t, c, `{"name":"Phoneless"}`)
	c.PATCH(at(phoneless.ID), `{"optIn":true}`).Status(200)
	k := campaignOf(t, c, `{"name":"Ready","type":"broadcast","templateId":%d,"audience":"all","schedule":"immediate",`+
		`"templateParams":{"1":"A-204","2":"{{name}}"},"unknown":1}`, ready)
	require.Equal(t, "draft", k.Status)
	read := c.GET(campaignAt(k.ID)).Status(200)
	again := apitest.Read[messagingview.Campaign](read)
	require.Equal(t, k, again, "a read says what the write said")
	require.Contains(t, read.Text, `"stats":{"total":0,"sent":0,"delivered":0,"read":0,"failed":0,"skipped":0}`)

	progress := c.Stream(campaignAt(k.ID) + "/progress")
	dispatch(c, k.ID).Status(202).Body(fmt.Sprintf(`{"campaignId":%d,"status":"active","total":3,"skipped":2}`, k.ID))
	done := awaited(t, c, k.ID, is("completed"))
	require.Equal(t, messagingview.CampaignStats{Total: 3, Sent: 2, Failed: 1, Skipped: 2}, unread(done.Stats))
	require.NotNil(t, done.StartedAt)
	require.NotNil(t, done.CompletedAt)
	require.Equal(t, unread(done.Stats), unread(done.Runs[0].Stats))
	dispatch(c, k.ID).Problem(409, "Campaign is completed")
	var told struct {
		Status string
		Stats  messagingview.CampaignStats
	}
	for told.Status != "completed" {
		name, _ := progress.Next(&told)
		require.Equal(t, "progress", name)
	}
	require.Equal(t, unread(done.Stats), unread(told.Stats))

	said := apitest.Read[[]messagingview.Message](c.GET(at(asha.ID) + "/messages").Status(200))
	require.Len(t, said, 1)
	require.Equal(t, []string{"template", "Order A-204 is ready for Asha", fmt.Sprintf("campaign:%d", k.ID)},
		[]string{said[0].Type, *said[0].Text, said[0].By})

	// The list of recipients has the failed ones and the reasons.
	var failed []messagingview.CampaignRecipient
	require.Equal(t, "1", c.GET(campaignAt(k.ID)+"/recipients?status=failed").Status(200).JSON(&failed).Header("X-Total-Count"))
	require.Equal(t, []string{"Ravi", "919812300000", "The network cannot reach the recipient (131026)", "recipient_failed"},
		[]string{*failed[0].Name, *failed[0].Phone, *failed[0].Reason, failed[0].Error.Code})
	require.Equal(t, "3", c.GET(campaignAt(k.ID)+"/recipients?limit=2").Status(200).JSON(&failed).Header("X-Total-Count"))
	require.Len(t, failed, 2)
	c.GET(campaignAt(k.ID) + "/recipients?status=refused").Status(422)

	// The sandbox simulates receipts. Each recipient counts once, by the furthest receipt.
	done = awaited(t, c, k.ID, func(k messagingview.Campaign) bool { return k.Stats.Read == 2 })
	require.Equal(t, messagingview.CampaignStats{Total: 3, Sent: 2, Delivered: 2, Read: 2, Failed: 1, Skipped: 2}, done.Stats)

	var listed []messagingview.Campaign
	a := c.GET(campaigns + "?status=completed&type=broadcast").Status(200).JSON(&listed)
	require.Equal(t, "1", a.Header("X-Total-Count"))
	require.Equal(t, done.Stats, listed[0].Stats)
	c.GET(campaigns + "?status=draft").Status(200).Body(`[]`)
	c.DELETE(at(usha.ID)).Status(204)
	c.GET(campaignAt(k.ID)).Status(200).JSON(&again)
	require.Equal(t, done.Stats, again.Stats, "what became of it stays")

	dispatch(stranger, k.ID).Problem(422, "Validation error", "campaignId", "Campaign not found")
}

func TestAWrongCampaignIsRefused(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c, stranger := agent(o, o.Home), agent(o, o.Abroad)
	plain := templatesOf(t, c, sandbox)["plain"]
	theirs := templatesOf(t, stranger, sandbox)["plain"]
	list := apitest.Read[messagingview.ContactList](stranger.POST(contactLists, `{"name":"Theirs"}`).Status(201))
	for more, wrong := range map[string][2]string{
		`"all","templateParams":{"1":"a\nb"}`: {"templateParams.1", "must have no line break, no tab and at most three blanks in a row"},
		`"all","templateParams":{"Name":""}`:  {"templateParams.Name", "the template has no such placeholder"},
		fmt.Sprintf(`"%d"`, list.ID):          {"audience", "expected all or the id of a contact list"},
	} {
		c.POST(campaigns, fmt.Sprintf(`{"name":"x","type":"broadcast","templateId":%d,"audience":%s}`, plain, more)).
			Problem(422, "Validation error", wrong[0], wrong[1])
	}
	c.POST(campaigns, fmt.Sprintf(`{"name":"x","type":"broadcast","templateId":%d,"audience":"all"}`, theirs)).
		Problem(422, "Validation error", "templateId", "Template not found")
	c.GET(campaigns).Status(200).Body(`[]`)
}

func TestATriggerASurveyAndADrip(t *testing.T) {
	t.Parallel()
	o, c := openShared(t)
	plain := templatesOf(t, c, sandbox)["plain"]
	asha := consenting(t, c, "Asha", "9812300001")
	word := campaignOf(t, c, `{"name":"Prices","type":"trigger","templateId":%d,"audience":"all","trigger":{"event":"keyword",`+
		`"keyword":"price list"}}`, plain)
	fresh := campaignOf(t, c, `{"name":"Welcome","type":"trigger","templateId":%d,"audience":"all","trigger":{"event":"contact_created"}}`,
		plain)
	survey := campaignOf(t, c, `{"name":"How was it","type":"survey","templateId":%d,"audience":"all"}`, plain)
	drip := campaignOf(t, c, `{"name":"Steps","type":"drip","templateId":%[1]d,"audience":"all","steps":[{"templateId":%[1]d},`+
		`{"templateId":%[1]d,"delayHours":48}]}`, plain)
	for _, k := range []messagingview.Campaign{word, fresh, survey, drip} {
		require.Contains(t, dispatch(c, k.ID).Status(202).Text, `"status":"active"`)
	}
	awaited(t, c, survey.ID, is("completed"))
	awaited(t, c, drip.ID, func(k messagingview.Campaign) bool { return k.Stats.Sent == 1 && k.Stats.Total == 2 })

	says := func(text string) {
		o.Receives(messagingcmd.InboundMessage{Channel: survey.ChannelID, Sender: messagingcmd.Sender{From: "919812300001"}, Text: text})
	}
	says("Very good")
	says("Price  LIST")
	says("price list")
	require.EqualValues(t, 1, awaited(t, c, word.ID, func(k messagingview.Campaign) bool { return k.Stats.Sent > 0 }).Stats.Total,
		"once a day")
	require.EqualValues(t, 1, *awaited(t, c, survey.ID, is("completed")).Stats.Responded)
	var answers []messagingview.CampaignResponse
	a := c.GET(campaignAt(survey.ID) + "/responses").Status(200).JSON(&answers)
	require.Equal(t, "1", a.Header("X-Total-Count"))
	require.Equal(t, []any{asha.ID, "Very good"}, []any{answers[0].ContactID, *answers[0].Text}, "the first message is the answer")

	// Earlier contacts are not new.
	require.Zero(t, awaited(t, c, fresh.ID, is("active")).Stats.Total)
	file, kind := apptest.Form(t, "text/csv", []byte("name,phone,opt in,opt in evidence\nRavi,9812300003,yes,Form 7\n"))
	c.With("Content-Type", kind).POST(contacts+"/import", file).Status(200)
	ravi := appears(t, c, "Ravi")
	consenting(t, c, "Usha", "9812300002")
	require.EqualValues(t, 1, awaited(t, c, fresh.ID, func(k messagingview.Campaign) bool { return k.Stats.Sent > 0 }).Stats.Total)
	c.GET(at(ravi.ID) + "/messages").Status(200).Body("[]") // imports never trigger
}

// The network reports its suspended template in the response to a message, and another spelling of a phone.
func TestACampaignPausesForASuspendedTemplateAndGoesOn(t *testing.T) {
	t.Parallel()
	var lists atomic.Int64
	var answer atomic.Value // func(to string) (status int, body string)
	server := chatNetwork(t, func(w http.ResponseWriter, r *http.Request) {
		var m struct{ To string }
		_ = json.NewDecoder(r.Body).Decode(&m)
		status, body := answer.Load().(func(string) (int, string))(m.To)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}, func(w http.ResponseWriter, _ *http.Request) {
		lists.Add(1)
		_, _ = io.WriteString(w, `{"data":[{"id":"1","name":"plain","status":"APPROVED","components":[{"type":"BODY","text":"Hello"}]}]}`)
	})
	o := onNetwork(t, server)
	c := agent(o, apptest.Home)
	plain := templatesOf(t, c, `{"name":"Sales","type":"chat","apiKey":"good","settings":{"senderId":"PN1","accountId":"ACC"}}`)["plain"]
	consenting(t, c, "Asha", "9812310001")
	consenting(t, c, "Ravi", "9812310002")
	k := campaignOf(t, c, `{"name":"Plain","type":"broadcast","templateId":%d,"audience":"all"}`, plain)
	asked := lists.Load()
	answer.Store(func(string) (int, string) { return 400, `{"error":{"message":"no","code":132015}}` })
	dispatch(c, k.ID).Status(202)
	held := awaited(t, c, k.ID, is("paused"))
	require.Equal(t, "The network has paused or disabled the template (132015)", *held.Reason)
	require.Equal(t, []any{messagingview.CampaignStats{Total: 2}, asked + 1}, []any{held.Stats, lists.Load()},
		"nobody is lost, and the templates are asked for again")

	answer.Store(func(to string) (int, string) {
		return 200, fmt.Sprintf(`{"contacts":[{"input":%q,"wa_id":%q}],"messages":[{"id":"wamid.%[1]s"}]}`, to, "91971"+to[5:])
	})
	dispatch(c, k.ID).Status(202)
	require.Equal(t, int64(2), awaited(t, c, k.ID, is("completed")).Stats.Sent)
	heard(t, o, k.ChannelID, "919712310002", "w1", time.Now())
	require.Len(t, people(t, c, ""), 2, "both spellings are one contact's")
}

func TestACampaignThatIsSentWhenItIsMade(t *testing.T) {
	t.Parallel()
	with := apptest.Settings(t, apptest.Database(t))
	with.Outside.CampaignAutosend = true
	o := apptest.StartAs(t, with)
	c := o.Bearer(o.Key(o.Home, `{"messaging":"write"}`).Key)
	plain := templatesOf(t, c, sandbox)["plain"]
	consenting(t, c, "Asha", "919811100001")
	again := c.With("Idempotency-Key", "made")
	body := fmt.Sprintf(`{"name":"Diwali","type":"broadcast","templateId":%d,"audience":"all"}`, plain)
	first := again.POST(campaigns, body).Status(201).Text
	require.Contains(t, first, `"status":"active"`)
	require.Equal(t, first, again.POST(campaigns, body).Status(201).Text, "the answer of the first request")
	var k messagingview.Campaign
	require.NoError(t, json.Unmarshal([]byte(first), &k))
	awaited(t, c, k.ID, func(k messagingview.Campaign) bool { return k.Status == "completed" && k.Stats.Sent == 1 })
	planned := campaignOf(t, c, `{"name":"Later","type":"broadcast","templateId":%d,"audience":"all","schedule":"scheduled",`+
		`"scheduledAt":"2199-01-01T00:00"}`, plain)
	require.Equal(t, "scheduled", planned.Status)
}

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
