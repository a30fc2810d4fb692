package pages_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/app/apptest"
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
	both := b.get("/app/find?q=ravi").Is(200).Says("Ravi Traders", "Client", "Conversations", "919812345001")
	require.Contains(t, both.Text, `href="/app/inbox/`)
	b.get("/app/find?q=98123450").Is(200).Says("Ravi")
	require.Contains(t, b.get("/app/find?q=daybook").Is(200).Text, `<a href="/app/daybook">Daybook</a></th>`)
	b.get("/app/find?q=nobody+at+all").Is(200).Says("Nothing has this in its name.")
	clerk := byKey(o, apptest.Home, write)
	clerk.get("/app/find?q=ravi").Is(http.StatusSeeOther) // who reads no messages finds one account
	require.NotContains(t, clerk.get("/app/find?q=inbox").Is(200).Text, `href="/app/inbox"`)
	byKey(o, apptest.Abroad, write).get("/app/find?q=imran").Is(200).Says("Nothing has this in its name.")
	byKey(o, apptest.Home, `{"messaging":"read"}`).get("/app/find?q=imran").Is(200).Says("Nothing has this in its name.")
	visitor(o).get("/app/find?q=imran").Leads("/app/sign-in?next=%2Fapp%2Ffind%3Fq%3Dimran")
}
