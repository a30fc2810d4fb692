package console_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	flows "bahi/commands/messaging"
	"bahi/http/pages/browsertest"
	"bahi/internal/app/apptest"
	views "bahi/readmodels/messaging"
)

// arrives plays a message of Asha.
func arrives(t *testing.T, o *apptest.Office, channel int64, text string) {
	t.Helper()
	_, err := o.Sys.Messages.Receive(t.Context(), flows.Arrival{
		Channel: channel, Writer: flows.Writer{From: "919812345678", Name: "Asha"}, Text: text, ProviderID: uuid.NewString(), SentAt: time.Now(),
	})
	require.NoError(t, err)
}

// pictures is the folder for pictures of pages, which people look at.
func pictures(p *browsertest.Page, name string) {
	if folder := os.Getenv("BAHI_PICTURES"); folder != "" {
		p.Picture(filepath.Join(folder, name+".png"))
	}
}

func TestPeopleAnswerInTheInbox(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	who := o.Person(o.Address("owner"))
	var channel views.Channel
	who.POST("/api/channels", `{"name":"Sales","type":"chat"}`).Status(201).JSON(&channel)
	who.GET("/api/chat/templates").Status(200)
	arrives(t, o, channel.ID, "Is order A-204 <b>ready</b>?")

	p := browsertest.Open(t, o.URL)
	p.Go("/inbox/resolved")
	p.Type("#email", o.Address("owner"))
	p.Type("#password", "wrong")
	p.Submit("main button")
	require.Equal(t, "This address and password do not sign in.", p.Text("[role=alert]"))
	p.Accessible()
	p.Type("#email", o.Address("owner"))
	p.Type("#password", apptest.GoodPassword)
	p.Submit("main button")
	require.Equal(t, "/inbox/resolved", p.URL())
	p.Submit(`nav a[href="/inbox/"]`)
	require.Equal(t, "1", p.Text(".unread"))
	p.Accessible()
	pictures(p, "inbox-list")
	p.Submit("tbody a")
	require.Equal(t, "Is order A-204 <b>ready</b>?", p.Text(".talk .in .said"))
	arrives(t, o, channel.ID, "Hello?")
	p.Until(`document.querySelectorAll(".talk .in").length === 2`)

	p.Type("#text", "Yes, since noon.")
	p.TabTo("#write button.primary")
	p.Enter()
	require.Equal(t, "Sent.", p.Text(".done"))
	require.Equal(t, "Yes, since noon.", p.Text(".talk .out .said"))
	p.Until(`document.querySelector(".talk .out .hint").innerText === "read"`)
	p.Click("#write details:nth-of-type(1) summary")
	p.Evaluate(`[...document.querySelectorAll("#write details")].forEach(d => d.open = true)`, nil)
	p.Accessible()
	p.Type(`[name="value-1"]`, "A-204")
	p.Type(`[name="value-2"]`, "{{name}}")
	p.Submit(`form:has([name="value-2"]) button`)
	require.Contains(t, p.Texts(".talk .out .said"), "Order A-204 is ready for Asha")
	p.Submit(`[name=bot]`)
	require.Equal(t, "Let bots answer", p.Text("[name=bot]"))
	p.Evaluate(`document.querySelector("#status").value = "resolved"`, nil)
	p.Submit(`form[action$="/status"] button`)
	require.Equal(t, "The status was set.", p.Text(".done"))
	for _, look := range []struct {
		name  string
		width int64
		dark  bool
	}{{"light", 1280, false}, {"dark", 1280, true}, {"phone", 360, false}} {
		p.Look(look.width, 800, look.dark)
		p.Accessible("color-contrast")
		require.True(t, p.Is(fmt.Sprintf(`document.documentElement.scrollWidth <= %d`, look.width)), look.name)
		pictures(p, "inbox-"+look.name)
	}
	p.Go("/inbox/")
	require.Equal(t, "Nobody is here.", p.Text(".none"))
	var k []views.Contact
	who.GET("/api/contacts").Status(200).JSON(&k)
	who.PATCH(fmt.Sprint("/api/contacts/", k[0].ID), `{"status":"open"}`).Status(200)
	p.Until(`document.querySelector("tbody a")?.innerText === "Asha"`) // what another member does is seen too
	who.PATCH(fmt.Sprint("/api/contacts/", k[0].ID), `{"status":"resolved"}`).Status(200)
	p.Until(`!document.querySelector("tbody a")`)
	p.Go("/inbox/all")
	require.Equal(t, "Asha", p.Text("tbody a"))

	// A name of one long word, which anybody may have, leaves the other columns in sight.
	who.PATCH(fmt.Sprint("/api/contacts/", k[0].ID), fmt.Sprintf(`{"name":%q}`, strings.Repeat("W", 100))).Status(200)
	p.Look(1280, 800, false)
	p.Go("/inbox/all")
	require.True(t, p.Is(`(({scrollWidth, clientWidth}) => scrollWidth <= clientWidth)(document.querySelector(".wide"))`))

	// Another user does not see the conversation, and who signs out sees none.
	p.Submit(".leave button")
	o.Person(o.Address("other"))
	p.Type("#email", o.Address("other"))
	p.Type("#password", apptest.GoodPassword)
	p.Submit("main button")
	p.Go(fmt.Sprintf("/inbox/contacts/%d", k[0].ID))
	require.Equal(t, "Contact not found", p.Text("h1"))
}
