package pages_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
)

// openedWith opens an account with a row.
func openedWith(clerk *apitest.Client, kind, name, row string) (address string) {
	var opened map[string]any
	clerk.POST("/"+kind, name).Status(201).JSON(&opened)
	clerk.POST(fmt.Sprintf("/%s-ledger/%v", kind, opened["id"]), row).Status(201)
	return fmt.Sprintf("/app/accounts/%s/%v", kind, opened["id"])
}

func TestAccountsAreSettled(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	b, clerk := byKey(o, apptest.Home, write), o.Clerk(apptest.Home)
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
		require.Regexp(t, `After it: ₹0\.00 settled 0\.000 g (fine|weight) settled`, settled.Words(), c.row)
		values := filled(settled, `id="entry"`)
		values.Set("date", "2025-03-02")
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
	require.NotContains(t, byKey(o, apptest.Home, `{"ledger":"read"}`).get("/app/accounts/karigar/3?settle=1").Is(200).Text, `id="settle"`)
}

func TestAKarigarIsSettledByTheKeyboard(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
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

	p.Look(360, 740, false) // a finger opens the form on one side
	p.Go(account)
	require.False(t, p.Is(`document.getElementById("entry").offsetParent`))
	p.Click(`[data-open=out]`)
	p.Until(`document.activeElement.name === "out_entries[0].item_name"`)
	require.True(t, p.Is(`document.getElementById("side-out").checked && !document.querySelector(".fold").offsetParent`))
}
