package pages_test

import (
	"net/http"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/commands/ledgercmd"
	"bahi/domain/ledger/orderdraft"
	"bahi/domain/patch"
	"bahi/domain/unit"
	"bahi/internal/test/apptest"
)

func TestTheYearIsClosed(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	b := byKey(o, apptest.Home, write)
	const lock, periods, closes = settings + "/books", settings + "/periods", `value="close-period"`
	require.Contains(t, b.get(lock).Is(200).Text, `href="`+periods+`"`)
	apptest.Post(o.Clerk(apptest.Home), apptest.Open(o.Clerk(apptest.Home), "SBI"), apptest.Deposit("2025-03-31", "10"))
	req := commands.Request{Workspace: uuid.MustParse(apptest.Home)}
	id, _, err := ledgercmd.ReceiveDraft(t.Context(), req, o.Sys.Books, ledgercmd.Message{ID: "m", From: "919812345678", Text: "payal 250 gm"})
	require.NoError(t, err)
	_, err = ledgercmd.EditDraft(t.Context(), req, o.Sys.Books, 1, orderdraft.Edit{Date: patch.Set(unit.DateOf(apptest.MustTime(t,
		"2025-03-01T00:00:00Z")))})
	require.NoError(t, err)

	open := b.submitOf(periods, periods, closes, "through", "2025-03-31").Is(409)
	open.Says("The period through 31 Mar 2025 has open items", "order draft "+id+" is not reviewed")
	require.Contains(t, open.Text, `href="/app/drafts/`+id+`"`)
	o.Clerk(apptest.Home).DELETE("/order-drafts/" + id).Status(204)

	b.submitOf(periods, periods, closes, "through", "2198-03-31").Is(422).Says("must be before today")
	b.submitOf(periods, periods, closes, "through", "2025-03-31", "preview", "page").Is(200).Says("What it would do",
		"Digest of the balances: ")
	require.NotContains(t, b.get(periods).Text, "31 Mar 2025")
	b.follow(b.submitOf(periods, periods, closes, "through", "2025-03-31")).Says("The period is closed.", "31 Mar 2025", "Closed")
	b.get(lock).Says("The books are locked through 31 Mar 2025.")
	b.submit(lock, lock, "locked_through", "", "reason", "a late bill").Is(409).Says("an operator may reopen it")
	require.NotContains(t, b.get(periods).Text, "reopen-period")
	byKey(o, apptest.Home, `{"messaging":"read"}`).get(periods).Is(403)

	operator := byKey(o, apptest.Home, operatorRights)
	reopen := with(form(operator.get(periods), periods, `value="reopen-period"`), "reason", "")
	operator.site.Ask(http.MethodPost, periods, reopen).Is(422).Says("Say why.")
	operator.follow(operator.site.Ask(http.MethodPost, periods, with(reopen, "reason", "a late bill"))).
		Says("The period is open again.", "Opened again: a late bill")
	b.get(lock).Says("Nothing is locked.")
}
