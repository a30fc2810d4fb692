package pages_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
)

func TestATransferIsPostedAndUnpairedInABrowser(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	b, clerk := byKey(o, apptest.Home, write), o.Clerk(apptest.Home)
	account := karigar(o)
	apptest.Open(clerk, "HDFC")
	const path = "/app/transfers"
	value := []string{"from", "hdfc", "to", "Imran · Karigar", "amount", "5000", "date", "2025-03-02", "description", "labour"}
	b.get(path).Is(200).Says("What moves from one account to another is two rows that name each other.")
	b.submitOf(path, path, `value="post-transfer"`, append(value, "preview",
		"page")...).Is(200).Says("HDFC · Given · Amount ₹5,000.00 · labour",
		"Imran · Given · labour · Amount ₹5,000.00")
	b.submitOf(path, path, `value="post-transfer"`, append(value, "amount", "")...).Is(422).Says("amount or fine_weight is required")
	posted := b.submitOf(path, path, `value="post-transfer"`, value...)
	row, _, _ := strings.Cut(posted.Header.Get("Location"), "?") // a page of an earlier position would do
	shown := b.follow(posted).Says("HDFC", "paired with row 3", "paired the row with row 3")
	other := b.get(regexp.MustCompile(`/app/rows/\d+`).FindString(shown.Text)).Is(303).Header.Get("Location")
	require.Contains(t, other, account+"/rows/3")
	b.get("/app/trial-balance").Is(200).Says("HDFC", "₹5,000.00", "Unpaired rows", "Loss in work", "497.500 g")
	unpaired := b.submitOf(other, other, `value="unpair"`, "reason", "wrong row")
	require.NotContains(t, b.follow(unpaired).Text, "/app/rows/")
	b.get(path).Is(200).Says("HDFC", "labour", "Imran")
	b.submitOf(path, path, `value="pair-rows"`, "rows", "2\n3").Is(303)
	b.get(row).Says("paired with row 3")
	file := regexp.MustCompile(`href="(/books/trial-balance[^"]*pdf)"`).
		FindStringSubmatch(b.get("/app/trial-balance?as_of=2025-03-05").Is(200).Text)
	require.Contains(t, file[1], "as_of=2025-03-05")
	b.get("/app/trial-balance?known_at=x").Is(422)
	byKey(o, apptest.Home, `{"messaging":"read"}`).get("/app/trial-balance").Is(403)
}
