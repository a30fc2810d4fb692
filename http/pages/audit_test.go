package pages_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
)

func TestTheTrailIsInWords(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	account := karigar(o)
	clerk := o.Clerk(apptest.Home)
	b := byKey(o, apptest.Home, `{"audit":"read","ledger":"read"}`)
	clerk.With("Bahi-Reason", "a slip").PUT("/karigar-ledger/1",
		`{"id":1,"date":"2025-03-02","out_entries":[{"item_name":"fine silver","weight":500,"touch":99}]}`).Status(200)
	clerk.PUT("/karigar/1", `{"name":"Imran Khan"}`).Status(200)
	clerk.POST("/polisher", `{"name":"Raju","type":1}`).Status(201)
	var client map[string]any
	clerk.POST("/client", `{"name":"Patel"}`).Status(201).JSON(&client)
	clerk.POST("/client-order", fmt.Sprintf(`{"client_id":%v,"date":"2025-03-01","slip_number":"12",
		"items":[{"item_name":"payal","weight":250,"quantity":4}]}`, client["id"])).Status(201)
	clerk.POST("/takada", `{"client_order_id":1,"date":"2025-03-05","items":[{"item_name":"payal","weight":60}]}`).Status(201)
	clerk.PUT("/books/lock", `{"locked_through":"2025-01-31"}`).Status(200)
	shown := b.get("/app/audit").Is(200).Says(
		"An API key opened the account · Imran", "An API key added the row", "Given, line 1: fine silver · Weight 500.000 g",
		"An API key edited the row", "a slip", "01 Mar 2025 02 Mar 2025", "99.5 % 99 %", "An API key renamed the account", "Imran Khan",
		"Meena", "An API key added the order",
		"An API key added the takada of 05 Mar 2025", "payal", "250.000 g", "An API key moved the lock of the books",
		"Locked through 31 Jan 2025", "Slip number: 12", "Items, line 1: payal",
	)
	require.Contains(t, shown.Text, `href="`+account+`/rows/1"`)
	require.NotContains(t, shown.Words(), "in_entries")
	links := regexp.MustCompile(`href="(/audit/trail[^"]*)"`).FindAllStringSubmatch(shown.Text, -1)
	require.Len(t, links, 2)
	for _, link := range links {
		require.NotEmpty(t, b.get(strings.ReplaceAll(link[1], "&amp;", "&")).Is(200).Text)
	}
	b.get("/app/audit?from=2025-01-01&to=2025-01-02").Is(200).Says("Nothing was changed in these days.")
	b.get("/app/audit?user=user:0190a0a0-0000-7000-8000-000000000000").Is(200).Says("Nothing was changed in these days.")
	b.get("/app/audit?from=2020-01-01&to=" + time.Now().Add(24*time.Hour).Format(time.DateOnly)).Is(200).
		Says("This page has the newest changes of the period.")
	b.get("/app/audit?user=asha@example.com").Is(http.StatusUnprocessableEntity).Says("expected an id")
	byKey(o, apptest.OtherWorkspace, `{"audit":"read"}`).get("/app/audit").Is(200).Says("Nothing was changed in these days.")
	auditor := byKey(o, apptest.Home, `{"audit":"read"}`).get("/app/audit").Is(200)
	require.NotContains(t, auditor.Text, `href="`+account, "an auditor does not open accounts")
	byKey(o, apptest.Home, write).get("/app/audit").Is(403)

	o.Past(70) // the months between are over
	clerk.POST("/karigar-ledger/1/row/1/void", `{"reason":"typed twice"}`).Status(200)
	moved := b.get("/app/audit").Is(200).Says("An API key made the row void", "typed twice", "Closing balances that moved",
		"End of", "495.000 g owes you", "0.000 g settled")
	require.NotContains(t, moved.Words(), "opened the account")

	o.Person("asha@example.com")
	own := signedIn(o, "asha@example.com")
	require.Regexp(t, `<option value="user:[^"]+">`, own.get("/app/audit").Is(200).Text)
}
