package pages_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/internal/test/browsertest"
	"bahi/internal/test/khatapages"
)

// keystrokes has the number of keys of each flow of PAGES.md, without the typed values.
var keystrokes = map[string]int{
	"row":         9, // Enter opens the account; then one at the date, at each of five values, at the empty line and at Save
	"correction":  7, // ↑ and Enter open the row; three lead to the weight; Ctrl+Enter asks for the reason, and saves
	"settlement":  3, // Alt+=, Ctrl+Enter, Alt+P
	"draft":       4, // ↓ and Enter open it; Ctrl+Enter numbers the slips, and converts
	"khata":       4, // Tab and Enter upload the file; Enter at the row that is unsure, and at Post
	"new account": 5, // of a khata: Enter at the row, the ledger's letter, Enter opens, accepts and posts
	"answer":      4, // ↓ and Enter open it; Ctrl+Enter sends, Alt+R resolves
}

// tookKeys checks how many keys a flow took, and starts the count again.
func tookKeys(t *testing.T, p *browsertest.Page, flow string) {
	t.Helper()
	require.Equal(t, keystrokes[flow], p.Keystrokes, flow)
	p.Keystrokes = 0
}

// openNewest opens the page of an account's newest row by the keyboard.
func openNewest(p *browsertest.Page, account string) {
	p.Go(account)
	p.Until(`document.activeElement.name === "date"`)
	p.Keys(kb.ArrowUp)
	p.Enter()
}

// TestARowOfMoneyIsEnteredByTheKeyboard shows that Enter leads past the fields of an item to the amount.
func TestARowOfMoneyIsEnteredByTheKeyboard(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	account := karigar(o)
	p := enter(o, write)
	p.Go(account)
	p.Until(`document.activeElement.name === "date"`)
	p.Keys(kb.F4, kb.Enter, kb.Enter, kb.Enter)
	require.True(t, p.Is(`document.activeElement.name === "out_entries[0].amount"`))
	p.Write("1500")
	p.Keys(kb.Enter, kb.Enter) // the second is on an empty line
	require.True(t, p.Is(`document.activeElement.matches("#entry button.primary")`))
	p.Enter()
	require.Contains(t, p.Text(".rows tbody tr"), "Amount ₹1,500.00")
}

// TestARowIsCorrectedByTheKeyboard is the second flow of PAGES.md.
func TestARowIsCorrectedByTheKeyboard(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	account := karigar(o)
	p := enter(o, write)
	openNewest(p, account)
	p.Until(`document.activeElement.name === "date" && document.activeElement.closest("#do-edit")`)
	p.Keys(kb.Enter, kb.Enter, kb.Enter) // the first is at the empty line of the other side
	p.Until(`document.activeElement.name === "out_entries[0].weight"`)
	p.Write("400")
	p.Until(`document.querySelector("#do-edit .preview").innerText.includes("398.000 g fine owes you")`)
	p.Ctrl(kb.Enter)
	p.Until(`document.activeElement.id === "reason-edit"`) // it is required
	p.Write("weighed")
	p.PressCtrl(kb.Enter)
	tookKeys(t, p, "correction")
	require.Contains(t, p.Text("main"), "The row was changed.")
	require.Contains(t, p.Text(".history"), "weighed")
}

