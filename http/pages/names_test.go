package pages_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
)

func TestPagesNameWhoDidSomething(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	asha, ravi := o.Person("asha@example.com"), o.Person("ravi@example.com")
	ravi.PUT(apptest.Me, `{"first_name":"Ravi","last_name":"Shah"}`).Status(200)
	asha.Join(o, ravi, `{"ledger":"write"}`)
	account := book(o, asha.Client, 1)
	edit := `{"id":1,"date":"2025-03-01","in_entries":[{"amount":7}]}`
	ledger := "/bank-ledger/1"
	ravi.With("Bahi-Workspace", asha.Workspace).PUT(ledger, edit).Status(200)
	o.Clerk(asha.Workspace).PUT(ledger, `{"id":1,"date":"2025-03-01","in_entries":[{"amount":8}]}`).Status(200)
	b := signedIn(o, "asha@example.com")
	row := account + "/rows/1"
	b.get(row).Is(200).Says("You added the row", "Ravi Shah edited the row", "API key for a test edited the row")
	require.NotContains(t, b.get(row).Text, ravi.User.ID)

	his := signedIn(o, "ravi@example.com")
	his.submit("/app/", "/app/workspace", "workspace", asha.Workspace).Leads("/app/?done=workspace")
	his.get(row).Is(200).Says("A member added the row", "You edited the row", "An API key edited the row")
	asha.DELETE("/api/v1/workspaces/" + asha.Workspace + "/members/" + ravi.User.ID).Status(204)
	b.get(row).Is(200).Says("former member edited the row")
}

func TestTheCompanyStandsOnPrints(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	seller := o.Bearer(o.Key(apptest.Home, `{"ledger":"write","marketplace":"write"}`).Key)
	account := book(o, seller, 1)
	b := byKey(o, apptest.Home, write)
	require.NotContains(t, b.get(account+"/statement").Is(200).Text, `class="company"`)
	o.Bearer(o.Key(apptest.OtherWorkspace, `{"marketplace":"write"}`).Key).POST("/api/v1/companies", `{"name":"Elsewhere"}`).Status(201)
	seller.POST("/api/v1/companies", `{"name":"Soni Jewellers"}`).Status(201)
	seller.POST("/api/v1/companies", `{"name":"Younger"}`).Status(201)
	require.Contains(t, b.get(account+"/statement").Is(200).Text, `<p class="company">Soni Jewellers</p>`)
}
