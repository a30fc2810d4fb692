package pages_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
)

func TestAnEditIsTakenBack(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	b, clerk := byKey(o, apptest.Home, write), o.Clerk(apptest.Home)
	clerk.POST("/karigar", `{"name":"Imran"}`).Status(201)
	clerk.POST("/karigar-ledger/1", `{"date":"2025-03-01","out_entries":[{"item_name":"fine silver","weight":500,"touch":99.5}]}`).Status(201)
	const row = "/app/accounts/karigar/1/rows/1"
	try := form(b.get("/app/accounts/karigar/1"), "/app/accounts/karigar/1/rows", "")
	for name, value := range map[string]string{"date": "2025-03-01", "preview": "part", "out_entries[0].weight": "500",
		"out_entries[0].touch": "99.5", "out_entries[0].fine_weight": "500"} {
		try.Set(name, value)
	}
	b.site.Ask(http.MethodPost, "/app/accounts/karigar/1/rows", try).Is(200).
		Says("line 1, Fine weight: 500.000 g is written, the other values give 497.500 g")
	edit := func() apptest.Page {
		return b.submitOf(row, row, `value="edit"`, "date", "2025-03-01", "out_entries[0].weight", "400", "out_entries[0].touch", "99.5",
			"reason", "weighed again").Is(303)
	}
	edited := edit().Header.Get("Location")
	b.follow(b.submitOf(edited, row, `value="undo"`)).Says("The change was taken back.", "497.500 g", "undone")
	require.NotContains(t, b.get(row).Is(200).Text, "Take the change back")

	stale := form(b.get(edit().Header.Get("Location")), row, `value="undo"`)
	b.submitOf(row, row, `value="edit"`, "date", "2025-03-01", "out_entries[0].weight", "450", "out_entries[0].touch", "99.5",
		"reason", "weighed").Is(303)
	b.site.Ask(http.MethodPost, row, stale).Is(412).Says("Another person has changed this row", "450.000 g")

	clerk.PUT("/books/lock", `{"locked_through":"2025-03-31"}`).Status(200)
	locked := b.get(row).Is(200).Says("This row can only be reversed.", "Reverse")
	require.NotContains(t, locked.Text, "Make void")
}

func TestARowThatStaysAsItIsOffersNoChange(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	b, clerk := byKey(o, apptest.Home, write), o.Clerk(apptest.Home)
	account := book(o, clerk, 2)
	first, second := account+"/rows/1", account+"/rows/2"
	b.submitOf(first, first, `value="reverse"`, "date", "2025-03-05", "reason", "wrong account").Is(303)
	b.submitOf(second, second, `value="void"`, "reason", "twice").Is(303)
	for _, row := range []string{first, second} {
		shown := b.get(row).Is(200)
		for _, act := range []string{"edit", "void", "reverse", "delete"} {
			require.NotContains(t, shown.Text, `name="do" value="`+act+`"`)
		}
	}
	reversal := b.get(account + "/rows/3").Is(200)
	require.Contains(t, reversal.Text, `name="do" value="reverse"`)
	require.NotContains(t, reversal.Text, `name="do" value="edit"`)
}

func TestTheFirstAccountIsOffered(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	b := byKey(o, o.Home, write)
	b.get("/app/").Is(200).Says("There are no accounts yet. Open the first one.")
	b.get("/app/accounts").Is(200).Says("There are no accounts yet. Open the first one.")
	o.Clerk(o.Home).POST("/bank", `{"name":"HDFC"}`).Status(201)
	require.NotContains(t, b.get("/app/").Is(200).Text, "There are no accounts yet")
	b.get("/app/accounts?q=x").Is(200).Says("There is no such account.")
}

// TestWhatAnotherChangedStays edits one row in two tabs.
func TestWhatAnotherChangedStays(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	b, clerk := byKey(o, apptest.Home, write), o.Clerk(apptest.Home)
	account := book(o, clerk, 1)
	added := b.submit(account, account+"/rows", "date", "2025-03-02", "in_entries[0].amount", "5").Is(303).Header.Get("Location")
	const word = `value="undone"`
	shown, row := b.get(added).Is(200), account+"/rows/2"
	undo := form(shown, row, word)
	for i, do := range []string{"void", "reverse", "delete"} {
		stale := form(b.get(row), row, `value="`+do+`"`)
		stale.Set("reason", "twice")
		stale.Set("date", "2025-03-04")
		b.submitOf(row, row, `value="edit"`, "date", "2025-03-03", "in_entries[0].amount", []string{"6", "7", "8"}[i], "reason",
			"misread").Is(303)
		refused := b.site.Ask(http.MethodPost, row, stale).Is(412).Says("It was changed since you read it")
		require.Contains(t, refused.Text, `value="twice"`)
		require.NotContains(t, refused.Text, "Another person has changed this row")
	}
	b.site.Ask(http.MethodPost, row, undo).Is(412).Says("It was changed since you read it")
	b.get(row).Is(200).Says("₹8.00")
}