// TestTheFlowsOnAPhone has the six flows of PAGES.md, by fingers.
func TestTheFlowsOnAPhone(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	account, clerk := karigar(o), o.Clerk(o.Home)
	client := apptest.IdOf(t, []byte(clerk.POST("/client", `{"name":"Patel Jewellers"}`).Status(201).Text))
	order := fmt.Sprintf(`{"client_id":%d,"date":"2025-03-01","slip_number":"11","items":[{"item_name":"kada","weight":10}]}`, client)
	clerk.POST("/client-order", order).Status(201)
	received(o, "payal 100 gm 4 pcs\nring 20.5 gm")
	c := o.Bearer(o.Key(o.Home, answering).Key)
	talk := arrives(o, c, channelOf(c, "Sales"), "919812345002", "Asha", "Is A-204 ready?", 0)
	p := enter(o, `{"ledger":"write","messaging":"write","marketplace":"write"}`)
	p.Phone()
	fill := func(selector, text string) {
		p.Tap(selector)
		p.Until(`document.activeElement === document.querySelector(` + strconv.Quote(selector) + `)`)
		p.Evaluate(`document.activeElement.select?.(), 0`, new(int))
		p.Write(text)
	}

	p.Go(account) // a row
	p.Tap(`[data-open=in]`)
	for name, value := range map[string]string{"item_name": "payal", "pure_weight": "520", "fine_percent": "92", "other": "1500"} {
		fill(`[name="in_entries[0].`+name+`"]`, value)
	}
	p.Until(`["₹1,500.00", "19.100 g"].every(of => document.querySelector("#entry .preview").innerText.includes(of))`)
	p.TapOn("#entry .primary")
	require.Contains(t, p.Text(".rows tbody tr"), "478.400 g")
	p.Tap(".rows tbody tr button.worked") // its formula, in place
	p.Until(`document.querySelector(".rows .formula").matches(":popover-open")`)
	require.Contains(t, p.Text(".rows .formula:popover-open"), "520.000 g × 92 % = 478.400 g")
	require.True(t, p.Is(`(box => box.left >= 0 && box.right <= 360)(document.querySelector(":popover-open").getBoundingClientRect())`))
	if folder := os.Getenv("BAHI_PICTURES"); folder != "" {
		p.Picture(filepath.Join(folder, "formula-360.png"))
	}

	p.Tap("h1")
	p.Until(`!document.querySelector(":popover-open")`)
	p.TapOn(".rows tbody tr a") // a correction
	require.False(t, p.Is(`document.getElementById("do-edit").open`), "the keys of a phone cover half of it")
	p.Tap("#do-edit summary")
	fill(`[name="in_entries[0].other"]`, "1600")
	fill("#reason-edit", "misread")
	p.TapOn("#do-edit .foot button:last-child")
	require.Contains(t, p.Text("main"), "The row was changed.")

	p.Go(account) // settle, statement
	p.TapOn("#settle")
	p.TapOn("#entry .primary")
	require.Contains(t, p.Text(".head"), "0.000 g fine settled")
	p.TapOn("#statement")
	require.Contains(t, p.URL(), "/statement")

	p.Go("/app/drafts") // a draft
	p.TapOn(".rows tbody a")
	fill(`[name=client_id]`, "Patel Jewellers")
	p.TapOn("[value=save]")
	p.TapOn("[value=number]")
	require.Contains(t, p.Text(".preview"), "1 order: Patel Jewellers, slip 12, 2 items, 120.500 g")
	p.TapOn("[value=convert]")
	require.Contains(t, p.Text("main"), "The draft was converted.")

	page := filepath.Join(t.TempDir(), "page.pdf") // a khata page
	content := khatapages.Typed("Party: Imran", "IN", "1/3 payal 520 92 478.4", "Party: Zaveri", "2/3 cash 20,000")
	require.NoError(t, os.WriteFile(page, content, 0o600))
	p.Go("/app/khata")
	p.Choose("#file", page)
	p.TapOn(".upload .primary")
	p.Until(`document.getElementById("check")`)
	p.TapOn(`[name=open]`) // Zaveri, a karigar
	require.Contains(t, p.Text("#check .preview"), "Accepted: 2. Left out: 0.")
	p.Tap(".added summary")
	p.Evaluate(`document.querySelector('.added [name="entries[2].side"]').value = "in", 0`, new(int)) // the phone's own list
	for name, value := range map[string]string{"account": "Imran", "date": "04032025", "weight": "10", "touch": "90"} {
		p.Type(`.added [name="entries[2].`+name+`"]`, value)
	}
	p.Until(`(text => text.includes("Accepted: 3. Left out: 0.") && !text.includes("Row 3"))(
		document.querySelector("#check .preview").innerText)`)
	p.TapOn("#check .primary")
	require.Equal(t, 2, strings.Count(p.Text(".posted"), "Imran · Karigar"))

	p.Go("/app/inbox") // an answer
	p.TapOn(".persons a")
	require.Equal(t, talk, p.URL())
	fill("#f-text", "Yes.")
	p.TapOn("#write .primary")
	require.Contains(t, p.Texts(".said .out .text"), "Yes.")
}

// openedWith opens an account with a row.
func openedWith(clerk *apitest.Client, kind, name, row string) (address string) {
	opened := apitest.Read[map[string]any](clerk.POST("/"+kind, name).Status(201))
	clerk.POST(fmt.Sprintf("/%s-ledger/%v", kind, opened["id"]), row).Status(201)
	return fmt.Sprintf("/app/accounts/%s/%v", kind, opened["id"])
}

