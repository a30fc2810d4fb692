package messaginghttp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
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
	require.True(t, guest.Is(within(`chat.querySelector("h2").innerText === "અમારી સાથે વાત કરો" && !chat.querySelector(".log .in, .log `+
		`.out")`)))
	guest.Evaluate(within(`(() => { const d = new DataTransfer(); d.items.add(new File(["x"], "a.txt")); `+
		`chat.querySelector("textarea").dispatchEvent(new ClipboardEvent("paste", {clipboardData: d, bubbles: true, cancelable: true})) })()`),
		nil)
	require.True(t, guest.Is(within(`chat.querySelector(".note").innerText === "અહીં ફાઇલો મોકલી શકાતી નથી."`)))
}
