package console_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/http/pages/browsertest"
	"bahi/internal/app/apptest"
	views "bahi/readmodels/messaging"
)

func TestPeopleTryABotInTheInbox(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	who := o.Person(o.Address("owner"))
	var bot views.Bot
	who.POST("/api/bots", `{"name":"Asha <b>","description":"Answers questions","systemPrompt":"Be polite."}`).Status(201).JSON(&bot)
	body, contentType := apptest.Form(t, "text/plain", []byte("On Sunday we are open from 11 to 4. <script>alert(1)</script>"))
	who.With("Content-Type", contentType).POST(fmt.Sprintf("/api/bots/%d/files", bot.ID), string(body)).Status(201)
	require.Eventually(t, func() bool {
		return strings.Contains(who.GET(fmt.Sprintf("/api/bots/%d/files", bot.ID)).Status(200).Text, `"ready"`)
	}, time.Minute, 10*time.Millisecond)

	p := browsertest.Open(t, o.URL)
	p.Go("/inbox/bots")
	p.Type("#email", o.Address("owner"))
	p.Type("#password", apptest.GoodPassword)
	p.Submit("main button")
	p.Accessible()
	p.Submit("tbody a")
	require.Equal(t, "Asha <b>", p.Text("h1"))
	p.Type("#text", "Are you open on Sunday?")
	p.Submit("main form button.primary")
	require.Contains(t, p.Text("#answer .said"), "On Sunday we are open from 11 to 4.")
	require.Contains(t, p.Text(".passages li .hint"), "1.00 · ")
	require.True(t, p.Is(`document.querySelector("#text").value === "Are you open on Sunday?"`), "the question stays")
	p.Accessible()
	pictures(p, "inbox-bot")
	p.Evaluate(`document.querySelector("#text").value = ""`, nil)
	p.Type("#text", "Who won the match?")
	p.Submit("main form button.primary")
	require.Contains(t, p.Text("#answer .hint"), "A person would be asked to answer: no passage answers.")
	require.Equal(t, "None was found.", p.Text("#answer .none"))
	who.GET("/api/contacts").Status(200).Body("[]")

	// Another workspace's bot is not there, and a question of nothing is refused.
	var other views.Bot
	o.Person(o.Address("other")).POST("/api/bots", `{"name":"Other","description":"Answers questions","systemPrompt":"Be polite."}`).Status(201).JSON(&other)
	for _, id := range []any{other.ID, 1 << 40, "x"} {
		p.Go(fmt.Sprint("/inbox/bots/", id))
		require.Equal(t, "Bot not found", p.Text("h1"))
	}
	p.Go("/inbox/bots")
	require.Equal(t, []string{"Asha <b>"}, p.Texts("tbody a"))
}