func TestAccountsAreSettled(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	b, clerk := byKey(o, o.Home, write), o.Clerk(o.Home)
	reader := byKey(o, o.Home, `{"ledger":"read"}`)
	for _, c := range []struct{ kind, name, row string }{
		{"bullion", `{"name":"Soni"}`, `{"date":"2025-03-01","out_entries":[{"kind":"metal","fine_weight":99.5},{"kind":"cash","amount":12}]}`},
		{"client", `{"name":"Patel"}`, `{"date":"2025-03-01","out_entries":[{"weight":520,"touch":92,"making_charge":70.5}]}`},
		{"karigar", `{"name":"Imran"}`,
			`{"date":"2025-03-01","in_entries":[{"pure_weight":520,"fine_percent":92,"wastage_percent":2,"other":1500}]}`},
		{"karigar", `{"name":"Salim"}`, `{"date":"2025-03-01","in_entries":[{"other":1500}],"out_entries":[{"fine_weight":5}]}`},
		{"polisher", `{"name":"Raju","type":0}`, `{"date":"2025-03-01","out_entries":[{"weight":12.5,"amount":3}]}`},
	} {
		account := openedWith(clerk, c.kind, c.name, c.row)
		require.NotContains(t, b.get(account).Text, "statement?from", "nothing was settled yet")
		settled := b.get(account + "?settle=1").Is(200).Says("After it:")
		require.NotContains(t, reader.get(account+"?settle=1").Is(200).Text, `id="settle"`)
		require.Regexp(t, `After it: ₹0\.00 settled 0\.000 g (fine|weight) settled`, settled.Words(), c.row)
		values := with(filled(settled, `id="entry"`), "date", "2025-03-02")
		b.follow(b.site.Ask(http.MethodPost, account+"/rows", values))
		require.NotContains(t, b.get(account).Text, `id="settle"`, "all is settled")
		b.submit(account, account+"/rows", "date", "2025-03-03", "in_entries[0].item_name", "x",
			"in_entries[0].weight", "1", "in_entries[0].fine_weight", "1").Is(303)
		require.Contains(t, b.get(account).Text, "statement?from=2025-03-03")
		again := filled(b.get(account+"?again=1").Is(200).Says("After it:"), `id="entry"`)
		require.Equal(t, "x", again.Get("in_entries[0].item_name"))
	}
	bank := book(o, clerk, 1)
	require.NotContains(t, b.get(bank).Text, `id="settle"`)
	require.Empty(t, filled(b.get(bank+"?settle=1").Is(200), `id="entry"`).Get("out_entries[0].amount"))
}

func TestAKarigarIsSettledByTheKeyboard(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	account := karigar(o)
	p := enter(o, write)
	p.Go(account)
	p.PressAlt("=")
	require.Regexp(t, `After it:.*settled`, p.Text("#entry .preview"))
	require.True(t, p.Is(`document.querySelector('[name="in_entries[0].fine_weight"]').value === "497.5"`))
	p.PressCtrl(kb.Enter)
	require.Contains(t, p.Text(".head"), "0.000 g fine settled")
	p.PressAlt("p")
	tookKeys(t, p, "settlement")
	require.Equal(t, account+"/statement", p.URL())
	p.Go(account)
	p.PressAlt("l")
	require.True(t, p.Is(`document.querySelector('[name="in_entries[0].fine_weight"]').value === "497.5"`))
	p.PressAlt("c")
	p.Until(`document.activeElement.id === "f-name"`)
	p.Write("HDFC")
	p.PressCtrl(kb.Enter)
	require.Equal(t, "HDFC Bank", p.Text("h1"))
	p.Go(account)
	p.Click("h1") // a page without the window's focus focuses the field again with the first key
	p.Evaluate(`document.activeElement.blur()`, nil)
	p.Keys("?")
	p.Until(`document.querySelector("#keys").matches(":popover-open")`)
	require.Contains(t, p.Text("#keys"), "Alt+L")
	p.Accessible()
	p.Keys(kb.Escape)
	p.Until(`!document.querySelector("#keys").matches(":popover-open")`)

	p.Type(`[name="in_entries[0].other"]`, "1500")
	p.Until(`document.querySelector("#entry .preview").innerText.includes("₹1,500.00")`)
	p.Keys(kb.F4)
	p.Until(`document.activeElement.name === "out_entries[0].item_name"`)
	p.Type(`[name="out_entries[0].amount"]`, "20")
	p.Until(`(text => text.includes("₹20.00") && !text.includes("₹1,"))(document.querySelector("#entry .preview").innerText)`)
	p.Evaluate(`document.activeElement.blur()`, nil)
	p.Keys("/")
	p.Until(`document.activeElement.id === "find"`)

	p.Look(360, 740, false) // a finger opens the form on one side
	p.Go(account)
	require.False(t, p.Is(`document.getElementById("entry").offsetParent`))
	p.Click(`[data-open=out]`)
	p.Until(`document.activeElement.name === "out_entries[0].item_name"`)
	require.True(t, p.Is(`document.getElementById("side-out").checked && !document.querySelector(".fold").offsetParent`))
}

