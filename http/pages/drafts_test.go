package pages_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/commands/ledgercmd"
	"bahi/internal/test/apptest"
)

// received returns the address of the draft of a message.
func received(o *apptest.Server, text string) string {
	o.T.Helper()
	id, _, err := ledgercmd.ReceiveDraft(o.T.Context(), commands.Request{Workspace: uuid.MustParse(o.Home)}, o.Sys.Books,
		ledgercmd.Message{ID: uuid.NewString(), From: "919812345678", Text: text, At: time.Now().Add(-25 * time.Hour)})
	require.NoError(o.T, err)
	return "/app/drafts/" + id
}

// filledDraft returns the form of a draft as a browser sends it.
func filledDraft(b browser, draft string, pairs ...string) url.Values {
	return with(filled(b.get(draft).Is(200), `action="`+draft+`"`), pairs...)
}

func TestDraftsBecomeOrdersInABrowser(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	b, clerk := byKey(o, apptest.Home, write), o.Clerk(apptest.Home)
	for _, name := range []string{"Patel Jewellers", "Ramesh Jewellers"} {
		clerk.POST("/client", `{"name":"`+name+`"}`).Status(201)
	}
	post := func(draft string, values url.Values) apptest.Page { return b.site.Ask(http.MethodPost, draft, values) }

	t.Run("convert", func(t *testing.T) {
		b.get("/app/drafts").Is(200).Says("There are none yet.")
		draft := received(o, "party: ramesh jewelers\npayal 250 gm 4 pcs\nring 5 gm")
		b.get("/app/drafts").Is(200).Says("+91 98123 45678", "2 items", "party: ramesh jewelers")
		b.get(draft).Is(200).Says("party: ramesh jewelers", "written: ramesh jewelers", "Ramesh Jewellers?", "% sure", "Client: entry 1, 2",
			"Slip number: entry 1, 2")
		post(draft, filledDraft(b, draft, "do", "convert")).Is(409).Says("is required")

		typed := filledDraft(b, draft, "entries[0].take", "Ramesh Jewellers", "entries[1].weight", "5.5", "entries[2].item_name", "kada",
			"entries[2].weight", "20",
			"entries[2].client_id", "Patel Jewellers", "notes", "by Holi", "do", "number")
		typed.Set("preview", "part")
		post(draft, typed).Is(200).Says("Not saved yet.")
		typed.Set("preview", "page")
		whole := post(draft, typed).Is(200)
		whole.Says("Not saved yet.", "party: ramesh jewelers")
		require.Contains(t, whole.Text, `value="kada"`)
		typed.Del("preview")
		numbered := post(draft, typed)
		b.follow(numbered).Says("The slips have numbers.", "2 orders:", "Ramesh Jewellers, slip 1, 2 items, 255.500 g",
			"Patel Jewellers, slip 2, 1 item, 20.000 g")
		b.follow(post(draft, typed)).Says("2 orders:") // the form that is sent twice has one effect
		require.Equal(t, 3, strings.Count(b.get(draft).Text, `class="read"`))
		b.follow(post(draft, filledDraft(b, draft, "entries[2].delete", "yes", "entries[2].weight", "7"))).Says("Saved.",
			"1 order: Ramesh Jewellers, slip 1, 2 items, 255.500 g")

		unsaved := filledDraft(b, draft, "entries[0].weight", "251", "do", "convert")
		b.follow(post(draft, unsaved)).Says("Saved.", "256.500 g") // it was not shown, so it is not converted
		last := filledDraft(b, draft, "do", "convert")
		converted := post(draft, last)
		b.follow(converted).Says("The draft was converted.", "Ramesh Jewellers", "Slip number 1", "payal · Pieces 4 · Weight 251.000 g")
		require.Equal(t, converted.Header.Get("Location"), post(draft, last).Is(303).Header.Get("Location"))
		b.get(draft).Is(404)
	})

	t.Run("faults", func(t *testing.T) {
		draft := received(o, "payal 250 gm\nring 5 gm")
		refused := post(draft, filledDraft(b, draft, "entries[0].client_id", "Patel", "entries[1].weight", "-5", "entries[2].weight", "3", "do",
			"save")).Is(422)
		refused.Says("Is it Patel Jewellers?")
		require.Equal(t, 3, strings.Count(refused.Text, `class="error"`), "the name, the weight and the new entry without an item")
		require.Contains(t, refused.Text, `value="-5"`)
		require.NotContains(t, b.get(draft).Text, `value="-5"`)
		b.get(draft).Is(200).Says("Draft")
		post(draft, url.Values{"token": filledDraft(b, draft)["token"], "base": {"x"}}).Is(400)
	})

	t.Run("two people", func(*testing.T) {
		draft := received(o, "payal 250 gm\nring 5 gm")
		mine := filledDraft(b, draft, "entries[0].weight", "251", "entries[1].weight", "6")
		theirs := filledDraft(b, draft, "entries[0].weight", "252", "entries[1].delete", "yes")
		b.follow(post(draft, theirs)).Says("Saved.")
		post(draft, mine).Is(412).Says("Another person has changed this", "252.000 g", "251.000 g", "An entry that was deleted")
		post(draft, filledDraft(b, draft, "revision", "0", "do", "convert")).Is(412).Says("It was changed since you read it")
		b.submit(draft, draft+"/delete").Is(422).Says("Say why.")
		b.submit(draft, draft+"/delete", "reason", "x", "revision", "0").Is(412)
		b.follow(b.submit(draft, draft+"/delete", "reason", "twice")).Says("Deleted.")
		b.get(draft).Is(404)
	})

	t.Run("several orders", func(*testing.T) {
		draft := received(o, "payal 250 gm\nring 5 gm")
		b.follow(post(draft, filledDraft(b, draft, "entries[0].client_id", "Patel Jewellers", "entries[1].client_id", "Ramesh Jewellers", "do",
			"number"))).Says("2 orders:")
		b.follow(post(draft, filledDraft(b, draft))).Says("The draft was converted.", "Order 2", "Order 3")
	})
}

// TestADraftIsConvertedByTheKeyboard is the fourth flow of PAGES.md.
func TestADraftIsConvertedByTheKeyboard(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk := o.Clerk(apptest.Home)
	clerk.POST("/client", `{"name":"Patel Jewellers"}`).Status(201)
	order := `{"client_id":1,"date":"2025-03-01","slip_number":"11","items":[{"item_name":"kada","weight":10}]}`
	clerk.POST("/client-order", order).Status(201)
	received(o, "payal 100 gm 4 pcs\nring 20.5 gm\nbali 10.25 gm")
	p := enter(o, write)
	p.Go("/app/drafts")
	p.Keys(kb.ArrowDown)
	p.Enter()
	p.Until(`document.activeElement.name === "client_id"`)
	require.Contains(t, p.Text(".preview"), "Slip number: entry 1, 2, 3")
	p.Write("Patel Jewellers")
	p.Until(`document.querySelector(".preview").innerText.includes("Not saved yet.")`)
	p.PressCtrl(kb.Enter)
	require.Contains(t, p.Text(".preview"), "1 order: Patel Jewellers, slip 12, 3 items, 130.750 g")
	p.Until(`document.activeElement.value === "convert"`)
	p.PressCtrl(kb.Enter)
	tookKeys(t, p, "draft")
	require.Contains(t, p.URL(), "/app/orders/2")
	require.Contains(t, p.Text("main"), "The draft was converted.")
}
