package pages_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
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

// orderValues are the inputs of an order of Patel Jewellers.
var orderValues = []string{
	"client_id", " patel  jewellers", "date", "2025-03-01", "slip_number", "12", "items[0].item_name", "payal", "items[0].weight", "100",
	"items[0].quantity", "4",
	"items[1].item_name", "ring", "items[1].weight", "30.75",
}

const orderLink = `href="/app/orders/(\d+)"`

func TestOrdersAreKeptInABrowser(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	b, clerk := byKey(o, apptest.Home, write), o.Clerk(apptest.Home)
	for _, name := range []string{"Patel Jewellers", "Patel & Sons", "Ram", "Ram"} {
		clerk.POST("/client", `{"name":"`+name+`"}`).Status(201)
	}
	clerk.POST("/karigar", `{"name":"Imran"}`).Status(201)

	t.Run("add", func(t *testing.T) {
		b.get("/app/orders").Is(200).Says("There are none yet.", "Add an order")
		preview := b.submitOf("/app/orders", "/app/orders", "items[0]", append([]string{"preview", "part"}, orderValues...)...).Is(200)
		preview.Says("Patel Jewellers, slip 12, 2 items, 130.750 g")
		require.NotContains(t, preview.Text, "<main")
		whole := b.submitOf("/app/orders", "/app/orders", "items[0]", append([]string{"preview", "page"}, orderValues...)...).Is(200)
		whole.Says("Patel Jewellers, slip 12, 2 items, 130.750 g", "There are none yet.")
		require.Contains(t, whole.Text, `value="payal"`)
		wrong := b.submitOf("/app/orders", "/app/orders", "items[0]", "client_id", "patel", "items[0].item_name", "payal", "items[0].weight",
			"much").Is(422)
		wrong.Says("No account has this name. Is it Patel & Sons / Patel Jewellers?")
		require.Contains(t, wrong.Text, `value="much"`)
		require.Equal(t, 3, strings.Count(wrong.Text, `class="error"`), "the client, the date and the weight")
		b.submitOf("/app/orders", "/app/orders", "items[0]", "client_id", "ram", "date", "2025-03-01").Is(422).Says("Several have this name.")
		b.submitOf("/app/orders", "/app/orders", "items[0]", "client_id", "nobody", "date", "2025-03-01").Is(422).Says("open the account first")

		filled := form(b.get("/app/orders"), "/app/orders", "items[0]")
		filled = with(filled, orderValues...)
		added := b.site.Ask(http.MethodPost, "/app/orders", filled)
		b.follow(added).Says("Saved.", "Order 1", "Patel Jewellers", "Slip number 12", "130.750 g", "payal · Pieces 4 · Weight 100.000 g",
			"added the order", "Nothing was delivered yet.")
		require.Equal(t, added.Header.Get("Location"), b.site.Ask(http.MethodPost, "/app/orders", filled).Is(303).Header.Get("Location"))
		b.get("/app/orders").Is(200).Says("Order 1", "Patel Jewellers", "open", "130.750 g")
		b.get("/app/orders?client_id=ram+%C2%B7+3").Is(200).Says("Nothing matches.")
		b.get("/app/orders?client_id=Ramesh").Is(200).Says("No account has this name.", "Order 1")
	})

	const order = "/app/orders/1"
	t.Run("deliver", func(*testing.T) {
		takada := []string{"date", "2025-03-05", "items[0].item_name", "payal", "items[0].weight", "60", "items[0].karigar_id", "imran"}
		b.submitOf(order, order, `value="add-takada"`, append([]string{"preview", "part"}, takada...)...).Is(200).
			Says("1 item, 60.000 g", "After it 70.750 g is left.")
		b.submitOf(order, order, `value="add-takada"`, "date", "2025-03-05", "items[0].item_name", "payal", "items[0].weight", "200", "preview",
			"part").Is(200).
			Says("After it 69.250 g too much is delivered.")
		b.submitOf(order, order, `value="add-takada"`, append([]string{"preview", "page"}, takada...)...).Is(200).
			Says("After it 70.750 g is left.", "Nothing was delivered yet.")
		b.submitOf(order, order, `value="add-takada"`, "date", "2025-03-05", "items[0].weight", "60", "items[0].karigar_id",
			"Imra").Is(422).Says("Is it Imran?")
		delivered := b.submitOf(order, order, `value="add-takada"`, takada...)
		b.follow(delivered).Says("The takada was added.", "partly delivered", "60.000 g", "70.750 g", "Karigar Imran",
			"added the takada of 05 Mar 2025")

		one := order + "/takadas/1"
		b.get(one).Is(200).Says("Takada 1", "History")
		edited := b.submitOf(one, one, `value="edit-takada"`, "items[0].item_name", "payal", "items[0].weight", "140",
			"items[0].karigar_id", "",
			"date", "2025-03-05", "reason", "weighed again")
		b.follow(edited).Says("The takada was changed.", "delivered", "9.250 g too much", "weighed again", "Items, line 1 · Weight",
			"Items, line 1 · Karigar")
		b.submitOf(one, one, `value="edit-takada"`, "items[0].item_name", "payal", "items[0].weight", "5", "preview",
			"page").Is(200).Says("1 item, 5.000 g", "Takada 1")
		b.get("/app/orders/77/takadas/1").Is(404)
		b.submitOf(one, one, `value="delete-takada"`).Is(422).Says("Say why.")
		b.follow(b.submitOf(one, one, `value="delete-takada"`, "reason", "of another order")).Says("Deleted.", "Nothing was delivered yet.")
		b.get(one).Is(200).Says("It was deleted.", "of another order")
	})

	t.Run("edit and delete", func(t *testing.T) {
		shown := b.get(order).Is(200)
		require.Contains(t, shown.Text, `value="Patel Jewellers"`)
		stale := form(shown, order, `value="edit-client-order"`)
		values := []string{"client_id", "Patel & Sons", "date", "2025-03-01", "items[0].item_name", "payal", "items[0].weight", "101",
			"slip_number", "12", "reason", "a slip"}
		b.follow(b.submitOf(order, order, `value="edit-client-order"`, values...)).Says("The order was changed.", "Patel & Sons",
			"101.000 g", "a slip", "Items, line 2")
		stale = with(stale, values...)
		b.site.Ask(http.MethodPost, order, with(stale, "items[0].weight", "102")).Is(412).
			Says("Another person has changed this", "101.000 g", "102.000 g", "Keep theirs")
		b.submitOf(order, order, `value="edit-client-order"`, "client_id", "Patel & Sons", "date", "2025-03-01", "items[0].item_name", "",
			"items[0].weight", "1").Is(422)
		b.follow(b.submitOf(order, order, `value="delete-client-order"`, "reason", "cancelled")).Says("Deleted.", "It was deleted.", "cancelled")
		b.get("/app/orders").Is(200).Says("There are none yet.")
	})

	t.Run("pages", func(t *testing.T) {
		var all []string
		for range 61 {
			var made map[string]any
			clerk.POST("/client-order", `{"client_id":1,"date":"2025-03-01","items":[{"item_name":"kada","weight":10}]}`).Status(201).JSON(&made)
			all = append([]string{fmt.Sprint(made["id"])}, all...)
		}
		newest, oldest := b.ids("/app/orders", orderLink), b.ids("/app/orders?page=2", orderLink)
		require.Len(t, newest, 31)
		require.Len(t, oldest, 30)
		require.Equal(t, all, slices.Concat(newest, oldest), "each order once, the newest first")
		pdf := regexp.MustCompile(`href="(/client-orders/pdf[^"]*)"`).FindStringSubmatch(b.get("/app/orders?client_id=Patel+Jewellers").Text)
		require.Equal(t, "/client-orders/pdf?client_id=1", pdf[1])
		require.NotEmpty(t, b.get(pdf[1]).Is(200).Text)
	})
}

