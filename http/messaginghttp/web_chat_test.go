package messaginghttp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/internal/test/browsertest"
	"bahi/internal/test/worktest"
	"bahi/readmodels/messagingview"
)

const shopPage = "https://shop.example.org"

// visitorMessage is a message as a visitor receives it.
type visitorMessage struct {
	ID, Direction, Type, Text, By string

	MediaURL *string
	At       time.Time
}

// timeless is a message without its time.
func (m visitorMessage) timeless() []string { return []string{m.Direction, m.Type, m.Text, m.By} }

// widgetOf creates a web channel, and returns it, a visitor's client, and the path.
func widgetOf(t *testing.T, o *apptest.Server, c *apitest.Client, name string) (of messagingview.Channel, path string,
	visitor *apitest.Client) {
	t.Helper()
	of = channelOf(t, c, fmt.Sprintf(`{"name":%q,"type":"web","settings":{"allowedOrigins":[%q,"https://Other.example.org:443"]}}`,
		name, shopPage))
	path = "/api/web-chat/" + *of.Key
	return of, path, begun(t, o, path)
}

// begun is a new visitor.
func begun(t *testing.T, o *apptest.Server, path string) *apitest.Client {
	t.Helper()
	var session struct{ Token string }
	c := apitest.New(t, o.URL, "").With("Origin", shopPage)
	c.POST(path+"/sessions", nil).Status(201).JSON(&session)
	return c.With("Authorization", "Bearer "+session.Token)
}

func TestAVisitorTalksToTheWorkspaceOfThePage(t *testing.T) {
	t.Parallel()
	o, c := openShared(t)
	of, path, visitor := widgetOf(t, o, c, "Page")
	early := visitor.Stream(path + "/stream") // before the visitor has a session
	var m, same visitorMessage
	a := visitor.With("Idempotency-Key", "k1").POST(path+"/messages", `{"text":" Do you make payal? "}`).Status(201).JSON(&m)
	require.Equal(t, []string{"in", "text", "Do you make payal?", "visitor"}, m.timeless())
	require.WithinDuration(t, time.Now(), m.At, time.Minute)
	require.Equal(t, shopPage, a.Header("Access-Control-Allow-Origin"))
	repeated := visitor.With("Idempotency-Key", "k1").POST(path+"/messages", `{"text":" Do you make payal? "}`).Status(201).JSON(&same)
	require.Equal(t, []any{m.ID, m.At, "true"}, []any{same.ID, same.At, repeated.Header("Idempotency-Replayed")})
	visitor.With("Idempotency-Key", "k1").POST(path+"/messages", `{"text":"Another"}`).Problem(422,
		"Idempotency-Key was used with another request")

	all := apitest.Read[[]messagingview.Contact](c.GET(contacts + "?search=visitor").Status(200))
	require.Len(t, all, 1)
	require.Equal(t, []any{"chat", int64(1), (*string)(nil)}, []any{all[0].Source, all[0].Unread, all[0].Phone})
	name, first := early.Next(&same)
	require.Equal(t, []any{"message", m.ID, m.timeless()}, []any{name, same.ID, same.timeless()})
	send := at(all[0].ID) + "/messages"
	c.POST(send, fmt.Sprintf(`{"channelId":%d,"text":"Yes, in silver."}`, of.ID)).Status(201)
	for same.ID == m.ID { // the first one comes twice if it is written while the stream begins
		early.Next(&same)
	}
	require.Equal(t, []string{"out", "text", "Yes, in silver.", "person"}, same.timeless(), "who of the company's people wrote is not told")
	c.POST(send, fmt.Sprintf(`{"channelId":%d,"imageUrl":"https://cdn.example.org/a.jpg","caption":"This"}`, of.ID)).Status(201)

	// Another visitor has another conversation. A reloaded page has the whole conversation, and a reconnected page the missed messages.
	other := begun(t, o, path)
	other.POST(path+"/messages", `{"text":"I am another"}`).Status(201)
	reloaded, resumed := visitor.Stream(path+"/stream"), visitor.With("Last-Event-ID", first).Stream(path+"/stream")
	var texts []string
	for range 3 {
		reloaded.Next(&same)
		texts = append(texts, same.Text)
	}
	require.Equal(t, []string{"Do you make payal?", "Yes, in silver.", "This"}, texts)
	_, last := resumed.Next(&same)
	require.Equal(t, []string{"Yes, in silver.", ""}, []string{same.Text, last}, "a place that lost the rest would be none")
	_, last = resumed.Next(&same)
	require.Equal(t, "This", same.Text)
	require.NotEmpty(t, last)
	visitor.With("Last-Event-ID", "x").GET(path+"/stream").Problem(422, "Validation error", "Last-Event-ID", "expected the id of an event")

	// Users' actions on a conversation apply to a visitor's conversation, too.
	c.PATCH(at(all[0].ID), `{"status":"resolved"}`).Status(200)
	visitor.POST(path+"/messages", `{"text":"One more thing"}`).Status(201)
	again := apitest.Read[messagingview.Contact](c.GET(at(all[0].ID)).Status(200))
	require.Equal(t, "open", again.Status)
}

