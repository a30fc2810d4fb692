package console_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/app/apptest"
	views "bahi/readmodels/messaging"
)

// reader is a browser without scripts.
type reader struct {
	t    *testing.T
	base string
	http *http.Client
	page string
}

func (r *reader) answered(a *http.Response, err error) string {
	r.t.Helper()
	require.NoError(r.t, err)
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	require.NoError(r.t, err)
	r.page = string(text)
	return r.page
}

func (r *reader) open(path string) string {
	r.t.Helper()
	return r.answered(r.http.Get(r.base + path))
}

// hidden returns the value of a hidden field of the page.
func (r *reader) hidden(name string) string {
	r.t.Helper()
	found := regexp.MustCompile(`name="` + name + `" value="([^"]*)"`).FindStringSubmatch(r.page)
	require.NotNil(r.t, found, name)
	return found[1]
}

// send sends a form of the page: names and values in turn.
func (r *reader) send(path string, fields ...string) string {
	r.t.Helper()
	form := url.Values{"token": {r.hidden("token")}}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	return r.answered(r.http.PostForm(r.base+path, form))
}

func TestTheInboxWorksWithoutScripts(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	owner := o.Person(o.Address("owner"))
	var channel views.Channel
	owner.POST("/api/channels", `{"name":"Sales","type":"chat"}`).Status(201).JSON(&channel)
	var templates []views.Template
	owner.GET("/api/chat/templates?language=en").Status(200).JSON(&templates)
	arrives(t, o, channel.ID, "Is it ready?")
	var people []views.Contact
	owner.GET("/api/contacts").Status(200).JSON(&people)
	talk := fmt.Sprint("/inbox/contacts/", people[0].ID)

	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	r := &reader{t: t, base: o.URL, http: &http.Client{Jar: jar}}
	r.open(talk)
	require.Contains(t, r.send("/inbox/sign-in", "next", r.hidden("next"), "email", o.Address("owner"), "password", apptest.GoodPassword), "Is it ready?")
	require.Contains(t, r.page, "Look for new messages")
	require.NotContains(t, r.page, `http-equiv="refresh"`, "a reload would lose what is being written")
	once, of := r.hidden("once"), fmt.Sprint(channel.ID)
	require.Contains(t, r.send(talk+"/messages", "once", once, "channel", of, "text", "Yes, since noon."), "Yes, since noon.")
	require.Contains(t, r.send(talk+"/messages", "once", once, "channel", of, "text", "Yes, since noon."), "Sent.", "a form that is sent twice")
	r.send(talk+"/messages", "once", r.hidden("once"), "channel", of, "image", "https://cdn.example.org/a.jpg", "text", "This one")
	for _, m := range templates {
		if len(m.Parameters) == 2 {
			r.send(talk+"/messages", "once", r.hidden("once")+"-t", "channel", of, "template", fmt.Sprint(m.ID), "value-1", "A-204", "value-2", "{{name}}")
		}
	}
	var sent []views.Message
	owner.GET(fmt.Sprint("/api/contacts/", people[0].ID, "/messages")).Status(200).JSON(&sent)
	require.Len(t, sent, 4)
	require.Equal(t, []string{"Order A-204 is ready for Asha", "This one", "Yes, since noon."}, []string{*sent[0].Text, *sent[1].Text, *sent[2].Text})
	require.Equal(t, []string{"template", "image", "text"}, []string{sent[0].Type, sent[1].Type, sent[2].Type})

	require.Contains(t, r.send(talk+"/bot", "bot", "off"), "Let bots answer")
	require.Contains(t, r.send(talk+"/status", "status", "pending"), "The status was set.")
	require.Contains(t, r.open("/inbox/pending"), "Asha")
	require.Contains(t, r.open("/inbox/pending"), `http-equiv="refresh"`, "a list may be loaded again")
	r.open(talk)
	require.Contains(t, r.send(talk+"/status", "status", "closed"), "expected one of open, pending, resolved")
	r.open(talk)
	require.Contains(t, r.send(talk+"/messages", "once", r.hidden("once"), "channel", of, "text", " "), "expected one of text, imageUrl and templateId")
	var nobody views.Contact // whose phone a sandbox does not reach
	owner.POST("/api/contacts", `{"name":"Nobody","phone":"919812345000"}`).Status(201).JSON(&nobody)
	owner.POST(fmt.Sprint("/api/contacts/", nobody.ID, "/messages"), fmt.Sprintf(`{"channelId":%d,"templateId":%d,"templateParams":{"1":"A-204","2":"x"}}`, channel.ID, templates[0].ID))
	require.Contains(t, r.open(fmt.Sprint("/inbox/contacts/", nobody.ID)), "failed: the person cannot be reached")
	r.open(talk)
	require.Contains(t, r.send("/inbox/contacts/999999/messages", "once", r.hidden("once"), "channel", of, "text", "a"), "Contact not found")
	news, err := r.http.Get(o.URL + "/inbox/news")
	require.NoError(t, err)
	defer news.Body.Close()
	first, err := bufio.NewReader(news.Body).ReadString('}')
	require.NoError(t, err)
	require.Contains(t, first, `{"contacts":[]}`, "a page looks once when it is told of all that comes")
	var now []views.Message
	owner.GET(fmt.Sprint("/api/contacts/", people[0].ID, "/messages")).Status(200).JSON(&now)
	require.Len(t, now, len(sent))
}

func TestALongConversationIsReadToItsBeginning(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	owner := o.Person(o.Address("owner"))
	var channel views.Channel
	owner.POST("/api/channels", `{"name":"Sales","type":"chat"}`).Status(201).JSON(&channel)
	for i := range 61 {
		arrives(t, o, channel.ID, fmt.Sprintf("No. %02d.", i))
	}
	var people []views.Contact
	owner.GET("/api/contacts").Status(200).JSON(&people)
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	r := &reader{t: t, base: o.URL, http: &http.Client{Jar: jar}}
	r.open(fmt.Sprint("/inbox/contacts/", people[0].ID))
	r.send("/inbox/sign-in", "next", r.hidden("next"), "email", o.Address("owner"), "password", apptest.GoodPassword)
	said, earlier := regexp.MustCompile(`No\. \d\d\.`), regexp.MustCompile(`rel="prev" href="([^"]*)"`)
	var all []string
	for {
		all = append(said.FindAllString(r.page, -1), all...)
		link := earlier.FindStringSubmatch(r.page)
		if link == nil {
			break
		}
		require.NotContains(t, r.open(link[1]), "data-news", "what is past does not change under the eyes")
	}
	require.Len(t, all, 61)
	require.IsIncreasing(t, all)
	require.Contains(t, r.page, "Newest messages")
}