func TestATransferIsPostedAndUnpairedInABrowser(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	b, clerk := byKey(o, o.Home, write), o.Clerk(o.Home)
	account := karigar(o)
	apptest.Open(clerk, "HDFC")
	const transfers = "/app/transfers"
	value := []string{"from", "hdfc", "to", "Imran · Karigar", "amount", "5000", "date", "2025-03-02", "description", "labour"}
	b.get(transfers).Is(200).Says("Transfers Unpaired rows: 1", "A transfer is two rows that name each other. These rows are not paired yet.")
	b.submitOf(transfers, transfers, `value="post-transfer"`, append(value, "preview",
		"page")...).Is(200).Says("HDFC · Given · Amount ₹5,000.00 · labour",
		"Imran · Given · labour · Amount ₹5,000.00")
	b.submitOf(transfers, transfers, `value="post-transfer"`, append(value, "amount", "")...).Is(422).Says("amount or fine weight is required")
	posted := b.submitOf(transfers, transfers, `value="post-transfer"`, value...)
	row, _, _ := strings.Cut(posted.Header.Get("Location"), "?") // a page of an earlier position would do
	shown := b.follow(posted)
	other := b.get(regexp.MustCompile(`/app/rows/\d+`).FindString(shown.Text)).Is(303).Header.Get("Location")
	number := strings.TrimPrefix(other, account+"/rows/")
	shown.Says("HDFC", "paired with row "+number, "paired the row with row "+number)
	b.get("/app/trial-balance").Is(200).Says("HDFC", "₹5,000.00", "Unpaired rows", "Loss in work", "497.500 g")
	unpaired := b.submitOf(other, other, `value="unpair"`, "reason", "wrong row")
	require.NotContains(t, b.follow(unpaired).Text, "/app/rows/")
	choice := b.get(transfers).Is(200).Says("HDFC", "labour", "Imran", "02 Mar 2025 · HDFC · Given Amount ₹5,000.00 · labour")
	pair := form(choice, transfers, `value="pair-rows"`)
	pair["rows"] = []string{"", path.Base(row), number}
	for _, id := range pair["rows"][1:] {
		require.Contains(t, choice.Text, `name="rows" value="`+id+`"`)
	}
	b.site.Ask(http.MethodPost, transfers, pair).Is(303)
	b.get(row).Says("paired with row " + number)
	file := regexp.MustCompile(`href="(/books/trial-balance[^"]*pdf)"`).
		FindStringSubmatch(b.get("/app/trial-balance?as_of=2025-03-05").Is(200).Text)
	require.Contains(t, file[1], "as_of=2025-03-05")
	b.get("/app/trial-balance?known_at=x").Is(422)
	byKey(o, o.Home, `{"messaging":"read"}`).get("/app/trial-balance").Is(403)
}