func TestABotAnswersAVisitor(t *testing.T) {
	t.Parallel()
	o, c := openShared(t)
	of, path, visitor := widgetOf(t, o, c, "Page")
	taught(t, c, botOf(t, c, fmt.Sprintf(`,"channelIds":[%d]`, of.ID)), "We are open on Sunday from 11 to 4.")
	stream := visitor.Stream(path + "/stream")
	visitor.POST(path+"/messages", `{"text":"Are you open on Sunday?"}`).Status(201)
	var m visitorMessage
	for m.Direction != "out" {
		stream.Next(&m)
	}
	require.Equal(t, "bot", m.By)
	require.Contains(t, m.Text, "We are open on Sunday from 11 to 4.")
}

func TestAWidgetAnswersAllowedPagesAlone(t *testing.T) {
	t.Parallel()
	o, c := openShared(t)
	of, path, visitor := widgetOf(t, o, c, "Page")
	head := o.Head()
	preflight := visitor.With("Authorization", "", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers",
		"authorization,content-type,idempotency-key,last-event-id")
	ask := preflight.Do("OPTIONS", path+"/messages", nil).Status(204)
	require.Equal(t, []string{shopPage, "authorization,content-type,idempotency-key,last-event-id"},
		[]string{ask.Header("Access-Control-Allow-Origin"), ask.Header("Access-Control-Allow-Headers")})
	for _, origin := range []string{"", "null", "https://evil.example.org", shopPage + ".evil.org", "http://shop.example.org",
		strings.ToUpper(shopPage)} {
		foreign := visitor.With("Origin", origin)
		require.Empty(t, preflight.With("Origin", origin).Do("OPTIONS", path+"/messages", nil).Header("Access-Control-Allow-Origin"), origin)
		foreign.POST(path+"/sessions", nil).Problem(403, "The page may not show this chat")
		foreign.POST(path+"/messages", `{"text":"a"}`).Problem(403, "The page may not show this chat")
		foreign.GET(path+"/stream").Problem(403, "The page may not show this chat")
	}
	visitor.With("Origin", "https://other.example.org").POST(path+"/sessions", nil).Status(201)
	nowhere := "/api/web-chat/nowhere"
	visitor.POST(nowhere+"/sessions", nil).Problem(404, "Channel not found")
	visitor.POST(nowhere+"/messages", `{"text":"a"}`).Problem(404, "Channel not found")
	_, elsewhere, _ := widgetOf(t, o, agent(o, o.Abroad), "Abroad")
	for _, token := range []string{"", "Bearer ", "Bearer x", "Bearer " + apptest.OperatorKey} {
		visitor.With("Authorization", token).POST(path+"/messages", `{"text":"a"}`).Problem(401, "The session is unknown or has expired")
	}
	visitor.POST(elsewhere+"/messages", `{"text":"a"}`).Problem(401, "The session is unknown or has expired")
	visitor.GET(elsewhere+"/stream").Problem(401, "The session is unknown or has expired")

	for e := range o.Events(head) {
		require.NotContains(t, string(e.Data), fmt.Sprintf(`"channel":%d,`, of.ID), "a refused call changes nothing")
	}

	// A stream ends with the channel, or when the page loses its permission.
	stream := visitor.Stream(path + "/stream")
	c.PATCH(fmt.Sprint("/api/channels/", of.ID), `{"settings":{"allowedOrigins":["https://new.example.org"]}}`).Status(200)
	var none visitorMessage
	name, _ := stream.Next(&none)
	require.Empty(t, name)
	visitor.With("Origin", "https://new.example.org").POST(path+"/sessions", nil).Status(201)
	c.DELETE(fmt.Sprint("/api/channels/", of.ID)).Status(204)
	visitor.With("Origin", "https://new.example.org").POST(nowhere+"/sessions", nil).Problem(404, "Channel not found")
}