// enter opens a tab of the owner of a key.
func enter(o *apptest.Server, permissions string) *browsertest.Page {
	o.T.Helper()
	p := browsertest.Open(o.T, o.URL)
	p.Go("/app/sign-in")
	p.Click("summary")
	p.Type("#key", o.Key(o.Home, permissions).Key)
	p.Submit("details button")
	return p
}

// karigar opens an account with a row.
func karigar(o *apptest.Server) (address string) {
	clerk := o.Clerk(o.Home)
	id := apptest.IdOf(o.T, []byte(clerk.POST("/karigar", `{"name":"Imran"}`).Status(201).Text))
	clerk.POST(fmt.Sprint("/karigar-ledger/", id),
		`{"date":"2025-03-01","out_entries":[{"item_name":"fine silver","weight":500,"touch":99.5}]}`).Status(201)
	return fmt.Sprint("/app/accounts/karigar/", id)
}

// TestAKarigarsRowIsEnteredByTheKeyboard is the first flow of PAGES.md.
func TestAKarigarsRowIsEnteredByTheKeyboard(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	account := karigar(o)
	p := enter(o, write)
	p.Until(`document.activeElement.id === "account"`)
	p.Write("imran")
	p.Enter()
	require.Equal(t, account, p.URL())
	p.Until(`document.activeElement.name === "date"`)
	p.Keys(kb.Enter)
	for _, value := range []string{"payal", "520", "92", "2", "1500"} {
		p.Write(value)
		p.Keys(kb.Enter)
	}
	p.Until(`document.querySelector("#entry .preview").innerText.includes("you owe")`)
	require.Equal(t, "478.4", placeholder(p, "in_entries[0].fine_weight"))
	p.Keys(kb.Enter) // the new line is empty
	p.Until(`document.activeElement.matches("#entry button.primary")`)
	p.Enter()
	tookKeys(t, p, "row")
	require.Contains(t, p.Text("main"), "Saved.")
	require.Contains(t, p.Text(".rows tbody tr"), "478.400 g")
	require.Contains(t, p.Text(".rows tbody tr"), "₹1,500.00")
	require.Empty(t, p.Text(`[name="in_entries[0].item_name"]`))
}

func placeholder(p *browsertest.Page, name string) (text string) {
	p.Evaluate(fmt.Sprintf(`document.querySelector('[name=%q]').placeholder`, name), &text)
	return text
}

// line is a connection to the server that can be cut.
func line(o *apptest.Server) (address string, cut *atomic.Bool) {
	o.T.Helper()
	to, err := url.Parse(o.URL)
	require.NoError(o.T, err)
	cut, proxy := new(atomic.Bool), httputil.NewSingleHostReverseProxy(to)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if cut.Load() {
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	}))
	o.T.Cleanup(server.Close)
	return server.URL, cut
}

