package pages_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
)

func TestTheDaybookHasAllLedgersByDay(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	b, clerk := byKey(o, apptest.Home, write), o.Clerk(apptest.Home)
	account := karigar(o)
	book(o, clerk, 2)
	b.get("/app/daybook").Is(200).Says("There are no rows of these days.", "The books are not locked.")
	shown := b.get("/app/daybook?from=2025-03-01&to=2025-03-02").Is(200).Says("01 Mar 2025", "HDFC",
		"Imran", "fine silver", "Bank, in all", "₹3.00", "497.500 g")
	require.Contains(t, shown.Text, `href="`+account+`"`)
	require.Contains(t, shown.Text, `href="`+account+`/rows/`)
	for _, link := range regexp.MustCompile(`href="(/books/daybook[^"]*)"`).FindAllStringSubmatch(shown.Text, -1) {
		require.NotEmpty(t, b.get(strings.ReplaceAll(link[1], "&amp;", "&")).Is(200).Text)
	}
	b.get("/app/daybook?from=2024-01-01&to=2025-03-02").Is(200).Says("This page has not all rows of the period.", "Imran")
	b.get("/app/daybook?from=2025-03-02&to=2025-03-01").Is(422).Says("must not be after to")
	b.get("/app/daybook?from=x").Is(422)
	byKey(o, apptest.OtherWorkspace, write).get("/app/daybook?from=2025-03-01&to=2025-03-02").Is(200).Says("There are no rows of these days.")
	byKey(o, apptest.Home, `{"messaging":"read"}`).get("/app/daybook").Is(403)
}

func TestTheLockIsMovedInABrowser(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	b := byKey(o, apptest.Home, write)
	const path = "/app/settings/books"
	b.get(path).Is(200).Says("Nothing is locked.")
	require.Contains(t, b.submit(path, path, "locked_through", "2025-13-01").Is(422).Text, `id="f-locked_through-set-books-lock-error"`)
	b.follow(b.submitOf(path, path, `value="set-books-lock"`, "locked_through", "2025-03-31")).
		Says("The lock is changed.", "The books are locked through 31 Mar 2025.")
	b.submitOf(path, path, `value="set-books-lock"`, "locked_through", "2198-01-01").Is(422).Says("Locked through must be before today")
	b.submitOf(path, path, `value="set-books-lock"`, "locked_through", "").Is(422).Says("reason")
	stale := form(b.get(path), path, `value="set-books-lock"`)
	b.follow(b.submitOf(path, path, `value="set-books-lock"`, "locked_through", "2025-03-01", "reason", "a late bill"))
	stale.Set("locked_through", "2025-04-30")
	refused := b.site.Ask(http.MethodPost, path, stale).Is(412).Says("Another person has changed this", "locked through 01 Mar 2025")
	require.Contains(t, refused.Text, `value="2025-04-30"`)
	mended := form(refused, path, `value="set-books-lock"`)
	mended.Set("locked_through", "2025-04-30")
	b.follow(b.site.Ask(http.MethodPost, path, mended)).Says("locked through 30 Apr 2025")
	b.follow(b.submit(path, path, "locked_through", "", "reason", "a late bill")).Says("Nothing is locked.")
}
