package pages_test

import (
	"fmt"
	"image/color"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"bahi/commands/messagingcmd"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/readmodels/messagingview"
)

const messages = `{"messaging":"write"}`

// arrives plays a message of a person. It returns the address of the conversation.
func arrives(o *apptest.Server, c *apitest.Client, channel int64, phone, name, text string, ago time.Duration) string {
	o.T.Helper()
	o.Receives(messagingcmd.InboundMessage{Channel: channel, Sender: messagingcmd.Sender{From: phone, Name: name}, Text: text,
		SentAt: time.Now().Add(-ago)})
	found := apitest.Read[[]messagingview.Contact](c.GET("/api/contacts?search=" + phone).Status(200))
	require.Len(o.T, found, 1)
	return fmt.Sprint("/app/inbox/", found[0].ID)
}

func channelOf(c *apitest.Client, name string) int64 {
	made := apitest.Read[messagingview.Channel](c.POST("/api/channels", fmt.Sprintf(`{"name":%q,"type":"chat"}`, name)).Status(201))
	return made.ID
}

func contactOf(c *apitest.Client, talk string) messagingview.Contact {
	return apitest.Read[messagingview.Contact](c.GET("/api/contacts/" + strings.TrimPrefix(talk, "/app/inbox/")).Status(200))
}

func TestInboxAnswersContacts(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c, b := o.Bearer(o.Key(o.Home, messages).Key), byKey(o, o.Home, messages)
	b.get("/app/inbox").Is(200).Says("Nobody is here.")
	sales := channelOf(c, "Sales")
	old := arrives(o, c, sales, "919812345001", "Ravi", "Hello?", 30*time.Hour)
	talk := arrives(o, c, sales, "919812345002", "Asha", "Is A-204 <b>ready</b>?", 0)

	list := b.get("/app/inbox").Is(200).Says("Asha", "Ravi", "1 new", "Still open")
	require.Less(t, strings.Index(list.Text, "Asha"), strings.Index(list.Text, "Ravi"), "the newest message comes first")
	require.NotContains(t, b.get("/app/inbox?q=asha").Is(200).Words(), "Ravi")
	b.get("/app/inbox?status=resolved").Is(200).Says("Nobody is here.")
	shown := b.get(talk+"?q=asha").Is(200).Says("Is A-204 <b>ready</b>?", "+91 98123 45002", "Does not agree to messages", "The whole record")
	require.NotContains(t, shown.Text, "<b>ready")
	require.EqualValues(t, 1, contactOf(c, talk).Unread, "reading a page changes nothing")
	b.follow(b.submitOf(talk, talk, `value="marked"`)).Says("Marked as read.")
	require.EqualValues(t, 0, contactOf(c, talk).Unread)

	sent := b.submit(talk+"?q=asha", talk+"/messages", "text", "Yes,\nsince noon.")
	require.Contains(t, sent.Header.Get("Location"), "q=asha", "the list stays as narrow as it was")
	b.follow(sent).Says("Sent.", "Yes, since noon.", "API key")
	twice := with(form(b.get(talk), talk+"/messages", ""), "text", "Only once")
	b.site.Ask(http.MethodPost, talk+"/messages", twice).Is(303)
	b.site.Ask(http.MethodPost, talk+"/messages", twice).Is(303)
	require.Equal(t, 1, strings.Count(b.get(talk).Text, "Only once"))
	b.submit(talk, talk+"/messages", "text", " ").Is(422).Says("Write a message first.")
	require.NotContains(t, b.submit(talk, talk+"/messages").Words(), "alidation")
	wrong := b.submit(talk, talk+"/messages", "text", "Below it", "imageUrl", "a.jpg").Is(422).Says("expected an address", "Below it")
	require.Contains(t, wrong.Text, `f-imageUrl-error"`)
	b.follow(b.submit(talk, talk+"/messages", "text", "Below it", "imageUrl", "https://cdn.example.org/a.jpg")).Says("Sent.", "Image")
	b.follow(b.submit(talk, talk+"/messages", "imageUrl", o.Sys.Settings.Outside.PublicURL+"/blobs/a.jpg"))
	require.Contains(t, b.get(talk).Text, `<img src="/blobs/a.jpg"`, "a file of ours is shown, whatever the address of the site")

	templates := apitest.Read[[]messagingview.Template](c.GET("/api/chat/templates").Status(200))
	closed := b.submit(old, old+"/messages", "text", "Are you there?").Is(409).Says("has not written in the last 24 hours", "Are you there?")
	require.Contains(t, closed.Text, `<details id="templates" open>`)
	ready := templates[0]
	for _, m := range templates {
		if len(m.Parameters) == 2 {
			ready = m
		}
	}
	b.get(old).Is(200).Says(ready.Name+" ("+ready.Language+")", "Header document")
	has, value := fmt.Sprintf(`name="template" value="%d"`, ready.ID), "templateParams."
	b.submitOf(old, old+"/messages", has, value+"1", "A-204").Is(422).Says("must be filled")
	b.follow(b.submitOf(old, old+"/messages", has, value+"1", "A-204", value+"2", "{{name}}")).Says("Sent.", "A-204", "Ravi")

	// Resolve opens the next unread conversation.
	resolve := func(talk string) string {
		next, _, _ := strings.Cut(b.submitOf(talk, talk, `value="resolved"`, "do", "resolved").Is(303).Header.Get("Location"), "?")
		return next
	}
	require.Equal(t, old, resolve(talk))
	require.Equal(t, "/app/inbox", resolve(old))
	require.Equal(t, "resolved", contactOf(c, talk).Status)
	b.follow(b.submitOf(talk, talk, `value="reopened"`, "do", "reopened")).Says("The conversation is open again.")
	b.follow(b.submitOf(talk, talk, `value="bot-off"`, "do", "bot-off")).Says("The bot does not answer here any more.", "Let the bot answer")
	b.follow(b.submitOf(talk, talk, `value="bot-on"`, "do", "bot-on")).Says("The bot may answer here.", "Stop the bot")
}