func TestTheWidgetIsSmallAndKept(t *testing.T) {
	t.Parallel()
	c := apptest.Share(t).Anonymous().With("Origin", "https://anywhere.example.org")
	a := c.GET("/widget.js").Status(200)
	require.Less(t, len(a.Text), 20_000)
	require.Equal(t, []string{"text/javascript; charset=utf-8", "*"},
		[]string{a.Header("Content-Type"), a.Header("Access-Control-Allow-Origin")})
	require.NotContains(t, a.Text, "eval(")
	require.NotContains(t, a.Text, "innerHTML")
	c.With("If-None-Match", a.Header("ETag")).GET("/widget.js").Status(304)
}

func TestVisitorsAreLimitedByAddress(t *testing.T) {
	t.Parallel()
	o := apptest.StartLimited(t)
	_, path, visitor := widgetOf(t, o, agent(o, apptest.Home), "Page")
	near, far := apptest.From(visitor, "203.0.113.7"), apptest.From(visitor, "203.0.113.8")
	for range 20 {
		near.POST(path+"/sessions", nil).Status(201)
	}
	a := near.POST(path+"/sessions", nil).Problem(429, "Too many requests")
	require.NotEmpty(t, a.Header("Retry-After"))
	require.Equal(t, shopPage, a.Header("Access-Control-Allow-Origin"), "the page may say why")
	far.POST(path+"/sessions", nil).Status(201)
	for range 20 { // a visitor's own limit goes with the visitor
		apptest.From(visitor, "203.0.113.9").POST(path+"/messages", `{"text":"a"}`).Status(201)
	}
	apptest.From(visitor, "203.0.113.10").POST(path+"/messages", `{"text":"a"}`).Problem(429, "Too many requests")
}

// line is the connection from browsers to the server, which tests can cut.
type line struct {
	*httptest.Server

	down atomic.Bool
}

func lineTo(t *testing.T, server string) *line {
	t.Helper()
	to, err := url.Parse(server)
	require.NoError(t, err)
	l := &line{}
	through := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l.down.Load() {
			panic(http.ErrAbortHandler)
		}
		through.ServeHTTP(w, r)
	}))
	t.Cleanup(l.Close)
	t.Cleanup(l.CloseClientConnections)
	return l
}

// cut closes all connections, and each new connection at once.
func (l *line) cut() {
	l.down.Store(true)
	l.CloseClientConnections()
}

// shopWith serves the page of a shop with the widget of a channel. Its policy allows the widget's server alone.
func shopWith(t *testing.T, server, key string) *httptest.Server {
	t.Helper()
	shop := worktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Security-Policy", fmt.Sprintf("default-src 'none'; script-src %[1]s; connect-src %[1]s; img-src data:", server))
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, `<!doctype html><html lang="en"><head><title>Kundan Jewellers</title><meta name="viewport" content="width=device-width,`+
			` initial-scale=1"><link rel="icon" href="data:,"></head>
			<body><main><h1>Kundan Jewellers</h1><p>Silver since 1962.</p></main><script src="%s/widget.js" data-channel="%s" `+
			`async></script></body></html>`, server, key)
	}))
	return shop
}

// within is an expression about the widget.
func within(what string) string {
	return fmt.Sprintf(`(() => { const host = document.querySelector("[data-bahi-chat]"), chat = host && host.shadowRoot; return chat && `+
		`%s; })()`, what)
}

// saidIn waits until the widget shows exactly these messages, all of them sent. A message that is sent again may be shown twice
// until the server responds.
func saidIn(t *testing.T, p *browsertest.Page, texts ...string) {
	t.Helper()
	wanted, err := json.Marshal(texts)
	require.NoError(t, err)
	p.Until(within(fmt.Sprintf(`!chat.querySelector(".waiting") && JSON.stringify([...chat.querySelectorAll(".log .in .said, .log .out `+
		`.said")].map(e => e.innerText.trim())) === JSON.stringify(%s)`, wanted)))
}

