package pages_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
)

func TestFindLeadsToAccountsPeopleAndPages(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	account := karigar(o)
	o.Clerk(apptest.Home).POST("/client", `{"name":"Ravi Traders"}`).Status(201)
	waiting(o)
	b := byKey(o, apptest.Home, `{"ledger":"read","messaging":"read","marketplace":"read"}`)
	b.get("/app/find").Is(200).Says("Name, phone, slip number or page")
	require.Equal(t, account, b.get("/app/find?q=IMRAN").Is(http.StatusSeeOther).Header.Get("Location"), "it is the only hit")
	both := b.get("/app/find?q=ravi").Is(200).Says("Ravi Traders", "Client", "Conversations", "+91 98123 45001")
	require.Contains(t, both.Text, `href="/app/inbox/`)
	b.get("/app/find?q=98123450").Is(200).Says("Ravi")
	require.Contains(t, b.get("/app/find?q=daybook").Is(200).Text, `<a href="/app/daybook">Daybook</a></th>`)
	b.get("/app/find?q=nobody+at+all").Is(200).Says("Nothing has this in its name.")
	clerk := byKey(o, apptest.Home, write)
	clerk.get("/app/find?q=ravi").Is(http.StatusSeeOther) // without the permission to read messages, one account is found
	require.NotContains(t, clerk.get("/app/find?q=inbox").Is(200).Text, `href="/app/inbox"`)
	byKey(o, apptest.OtherWorkspace, write).get("/app/find?q=imran").Is(200).Says("Nothing has this in its name.")
	byKey(o, apptest.Home, `{"messaging":"read"}`).get("/app/find?q=imran").Is(200).Says("Nothing has this in its name.")
	visitor(o).get("/app/find?q=imran").Leads("/app/sign-in?next=%2Fapp%2Ffind%3Fq%3Dimran")
}

func TestASlipNumberIsFound(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk := o.Clerk(apptest.Home)
	clerk.POST("/client", `{"name":"Ravi Traders"}`).Status(201)
	clerk.POST("/client-order",
		`{"client_id":1,"date":"2025-03-01","slip_number":"A-214","items":[{"item_name":"kada","weight":10}]}`).Status(201)
	received(o, "slip 215\nparty: ramesh\npayal 250 gm")
	b := byKey(o, apptest.Home, write)
	order := b.get("/app/find?q=a-214").Is(200).Says("Orders with this slip number", "Ravi Traders", "01 Mar 2025")
	require.Contains(t, order.Text, `href="/app/orders/1"`)
	draft := b.get("/app/find?q=215").Is(200).Says("Drafts with this slip number", "payal 250 gm")
	require.NotContains(t, draft.Words(), "Orders with this slip number")
	require.Regexp(t, `href="/app/drafts/\d+"`, draft.Text)
	byKey(o, apptest.Home, `{"messaging":"read"}`).get("/app/find?q=215").Is(200).Says("Nothing has this in its name.")
	byKey(o, apptest.OtherWorkspace, write).get("/app/find?q=a-214").Is(200).Says("Nothing has this in its name.")
}