func TestTheInboxShowsTheContact(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c, b := o.Bearer(o.Key(o.Home, messages).Key), byKey(o, o.Home, messages)
	talk := arrives(o, c, channelOf(c, "Sales"), "919812345003", "Asha", "Hello", 0)
	list := apitest.Read[messagingview.ContactList](c.POST("/api/contact-lists", `{"name":"Diwali"}`).Status(201))
	details := []string{"name", "Asha Rao", "phone", "919812345003", "email", "asha@example.org", "status", "pending", "optIn", "true"}
	record := "/app/list/contacts/" + strings.TrimPrefix(talk, "/app/inbox/")
	require.Contains(t, b.get(talk).Text, `href="`+record+`"`)
	b.follow(b.submitOf(record, record, `value="edit-messaging-contact"`,
		append(details, "optInEvidence", "a form", "listIds", fmt.Sprint(list.ID))...))
	b.get(talk).Says("Asha Rao", "asha@example.org", "Agrees to messages", "a form", "Pending", "Diwali")
	require.Equal(t, []int64{list.ID}, contactOf(c, talk).ListIDs)
}

func TestInboxReadsALongConversation(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c, b := o.Bearer(o.Key(o.Home, messages).Key), byKey(o, o.Home, messages)
	sales, talk := channelOf(c, "Sales"), ""
	for i := range 61 {
		talk = arrives(o, c, sales, "919812345005", "Asha", fmt.Sprintf("No. %02d.", i), time.Hour-time.Duration(i)*time.Second)
	}
	number, earlier := regexp.MustCompile(`No\. \d\d\.`), regexp.MustCompile(`rel="prev" href="([^"]*)"`)
	var all []string
	shown := b.get(talk).Is(200)
	for {
		all = append(number.FindAllString(shown.Text, -1), all...)
		link := earlier.FindStringSubmatch(shown.Text)
		if link == nil {
			break
		}
		shown = b.get(link[1]).Is(200).Says("Newest messages")
		require.NotContains(t, shown.Text, `id="write"`)
	}
	require.Len(t, all, 61)
	require.IsIncreasing(t, all)
}

var shownPicture = regexp.MustCompile(`<img src="(/blobs/[^"]+)"`)

func TestInboxSendsPictures(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c, v := o.Bearer(o.Key(o.Home, messages).Key), o.Visitor()
	b := browser{t, v}
	b.submit("/app/sign-in", "/app/sign-in", "key", o.Key(o.Home, messages).Key).Leads("/app/")
	talk := arrives(o, c, channelOf(c, "Sales"), "919812345002", "Asha", "Is A-204 ready?", 0)
	picture := string(apptest.Painted(t, color.White, 8, 8))
	draw := func(pairs ...string) url.Values {
		values := form(b.get(talk).Is(200).Says("Picture"), talk+"/messages", "")
		values = with(values, pairs...)
		return values
	}

	send := func(values url.Values, content string) apptest.Page {
		return upload(t, v.HTTP, o.URL+talk+"/messages", values, "a.png", content)
	}
	for _, c := range []struct {
		values         url.Values
		content, fault string
	}{
		{draw("text", "Here it is"), "%PDF", `id="f-file-error">This is no picture.`},
		{draw("text", "Here it is"), strings.Repeat("a", 16<<20+1), `id="f-file-error">The picture is too large`},
		{draw("text", "Here it is"+strings.Repeat("a", 1020)), picture, `id="f-text-error">at most 1024 characters`},
		{draw("text", "Here it is", "imageUrl", "https://cdn.example.org/a.jpg"), picture, `id="f-file-error">Choose one picture.`},
	} {
		refused := send(c.values, c.content)
		require.Contains(t, refused.Text, c.fault)
		require.Contains(t, refused.Text, "Here it is", "what was written stays")
	}
	require.NotContains(t, b.get(talk).Text, "<img")

	twice := draw("text", "Here it is")
	for range 2 {
		require.Contains(t, send(twice, picture).Header.Get("Location"), "done=answered")
	}
	page := b.get(talk).Is(200).Says("Here it is")
	found := shownPicture.FindAllStringSubmatch(page.Text, -1)
	require.Len(t, found, 1)
	require.Equal(t, "image/jpeg", b.get(strings.ReplaceAll(found[0][1], "&amp;", "&")).Is(200).Header.Get("Content-Type"))

	reader := byKey(o, o.Home, `{"messaging":"read"}`)
	require.NotContains(t, reader.get(talk).Is(200).Says("Here it is").Text, `type="file"`)
	abroad := byKey(o, o.Abroad, messages)
	abroad.get(talk).Is(404)
}

