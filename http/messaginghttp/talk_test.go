package messaginghttp_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/commands/messagingcmd"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/readmodels/messagingview"
)

func TestAMessageGoesOverAChannelOfAnyType(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c, stranger := agent(o, o.Home), agent(o, o.Abroad)
	sales, mail := channelOf(t, c, `{"name":"Sales","type":"chat"}`), channelOf(t, c, `{"name":"Mail","type":"gmail","accessToken":"t"}`)
	bot, page := channelOf(t, c, `{"name":"Bot","type":"telegram","apiKey":"19:k"}`), channelOf(t, c, `{"name":"Page","type":"web"}`)
	require.NotEmpty(t, *page.Key)
	require.Nil(t, sales.Key)
	id, of, err := o.Sys.Messaging.ChannelKeyed(t.Context(), *page.Key)
	require.NoError(t, err)
	require.Equal(t, []any{page.ID, o.Home}, []any{id, of.String()})
	asha := made(t, c, `{"name":"Asha","phone":"919812345601","email":"asha@example.org"}`)
	sender := messagingcmd.Sender{UserID: "77", Name: "Meera", Social: true}
	o.Receives(messagingcmd.InboundMessage{Sender: sender, Channel: bot.ID, Text: "Hi"})
	meera := appears(t, c, "Meera")
	send := at(asha.ID) + "/messages"
	all := apitest.Read[[]messagingview.Template](c.GET(templates + "?language=en").Status(200))
	ready := all[slices.IndexFunc(all, func(k messagingview.Template) bool { return k.Name == "order_ready" })].ID

	body := fmt.Sprintf(`{"channelId":%d,"templateId":%d,"templateParams":{"1":"A-204","2":"{{name}}"}}`, sales.ID, ready)
	sent := apitest.Read[messagingview.Message](c.POST(send, body).Status(201))
	require.Equal(t, []string{"out", "template", "Order A-204 is ready for Asha"}, []string{sent.Direction, sent.Type, *sent.Text},
		"a template needs no window")
	require.Contains(t, c.POST(send, fmt.Sprintf(`{"channelId":%d,"text":"Hello"}`, sales.ID)).Status(409).Text, "reply_window_closed")
	c.POST(send, fmt.Sprintf(`{"channelId":%d,"imageUrl":"https://cdn.example.org/a.jpg","caption":"This"}`, mail.ID)).Status(201)
	c.POST(at(meera.ID)+"/messages", fmt.Sprintf(`{"channelId":%d,"text":"Namaste"}`, bot.ID)).Status(201)
	untilRead(t, c, asha.ID, 2)
	untilRead(t, c, meera.ID, 1)

	before := c.GET(send).Status(200).Text
	for body, wrong := range map[string][2]string{
		`{"channelId":%d}`:                          {"text", "expected one of text, imageUrl and templateId"},
		`{"channelId":%d,"text":"a","caption":"b"}`: {"caption", "allowed only with an image"},
		`{"channelId":%d,"templateId":999999}`:      {"templateId", "Template not found"},
	} {
		c.POST(send, fmt.Sprintf(body, sales.ID)).Problem(422, "Validation error", wrong[0], wrong[1])
	}
	for body, wrong := range map[string][2]string{
		`{"channelId":%d,"templateId":"x"}`: {"templateId", "expected a whole number"},
		`{"channelId":%d,"imageUrl":5}`:     {"imageUrl", "expected a text"},
		`{"channelId":%d,"text":5}`:         {"text", "expected a text"},
	} {
		c.POST(send, fmt.Sprintf(body, sales.ID)).Problem(422, "Validation error", wrong[0], wrong[1])
	}
	c.POST(send, `{"channelId":"x"}`).Problem(422, "Validation error", "channelId", "expected a whole number",
		"text", "expected one of text, imageUrl and templateId")
	c.POST(send, fmt.Sprintf(`{"channelId":%d,"templateId":%d}`, sales.ID, ready)).Problem(422, "Validation error", "templateParams.1",
		"must be filled", "templateParams.2", "must be filled")
	theirs := channelOf(t, stranger, `{"name":"Theirs","type":"chat"}`)
	c.POST(send, fmt.Sprintf(`{"channelId":%d,"text":"a","templateParams":{"1":"b"}}`, sales.ID)).Problem(422, "Validation error",
		"templateParams", "allowed only with a template")
	c.POST(send, fmt.Sprintf(`{"channelId":%d,"templateId":%d,"templateParams":{"1":"a\nb","2":"{{email}}","3":"c","header":" "}}`,
		theirs.ID, ready)).Problem(422, "Validation error",
		"templateParams.1", "must have no line break, no tab and at most three blanks in a row",
		"templateParams.2", "may have {{name}} and {{phone}}, but no other braces",
		"templateParams.3", "the template has no such placeholder", "templateParams.header", "the template has no such placeholder",
		"channelId", "Channel not found")
	c.POST(send, fmt.Sprintf(`{"channelId":"x","templateId":%d,"templateParams":{"1":"a","2":5,"3":"c"}}`, ready)).
		Problem(422, "Validation error", "channelId", "expected a whole number", "templateParams.2", "expected a text",
			"templateParams.3", "the template has no such placeholder")
	c.POST(send, fmt.Sprintf(`{"channelId":%d,"imageUrl":"a.jpg","caption":%q}`, page.ID, strings.Repeat("क", 1025))).
		Problem(422, "Validation error", "caption", "at most 1024 characters",
			"imageUrl", "expected an address like https://cdn.example.org/a.jpg",
			"channelId", "The channel does not reach the contact")
	c.POST(send, fmt.Sprintf(`{"channelId":%d,"templateId":%d}`, page.ID, ready)).Problem(422, "Validation error",
		"templateId", "Template not found", "channelId", "The channel does not reach the contact")
	c.POST(send, fmt.Sprintf(`{"channelId":%d,"text":"a"}`, page.ID)).Problem(422, "Validation error", "channelId",
		"The channel does not reach the contact")
	c.POST(send, fmt.Sprintf(`{"channelId":%d,"text":"a"}`, theirs.ID)).Problem(422, "Validation error", "channelId", "Channel not found")
	require.Equal(t, before, c.GET(send).Status(200).Text)
}