func TestPartiesAreAskedFromThePages(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	b := byKey(o, apptest.Home, `{"ledger":"write","messaging":"write"}`)
	clerk := o.Bearer(o.Key(apptest.Home, `{"ledger":"write","messaging":"write"}`).Key)
	account := apptest.IdOf(t, []byte(clerk.POST("/client", `{"name":"Meera"}`).Status(201).Text))
	clerk.POST("/client", `{"name":"Ravi"}`).Status(201)
	contact := apptest.IdOf(t, []byte(clerk.POST("/api/contacts", `{"name":"Meera Shah","phone":"9812345679"}`).Status(201).Text))
	clerk.PATCH(fmt.Sprintf("/api/contacts/%d", contact), `{"optIn":true}`).Status(200)
	clerk.POST("/api/channels", `{"name":"Sales","type":"chat"}`).Status(201)

	const parties, confirmations = "/app/list/parties", "/app/confirmations"
	for i := range 101 { // the list suggests 100
		clerk.POST("/api/contacts", fmt.Sprintf(`{"name":"Ravi %d","phone":"98124%05d"}`, i, i)).Status(201)
	}
	list := b.get(parties).Is(200).Says("Set the contact")
	require.NotContains(t, list.Words(), "null")
	set := with(form(list, parties, `value="set-account-contact"`), "id", fmt.Sprint(account), "contactId", "meera")
	for text, fault := range map[string]string{"nobody": "No contact has this name or phone.", "ravi": "Several have this name. Is it Ravi"} {
		b.site.Ask(http.MethodPost, parties, with(set, "contactId", text)).Is(422).Says(fault)
	}
	listed := b.follow(b.site.Ask(http.MethodPost, parties, set)).Says("Meera", "Meera Shah")
	require.Equal(t, "Meera Shah", filled(listed, `value="set-account-contact"`).Get("contactId"))
	b.follow(b.site.Ask(http.MethodPost, parties, with(set, "contactId", "Ravi 100 · +919812400100", "key", uuid.NewString())))
	b.follow(b.site.Ask(http.MethodPost, parties, with(set, "contactId", "", "key", uuid.NewString())))
	require.NotContains(t, b.get(parties).Text, `value="Ravi 100"`)
	b.follow(b.site.Ask(http.MethodPost, parties, with(set, "key", uuid.NewString()))).Says("Meera Shah")

	tried := b.submitOf(confirmations, confirmations, `value="request-confirmations"`, "kind", "client", "as_of", "2025-03-31",
		"templateId", "2", "preview", "page").Is(200).Says(
		"What it would do Counts Waiting 1 Parties 2 Skipped 1 Skipped reasons No contact 1 As of 31 Mar 2025 Channel Sales Template balance")
	kept := filled(tried, `value="request-confirmations"`)
	require.Equal(t, []string{"client", "2025-03-31", "2"}, []string{kept.Get("kind"), kept.Get("as_of"), kept.Get("templateId")})
	require.NotContains(t, kept, "channelId", "it is that of the template")
	b.submitOf(confirmations, confirmations, `value="request-confirmations"`, "kind", "client", "as_of", "2025-03-31",
		"templateId", "1").Is(422).Says("the template shows neither a balance nor the statement")
	b.submitOf(confirmations, confirmations, `value="request-confirmations"`, "kind", "client", "as_of", "2025-03-31",
		"templateId", "2").Is(303)
	b.submitOf(confirmations, confirmations, `value="request-confirmations"`, "kind", "client", "as_of", "2025-03-31",
		"templateId", "9").Is(422)
	one := "/app/confirmations/1"
	b.get(confirmations).Is(200).Says("Clients · 31 Mar 2025", "balance · Sales ·")
	require.Eventually(t, func() bool {
		return clerk.GET("/books/confirmations/1/parties?status=silent").Status(200).Header("X-Total-Count") == "1"
	}, time.Minute, 20*time.Millisecond)
	seen := b.get(one).Is(200).Says("Clients · 31 Mar 2025", "Parties 2", "Silent 1", "No contact 1")
	require.NotContains(t, seen.Words(), "Failed 0")
	require.NotContains(t, seen.Words(), "Nobody gets a message")
	second := apptest.IdOf(t, []byte(clerk.POST("/books/confirmations",
		`{"accounts":[2],"as_of":"2025-03-31","channelId":1,"templateId":2}`).Status(201).Text))
	b.get(fmt.Sprint(confirmations, "/", second)).Is(200).Says("Ravi · 31 Mar 2025", "Nobody gets a message", "Skipped 1")
	clerk.POST(fmt.Sprintf("/client-ledger/%d", account), `{"date":"2025-03-01","out_entries":[{"amount":1200}]}`).Status(201)
	listed = b.get(one+"/parties").Is(200).Says("Meera", "Ravi", "Decide", "Outcome Confirmed Disputed Note",
		"Changed since it was asked", "₹0.00 settled")
	require.Contains(t, listed.Text, fmt.Sprintf(`<a href="/app/accounts/client/%d">Meera</a>`, account))
	require.Contains(t, listed.Text, fmt.Sprintf(`<a href="/app/inbox/%d">Meera Shah</a>`, contact), "the reply is in the conversation")
	require.NotContains(t, listed.Says("No contact").Words(), "no_contact")
	require.NotContains(t, listed.Words(), "Crystal")
	decide := with(form(b.get(one+"/parties"), one+"/parties", `value="decide-confirmation"`), "outcome", "disputed",
		"note", "bill 118 is missing")
	tried = b.site.Ask(http.MethodPost, one+"/parties", with(decide, "preview", "page")).Is(200).Says("What it would do")
	require.Equal(t, 1, strings.Count(tried.Text, "bill 118 is missing</textarea>"), "only the form of the tried party has its values")
	require.Equal(t, 1, strings.Count(tried.Text, `value="disputed" selected`))
	b.follow(b.site.Ask(http.MethodPost, one+"/parties", decide)).Says("bill 118 is missing")
}

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
	o := apptest.Share(t)
	b, clerk := byKey(o, o.Home, write), o.Clerk(o.Home)
	for _, name := range []string{"Patel Jewellers", "Ramesh Jewellers"} {
		clerk.POST("/client", `{"name":"`+name+`"}`).Status(201)
	}
	post := func(draft string, values url.Values) apptest.Page { return b.site.Ask(http.MethodPost, draft, values) }

	t.Run("convert", func(t *testing.T) {
		b.get("/app/drafts").Is(200).Says("There are none yet.")
		sure := b.get(received(o, "party: patel jewellers\npayal 250 gm")).Is(200).Says("written: patel jewellers", "Slip number: entry 1")
		require.Contains(t, sure.Text, `value="Patel Jewellers"`)
		require.NotContains(t, sure.Text, "Patel Jewellers?", "the form has it already")
		require.NotContains(t, sure.Text, "Client: entry 1")
		draft := received(o, "party: ramesh jewelers\npayal 250 gm 4 pcs\nring 5 gm")
		b.get("/app/drafts").Is(200).Says("+91 98123 45678", "2 items", "party: ramesh jewelers")
		open := regexp.MustCompile(`href="([^"]*)"[^>]*>Open an account<`).FindStringSubmatch(b.get(draft).Is(200).Text)
		opened := b.get(html.UnescapeString(open[1])).Is(200).Text
		require.Contains(t, opened, `value="ramesh jewelers"`)
		require.Equal(t, 2, strings.Count(opened, `<option value="client" selected>`), "of the filter and of the new account")
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
		seen := byKey(o, o.Home, `{"ledger":"read"}`).get(draft).Is(200).Says("Item payal Weight 250 g")
		require.NotContains(t, seen.Text, `name="entries[0]`, "a reader sees text")
	})

	t.Run("two people", func(*testing.T) {
		draft := received(o, "payal 250 gm\nring 5 gm")
		mine := filledDraft(b, draft, "entries[0].weight", "251", "entries[1].weight", "6")
		theirs := filledDraft(b, draft, "entries[0].weight", "252", "entries[1].delete", "yes")
		b.follow(post(draft, theirs)).Says("Saved.")
		post(draft, mine).Is(412).Says("Another person has changed this", "252.000 g", "251.000 g", "An entry that was deleted")
		post(draft, filledDraft(b, draft, "revision", "0", "do", "convert")).Is(412).Says("It was changed since you read it")
		const remove = `value="delete-order-draft"`
		b.submitOf(draft, draft, remove).Is(422).Says("Say why.")
		b.submitOf(draft, draft, remove, "reason", "x", "revision", "0").Is(412)
		b.follow(b.submitOf(draft, draft, remove, "reason", "twice")).Says("Deleted.")
		b.get(draft).Is(404)
	})

	t.Run("several orders", func(*testing.T) {
		draft := received(o, "payal 250 gm\nring 5 gm")
		b.follow(post(draft, filledDraft(b, draft, "entries[0].client_id", "Patel Jewellers", "entries[1].client_id", "Ramesh Jewellers", "do",
			"number"))).Says("2 orders:")
		converted := b.follow(post(draft, filledDraft(b, draft)))
		made := b.ids("/app/orders", orderLink)
		converted.Says("The draft was converted.", "Order "+made[1], "Order "+made[0])
	})
}

// TestADraftIsConvertedByTheKeyboard is the fourth flow of PAGES.md.
func TestADraftIsConvertedByTheKeyboard(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	clerk := o.Clerk(o.Home)
	client := apptest.IdOf(t, []byte(clerk.POST("/client", `{"name":"Patel Jewellers"}`).Status(201).Text))
	order := fmt.Sprintf(`{"client_id":%d,"date":"2025-03-01","slip_number":"11","items":[{"item_name":"kada","weight":10}]}`, client)
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
	require.Contains(t, p.URL(), "/app/orders/"+byKey(o, o.Home, write).ids("/app/orders", orderLink)[0])
	require.Contains(t, p.Text("main"), "The draft was converted.")
}