const inTalk = `location.pathname.startsWith("/app/inbox/") && document.activeElement.id === "f-text"`

// TestContactsAreAnsweredByTheKeyboard is the sixth flow of PAGES.md.
func TestContactsAreAnsweredByTheKeyboard(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c := o.Bearer(o.Key(o.Home, messages).Key)
	sales := channelOf(c, "Sales")
	ravi := arrives(o, c, sales, "919812345001", "Ravi", "When do you open?", time.Hour)
	asha := arrives(o, c, sales, "919812345002", "Asha", "Is A-204 ready?", 0)
	p := enter(o, answering)
	p.Look(1280, 800, false)
	p.Go("/app/inbox")
	p.Keys(kb.ArrowDown)
	p.Until(`document.activeElement.innerText === "Asha"`)
	p.Enter()
	p.Until(inTalk)
	require.Equal(t, asha, p.URL())
	p.Until(`!document.getElementById("read") && !document.querySelector(".here .unread")`) // it was seen
	require.EqualValues(t, 0, contactOf(c, asha).Unread)
	p.Write("Yes")
	arrives(o, c, sales, "919812345002", "Asha", "Hello?", 0)
	p.Until(`document.querySelectorAll(".said .in").length === 2 && !document.getElementById("read")`)
	p.Write(".")
	p.PressCtrl(kb.Enter)
	require.Contains(t, p.Text("main"), "Sent.")
	require.Equal(t, "Yes.", p.Text(".said .out .text"))
	p.Until(inTalk)
	p.PressAlt("r")
	tookKeys(t, p, "answer")
	require.Contains(t, p.URL(), ravi)
	require.Contains(t, p.Text("main"), "The conversation is resolved.")
	p.Until(inTalk)
	p.PressCtrl(kb.Enter)
	require.Equal(t, "Write a message first.", p.Text("#f-text-error"))
	p.Keys(kb.Escape)
	p.Until(`document.activeElement.matches("a[aria-current]") && document.activeElement.innerText === "Ravi"`)
	p.PressAlt("r")
	require.Contains(t, p.URL(), "/app/inbox?")

	// On a phone, by touch.
	p.Look(360, 740, false)
	ravi = arrives(o, c, sales, "919812345001", "Ravi", "And on Sunday?", 0)
	p.Go("/app/inbox")
	p.Submit(".persons a")
	require.Equal(t, ravi, p.URL())
	p.Type("#f-text", "No, on Monday.")
	p.Submit("#write .primary")
	require.Contains(t, p.Texts(".said .out .text"), "No, on Monday.")
	p.Submit("#resolve")
	require.Equal(t, "resolved", contactOf(c, ravi).Status)
}

// TestAnEnquiryIsAnsweredByTheKeyboard is the second part of the sixth flow.
func TestAnEnquiryIsAnsweredByTheKeyboard(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c := o.Bearer(o.Key(o.Home, answering).Key)
	talk := arrives(o, c, channelOf(c, "Sales"), "919812345002", "Asha", "Hello", 0)
	first, company := asked(o, c, `,"message":"How many?","user_phone":"+919812345002"`)
	p := enter(o, answering)
	p.Look(1280, 800, false)
	p.Go("/app/enquiries")
	second := askedOf(o, company, "")
	p.Until(`document.querySelectorAll(".rows tbody tr").length === 2`) // without a reload
	p.Keys(kb.ArrowDown, kb.ArrowDown)
	p.Enter()
	require.Equal(t, first, p.URL())
	p.TabTo("form:has([value=chat]) button")
	p.Enter()
	require.Contains(t, p.URL(), talk)
	p.Until(inTalk + ` && document.activeElement.value.includes("> How many?")`)
	p.Keys("3")
	p.PressCtrl(kb.Enter)
	require.Contains(t, p.Text(".said .out .text"), "How many?")
	p.Go(first)
	require.Contains(t, p.Text(".pairs"), "Contacted")
	p.Go(second)
	p.Submit(`#acts a[href^="mailto:"]`)
	require.Contains(t, p.Text(".pairs"), "Contacted")
}