func TestAConversationIsReadUpToAMessage(t *testing.T) {
	t.Parallel()
	o, c, sales := openSales(t)
	empty := made(t, c, `{"name":"Nobody"}`)
	now := time.Now()
	for i := range 3 {
		heard(t, o, sales.ID, "919812345602", fmt.Sprint("r", i), now.Add(time.Duration(i-5)*time.Second))
	}
	heard(t, o, sales.ID, "919812345603", "r9", now)
	asha := appears(t, c, "919812345602")
	require.Equal(t, int64(3), asha.Unread)
	require.WithinDuration(t, now.Add(-3*time.Second), *asha.LastMessageAt, time.Millisecond)
	recent := people(t, c, "?sort=recent&limit=3")
	require.Equal(t, []string{"919812345603", "919812345602"}, []string{*recent[0].Phone, *recent[1].Phone})
	require.Equal(t, empty.ID, recent[2].ID)
	silent := made(t, c, `{"name":"Nobody else"}`) // newer than the other silent contact
	for page, first := range []int64{recent[0].ID, recent[1].ID, silent.ID, empty.ID} {
		require.Equal(t, first, people(t, c, fmt.Sprintf("?sort=recent&limit=1&page=%d", page+1))[0].ID, "page %d", page+1)
	}
	require.Equal(t, []int64{silent.ID, empty.ID},
		[]int64{people(t, c, "?sort=recent&limit=3")[2].ID, people(t, c, "?sort=recent&limit=3&page=2")[0].ID})
	require.Empty(t, people(t, c, "?sort=recent&limit=2&page=3"))
	unread := func(query string) (phones []string) {
		a := c.GET(contacts + "?unread=true" + query).Status(200)
		found := apitest.Read[[]messagingview.Contact](a)
		for _, one := range found {
			phones = append(phones, *one.Phone)
		}
		return append(phones, a.Header("X-Total-Count"))
	}
	require.Equal(t, []string{"919812345603", "919812345602", "2"}, unread("&sort=recent"))
	require.Equal(t, []string{"919812345602", "2"}, unread("&sort=recent&limit=1&page=2"))
	require.Equal(t, []string{"919812345602", "1"}, unread("&search=602"))
	require.Equal(t, []string{"0"}, unread("&sort=recent&status=resolved"))
	talk := conversation(t, c, asha.ID, "")
	read := at(asha.ID) + "/read"
	c.POST(read, fmt.Sprintf(`{"messageId":%q}`, talk[1].ID)).Status(200).Body(`{"unread":1}`)
	c.POST(read, fmt.Sprintf(`{"messageId":%q}`, talk[2].ID)).Status(200).Body(`{"unread":1}`)
	heard(t, o, sales.ID, "919812345602", "late", now.Add(-time.Hour))
	require.Equal(t, int64(1), appears(t, c, "919812345602").Unread, "a late message was read")
	c.POST(read, `{}`).Status(200).Body(`{"unread":0}`)
	require.Equal(t, []string{"919812345603", "1"}, unread(""))
	c.POST(at(empty.ID)+"/read", `{}`).Status(200).Body(`{"unread":0}`)
	c.POST(at(empty.ID)+"/read", fmt.Sprintf(`{"messageId":%q}`, talk[1].ID)).Problem(422, "Validation error", "messageId",
		"Message not found")
	c.POST(read, `{"messageId":"7"}`).Problem(422, "Validation error", "messageId", "expected the id of a message, as in msg_8121")
	require.Equal(t, int64(0), people(t, c, "?search=919812345602")[0].Unread)
}

