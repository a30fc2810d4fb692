package pages_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
	"bahi/internal/test/khatapages"
)

// TestOthersSeeAndChangeNothing shows that only members with the permission see a page's forms, and only its workspace sees its records.
func TestOthersSeeAndChangeNothing(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	account, draft := keptBooks(o), keptOrders(o)
	clerk, company := keptTrade(o)
	talk, enquiry := keptTalks(o, clerk, company)
	khata := uploaderOf(o).read(khatapages.Typed("Party: Imran", "OUT", "1/3 silver 500 99.5 497.5"))
	const all = `{"ledger":"write","messaging":"write","marketplace":"write"}`
	owner, stranger := byKey(o, o.Home, all), byKey(o, apptest.OtherWorkspace, all)
	reader := byKey(o, o.Home, strings.ReplaceAll(all, "write", "read"))
	for _, c := range []struct {
		page, action, has string
		values            []string
		list, hidden      string // hidden: text that the list shows to no other workspace
		without           string // key without the right to read the page
	}{
		{account, account + "/rows", "", nil, "/app/accounts", "Imran", tradeRead},
		{account + "/rows/1", account + "/rows/1", `value="void"`, []string{"reason", "x"}, "", "", tradeRead},
		{"/app/orders/1", "/app/orders/1", `value="edit-client-order"`, []string{"date", "2025-03-01"}, "/app/orders", "Order 1", tradeRead},
		{"/app/orders/1/takadas/1", "/app/orders/1/takadas/1", `value="edit-takada"`, []string{"date", "2025-03-01"}, "", "", tradeRead},
		{draft, draft, `name="do"`, []string{"base", "{}", "entries[0].weight", "9"}, "/app/drafts", "slip 214", tradeRead},
		{khata, khata, "", []string{"entries[0].accepted", "yes"}, "/app/khata", khata, tradeRead},
		{talk, talk + "/messages", "", []string{"text", "x"}, "/app/inbox", "Ravi", write},
		{talk, talk, "", []string{"do", "resolved"}, "", "", write},
		{enquiry, enquiry, `value="edit-enquiry"`, []string{"notes", "x"}, "/app/enquiries", "Asha Rao", write},
	} {
		filled := form(owner.get(c.page).Is(200), c.action, c.has)
		require.NotEmpty(t, filled, c.page)
		seen := reader.get(c.page).Is(200)
		require.Empty(t, form(seen, c.action, c.has), c.page)
		theirs := with(filled, append([]string{"token", form(seen, "/app/sign-out", "").Get("token")}, c.values...)...)
		reader.site.Ask(http.MethodPost, c.action, theirs).Is(403)
		owner.site.Ask(http.MethodPost, c.action, with(filled, "workspace", apptest.OtherWorkspace)).Is(409)
		stranger.get(c.page).Is(404)
		byKey(o, o.Home, c.without).get(c.page).Is(403)
		if c.list != "" {
			require.Contains(t, owner.get(c.list).Is(200).Text, c.hidden)
			require.NotContains(t, stranger.get(c.list).Is(200).Text, c.hidden)
			byKey(o, o.Home, c.without).get(c.list).Is(403)
		}
	}
	stranger.get(account + "/statement").Is(404)
	for _, page := range []string{"/app/accounts", "/app/orders", "/app/khata", settings + "/books"} {
		require.NotRegexp(t, `type="file"|name="do"|id="open"`, reader.get(page).Is(200).Text, page)
	}
}
