package messaginghttp_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
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