func TestMessagesAreFollowedLive(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c, stranger := agent(o, o.Home), agent(o, o.Abroad)
	sales, theirs := channelOf(t, c, `{"name":"Sales","type":"chat"}`), channelOf(t, stranger, `{"name":"Theirs","type":"chat"}`)
	type told struct {
		messagingview.Message

		ContactID int64 `json:"contactId"`
	}
	first, second := c.Stream("/api/messages/stream"), c.Stream("/api/messages/stream")
	heard(t, o, theirs.ID, "919812345604", "l0", time.Now())
	heard(t, o, sales.ID, "919812345604", "l1", time.Now())
	var m told
	name, id := first.Next(&m)
	require.Equal(t, []string{"message", "in", "Is it ready?"}, []string{name, m.Direction, *m.Text})
	require.Equal(t, appears(t, c, "919812345604").ID, m.ContactID)
	again, same := second.Next(&m)
	require.Equal(t, []string{name, id}, []string{again, same})
	c.POST("/api/chat/send", text("919812345604", sales.ID)).Status(200)
	var last, status string
	for range 4 { // queued, sent, delivered, read: one event may report several of them
		if name, last = first.Next(&m); m.Status == "read" {
			break
		}
		status = name
	}
	require.Equal(t, []string{"out", "read"}, []string{m.Direction, m.Status})
	require.NotEmpty(t, status+name)
	resumed := c.With("Last-Event-ID", id).Stream("/api/messages/stream")
	_, at := resumed.Next(&m)
	require.Equal(t, []string{last, "read"}, []string{at, m.Status}, "who comes again gets what was missed, once")
	c.With("Last-Event-ID", "x").GET("/api/messages/stream").Problem(422, "Validation error", "Last-Event-ID", "expected the id of an event")
	c.With("Last-Event-ID", "4611686018427387904").GET("/api/messages/stream").Problem(422, "The log does not reach that position yet")
}
