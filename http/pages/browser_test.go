package pages_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
	"bahi/internal/test/browsertest"
)

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
	clerk.POST("/karigar", `{"name":"Imran"}`).Status(201)
	clerk.POST("/karigar-ledger/1", `{"date":"2025-03-01","out_entries":[{"item_name":"fine silver","weight":500,"touch":99.5}]}`).Status(201)
	return "/app/accounts/karigar/1"
}

// TestAKarigarsRowIsEnteredByTheKeyboard is the first flow of PAGES.md.
func TestAKarigarsRowIsEnteredByTheKeyboard(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
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

func TestKeysOfAnAccount(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	account := karigar(o)
	p := enter(o, write)
	p.Go(account)
	p.Until(`document.activeElement.name === "date"`)
	p.Keys(kb.F4)
	p.Until(`document.activeElement.name === "out_entries[0].item_name"`)
	p.Click("h1")
	p.Evaluate(`document.activeElement.blur()`, nil)
	p.Keys("/")
	p.Until(`document.activeElement.id === "find"`)
	p.Evaluate(`document.activeElement.blur()`, nil)
	p.Keys(kb.ArrowUp)
	p.Enter()
	require.Contains(t, p.URL(), "/rows/1")
}