func TestRowsWaitForAConnection(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	account := book(o, o.Clerk(o.Home), 0)
	address, cut := line(o)
	p := browsertest.Open(t, address)
	p.Go("/app/sign-in")
	p.Click("summary")
	p.Type("#key", o.Key(o.Home, write).Key)
	p.Submit("details button")
	p.Go(account)
	save := func(amount string) {
		p.Type(`[name="in_entries[0].amount"]`, amount)
		p.Click("#entry button.primary")
		p.Until(`!document.querySelector('[name="in_entries[0].amount"]').value`)
	}
	const two = `document.querySelector("#unsent").innerText.includes("Rows not sent: 2")`
	cut.Store(true)
	p.Evaluate(`document.querySelector('[name="out_entries[0].amount"]').value = "999", 0`, new(int)) // on the hidden side
	save("70")
	save("many") // nothing refuses it yet
	p.Until(two)
	require.Regexp(t, `HDFC.*\d\d [A-Z][a-z]+ 20\d\d · `, p.Text("#unsent"))
	require.NotContains(t, p.Text("#unsent"), "999")
	p.Click("#send-now")
	p.Until(`document.querySelector("#unsent[aria-busy=false]")`)

	cut.Store(false)
	p.Go("/app/") // the rows are shown on each page, and in another session
	p.Until(two)
	p.Click("#send-now")
	p.Until(`document.querySelectorAll("#unsent li").length === 1`)
	require.Contains(t, p.Text("#unsent em"), "number")
	p.Click("#send-now") // the row that was sent is not sent again
	p.Click("#unsent li button")
	p.Until(`document.getElementById("unsent").hidden`)
	p.Go(account)
	require.Len(t, p.Texts(".rows tbody tr"), 1)
	require.Contains(t, p.Text(".rows tbody"), "₹70.00")
	require.NotContains(t, p.Text(".rows tbody"), "999")
	save("5")
	p.Until(`document.querySelector("main").innerText.includes("Saved.") && document.querySelectorAll(".rows tbody tr").length === 2`)

	p.Evaluate(`document.querySelector("#entry [name=token]").value = "x", 0`, new(int)) // as after a new sign-in in another tab
	save("9")
	p.Until(`document.querySelector("#unsent em").textContent.includes("earlier session")`)
	p.Click("#send-now")
	p.Until(`document.querySelectorAll(".rows tbody tr").length === 3`) // the page of the account shows the row that was sent
	require.True(t, p.Is(`document.getElementById("unsent").hidden`))

	const rename = "form:has([value=rename-bank]) "
	const name = rename + "[name=name]"
	p.Evaluate(`document.querySelectorAll("main details").forEach(d => { d.open = true })`, nil)
	p.Type(name, "ICICI")
	cut.Store(true)
	p.Submit(rename + "button") // another form comes back
	cut.Store(false)
	p.Go("/app/")
	p.Go(account)
	require.Contains(t, p.Text("main"), "Send it; it is saved only once.")
	require.True(t, p.Is(`document.querySelector("`+name+`").value === "ICICI"`))
	p.Submit(rename + "button")
	require.Contains(t, p.Text("h1"), "ICICI")
	require.True(t, p.Is(`document.getElementById("back").hidden`))
	p.Go(account)
	require.True(t, p.Is(`document.getElementById("back").hidden`))
	cut.Store(true)
	save("11")
	cut.Store(false)
	p.Evaluate(`window.confirm = () => false`, nil)
	p.Click(`form[action="/app/sign-out"] button`)
	p.Until(`localStorage.getItem("bahi-unsent")`)
	p.Evaluate(`window.confirm = text => { window.said = text; return true }`, nil)
	p.Submit(`form[action="/app/sign-out"] button`)
	require.Equal(t, "/app/sign-in", p.URL())
	require.True(t, p.Is(`localStorage.getItem("bahi-unsent") === null`))
}

// TestAFormComesBackAfterTheSessionHasEnded types a correction with a further line, and signs in again before it is saved.
func TestAFormComesBackAfterTheSessionHasEnded(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	account := karigar(o)
	p := enter(o, write)
	openNewest(p, account)
	row := p.URL()
	p.Type(`[name="out_entries[0].weight"]`, "400")
	p.Evaluate(`document.querySelector("#do-edit [data-lines=out_entries]").dispatchEvent(new Event("line", {bubbles: true})), 0`, new(int))
	const added = `#do-edit [data-lines=out_entries] .line:last-child [name$=`
	p.Type(added+`item_name]`, "ring")
	p.Type(added+`"].weight"]`, "5")
	p.Type(added+`"].touch"]`, "90")
	p.Type("#reason-edit", "weighed")
	p.Evaluate(`fetch("/app/sign-out", {method: "POST", redirect: "manual",
		body: new URLSearchParams({token: document.querySelector("[name=token]").value})}).then(() => 0)`, new(int))
	p.Submit("#do-edit .foot button:last-child")
	require.Contains(t, p.Text("main"), "What you typed is kept in this window.")
	p.Submit("main a.button")
	p.Click("summary")
	p.Type("#key", o.Key(o.Home, write).Key)
	p.Submit("details button")
	require.Equal(t, row, p.URL())
	require.Contains(t, p.Text("main"), "it is saved only once.")
	p.Until(`document.querySelector("#do-edit .preview").innerText.includes("owes you")`)
	p.Evaluate(`document.getElementById("reason-edit").focus(), 0`, new(int))
	p.PressCtrl(kb.Enter)
	require.Contains(t, p.Text("main"), "The row was changed.")
	for _, text := range []string{"400.000 g", "ring · Weight 5.000 g", "weighed"} {
		require.Contains(t, p.Text("main"), text)
	}
	p.Go(row)
	require.False(t, p.Is(`!document.getElementById("back").hidden`), "it comes back once")
}
