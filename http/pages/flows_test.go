package pages_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

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

// TestARowIsCorrectedByTheKeyboard is the second flow of PAGES.md.
func TestARowIsCorrectedByTheKeyboard(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	account := karigar(o)
	p := enter(o, write)
	p.Go(account)
	p.Until(`document.activeElement.name === "date"`)
	p.Keys(kb.ArrowUp)
	p.Enter()
	p.Until(`document.activeElement.name === "date" && document.activeElement.closest("#correct")`)
	p.Keys(kb.Enter, kb.Enter, kb.Enter) // the first is at the empty line of the other side
	p.Until(`document.activeElement.name === "out_entries[0].weight"`)
	p.Write("400")
	p.Until(`document.querySelector("#correct .preview").innerText.includes("398.000 g fine owes you")`)
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
	o := apptest.Start(t)
	account, clerk := karigar(o), o.Clerk(apptest.Home)
	clerk.POST("/client", `{"name":"Patel Jewellers"}`).Status(201)
	order := `{"client_id":2,"date":"2025-03-01","slip_number":"11","items":[{"item_name":"kada","weight":10}]}`
	clerk.POST("/client-order", order).Status(201)
	received(o, "payal 100 gm 4 pcs\nring 20.5 gm")
	c := o.Bearer(o.Key(apptest.Home, answering).Key)
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
	require.False(t, p.Is(`document.getElementById("correct").open`), "the keys of a phone cover half of it")
	p.Tap("#correct summary")
	fill(`[name="in_entries[0].other"]`, "1600")
	fill("#reason-edit", "misread")
	p.TapOn("#correct .primary")
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