func TestAVisitorOfAPageIsAnswered(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	line := lineTo(t, o.URL)
	owner := o.Person(o.Address("owner"))
	channel := apitest.Read[messagingview.Channel](owner.POST("/api/channels", `{"name":"Page","type":"web"}`).Status(201))
	shop := shopWith(t, line.URL, *channel.Key)
	owner.PATCH(fmt.Sprint("/api/channels/", channel.ID), fmt.Sprintf(`{"settings":{"allowedOrigins":[%q]}}`, shop.URL)).Status(200)
	owner.POST("/api/channels", `{"name":"Sales","type":"chat"}`).Status(201) // newer, and does not reach the visitor

	// The visitor uses only the keyboard.
	visitor := browsertest.Open(t, shop.URL)
	visitor.Look(1280, 800, false)
	visitor.Go("/")
	visitor.Until(within(`chat.querySelector(".launch")`))
	visitor.Accessible()
	visitor.TabTo("[data-bahi-chat]")
	visitor.Keys(kb.Enter)
	visitor.Until(within(`chat.activeElement.matches("textarea")`))
	visitor.Keys("Do you make payal?", kb.Enter)
	saidIn(t, visitor, "Do you make payal?")
	require.True(t, visitor.Is(within(`chat.querySelector("textarea").value.trim() === "" && !chat.querySelector(".wrong")`)))

	var all []messagingview.Contact
	require.Eventually(t, func() bool { // the widget shows a message before it is sent
		owner.GET(contacts + "?search=visitor").Status(200).JSON(&all)
		return len(all) == 1
	}, time.Minute, 50*time.Millisecond)
	answer := func(text string) {
		owner.POST(at(all[0].ID)+"/messages", fmt.Sprintf(`{"channelId":%d,"text":%q}`, channel.ID, text)).Status(201)
	}
	answer("Yes, in silver.")
	saidIn(t, visitor, "Do you make payal?", "Yes, in silver.")

	// Without a connection the widget notifies the visitor. The next connection delivers the missed messages once.
	line.cut()
	visitor.Until(within(`chat.querySelector(".note").innerText === "No connection. We keep trying."`))
	visitor.Keys("And in gold?", kb.Enter)
	visitor.Until(within(`chat.querySelector(".wrong")`))
	visitor.Accessible()
	answer("Which size?")
	line.down.Store(false)
	visitor.Until(within(`chat.querySelectorAll(".log .in, .log .out").length === 4 && !chat.querySelector(".wrong, .waiting")`))

	// A reloaded page continues at the same place, with the unsent messages of the previous one.
	line.cut()
	visitor.Keys("Hello?", kb.Enter)
	visitor.Until(within(`chat.querySelector(".wrong")`))
	visitor.Keys("half a sen")
	line.down.Store(false)
	visitor.Go("/?page=2")
	saidIn(t, visitor, "Do you make payal?", "Yes, in silver.", "Which size?", "And in gold?", "Hello?")
	require.True(t, visitor.Is(within(`chat.querySelector("textarea").value.trim() === "half a sen" && !chat.querySelector(".panel").hidden`)))
	for _, look := range []struct {
		name  string
		width int64
		dark  bool
	}{{"light", 1280, false}, {"dark", 1280, true}, {"phone", 360, false}, {"phone-dark", 360, true}} {
		visitor.Look(look.width, 700, look.dark)
		visitor.Accessible()
		require.True(t, visitor.Is(fmt.Sprintf(`document.documentElement.scrollWidth <= %d`, look.width)), look.name)
	}
	visitor.Evaluate(within(`chat.querySelector("textarea").focus()`), nil)
	visitor.Keys(kb.Escape)
	require.True(t, visitor.Is(within(`chat.querySelector(".panel").hidden && chat.activeElement.matches(".launch")`)))
	answer("We close at 7.")
	visitor.Until(within(`chat.querySelector(".count").innerText === "1"`))
	require.True(t, visitor.Is(within(`chat.querySelector(".launch").getAttribute("aria-label") === "Chat with us, 1 new message"`)))

	// Another visitor has another language and another conversation.
	guest := browsertest.Open(t, shop.URL)
	guest.Speak("gu,en")
	guest.Look(360, 700, false)
	guest.Go("/")
	guest.Until(within(`chat.querySelector("h2").innerText === "" || chat.querySelector("h2")`))
	guest.Evaluate(within(`chat.querySelector(".launch").click()`), nil)
	require.True(t, guest.Is(within(`chat.querySelector("h2").innerText === "અમારી સાથે વાત કરો" &&`+
		` !chat.querySelector(".log .in, .log `+
		`.out")`)))
	guest.Evaluate(within(`(() => { const d = new DataTransfer(); d.items.add(new File(["x"], "a.txt")); `+
		`chat.querySelector("textarea").dispatchEvent(new ClipboardEvent("paste", {clipboardData: d, bubbles: true, cancelable: true})) })()`),
		nil)
	require.True(t, guest.Is(within(`chat.querySelector(".note").innerText === `+
		`"અહીં ફાઇલો મોકલી શકાતી નથી."`)))
}
